#pragma once

// Machines, GPUs, links and fabrics from JSON: profile files and inline objects, which have the same shape.
//
// Problem:   a machine names a GPU and links by name, by path or inline, and each of them comes from a file
// of
//            its own with its own mistakes.
// Idea:      one reader per noun, from a JsonReader to a plain struct; read_named() chooses the file.
// Invariant: what is returned is complete (defaults filled, indices in range) unless a problem was recorded.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/compute/gpu.h"
#include "sim/load/reading/load_context.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"

namespace lockstep {

inline constexpr std::int64_t most_gpus_per_machine = 256;

// A machine with everything it names. Its name is empty when it could not be read at all.
struct MachineReading {
  MachineSpec machine;
  GpuSpec gpu;
  std::optional<FabricSpec> fabric;
  std::string fabric_name;  // where it is stated by one
  std::optional<Calibration> calibration;
};

MachineReading read_machine(const JsonReader& json, const Place& place);
GpuSpec read_gpu(const JsonReader& json, const Place& place);
FabricSpec read_fabric(const JsonReader& json, const Place& place);
// What an operator takes a host, up to a second.
Duration read_operator_time(const JsonReader& json);
// Protocols of NCCL that are left to choose among: each once, at least one.
std::vector<std::string> read_protocols_left(const JsonReader& json);
// `link_class` is what an inline link without "class" is where it stands.
LinkSpec read_link(const JsonReader& json, const Place& place, LinkClass link_class);

// GPU i is close to NIC i * count / gpus; with more NICs than GPUs, NIC j to GPU j * gpus / count.
std::vector<NicSpec> spread_nics(const LinkSpec& link, std::int64_t count, std::int64_t gpus);

}  // namespace lockstep
