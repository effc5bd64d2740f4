#pragma once

// Which kernels a step on one GPU is made of, and what bounds them.
//
// Idea:      every layer's forward and backward, by the kind of its kernels, each with what the multiplying units,
//            memory and starting kernels take of it, and what the GPU waits for the host to issue it. Before any
//            measured step corrects it.
// Invariant: the groups add up to the modelled step to the picosecond.
// Cost:      one pass over the layers of all micro-batches.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/compute/work_time.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct KernelGroup {
  std::string kind;       // "product", "convolution", "attention", "memory", "stated"
  std::string direction;  // "forward", "backward", "recompute", "optimizer"
  std::int64_t kernels = 0;
  WorkTime time;
  Duration waiting;  // for the host
  // Of the precision's FLOP rate; of what moves bytes, of the memory's bandwidth; 0: of stated times.
  double of_peak = 0;

  Duration total() const { return time.total() + waiting; }
};

// The longest first; groups without kernels and time are left out.
std::vector<KernelGroup> kernel_account(const Scenario& scenario);

std::string to_text(const std::vector<KernelGroup>& groups);

}  // namespace lockstep
