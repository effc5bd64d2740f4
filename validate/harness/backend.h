#pragma once

// The hardware and the communication library that this program was linked with: each is a program of its own,
// so that a machine without CUDA needs none of it. Which one is decided by the linker: `linked_backend` is
// defined in cpu_backend.cpp and in cuda_backend.cpp, and a program holds one of them.

#include <memory>
#include <string>

#include "validate/harness/communication/communicator.h"
#include "validate/harness/communication/rendezvous.h"
#include "validate/harness/device/device.h"

namespace lockstep::harness {

struct Backend {
  const char* name;  // "cpu", "cuda"
  // Whether a rank that this program starts gets a core to itself, and no other. A rank on a GPU needs
  // several: for the thread that launches, NCCL's proxies, the driver's.
  bool pins_ranks;
  // Of this rank of its node. Throws EnvironmentError where there is none.
  std::unique_ptr<Device> (*make_device)(const World& world);
  // Throws EnvironmentError where ranks cannot be connected.
  std::unique_ptr<Communicator> (*make_communicator)(Rendezvous& rendezvous, Device& device);
  // The GPU's own name for itself, the same for whoever uses it; empty where there is none.
  std::string (*gpu_of)(Device& device);
};

const Backend& linked_backend();

}  // namespace lockstep::harness
