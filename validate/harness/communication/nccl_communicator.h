#pragma once

// Ranks that reduce on their GPUs, by NCCL.
//
// Problem:   collectives must run beside backward, after the gradients they reduce and before the update that
//            reads them, without the host waiting.
// Idea:      a stream of their own, as PyTorch's ProcessGroupNCCL has; an event orders it after the computing
//            asked for so far, another the later computing after it, and a pair around each collective tells
//            when it ran. Ranks that share a GPU, which NCCL refuses, each get an NCCL_HOSTID: NCCL takes
//            them for hosts of their own and connects them by sockets.
// Invariant: collectives run in the order in which they were started.
// Errors:    EnvironmentError with NCCL's own last error. A thread asks NCCL for errors of its own (a
//            connection that broke) and aborts the communicator, so that nothing waits for it for ever; the
//            next call throws. After an exception the communicator is aborted, not ended together with the
//            others.

#include <memory>

#include "validate/harness/communication/communicator.h"
#include "validate/harness/communication/rendezvous.h"
#include "validate/harness/device/device.h"

namespace lockstep::harness {

// `device` is one of make_cuda_device and outlives the communicator. Every rank calls it. A single rank
// needs no NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(Rendezvous& rendezvous, Device& device);

}  // namespace lockstep::harness
