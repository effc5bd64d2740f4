#pragma once

// How long a benchmark's host took to start kernels, seen in its own table.
//
// Problem:   kernels that are timed one by one through a framework never take less than their host takes to start
//            one: tens of microseconds, where a GPU that is kept busy takes two.
// Idea:      where the shortest kernels of a table all take as long as each other, and longer than any GPU keeps
//            its stream for nothing, that is the host: the event before a kernel passes while the GPU waits for
//            the kernel to be started. It belongs to who measured, not to the GPU: half of it passes before a
//            kernel starts, and nothing takes less than all of it. A convolution is several kernels, and how many
//            depends on its shape, so that the shortest are not alike: there it is what a line through the
//            times of small work has left where there is none, all of which passes before the GPU begins.
// Invariant: by table, GPU, source and operator; a table without such a floor has none.
// Cost:      one sort of the rows.
// Reference: CUDA launch guides: 2 to 6 us for a kernel that does nothing.

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/units.h"
#include "sim/study/bench/kernel_case.h"

namespace lockstep {

class HostFloors {
 public:
  explicit HostFloors(std::span<const KernelCase> kernels);

  // Zero: none.
  Duration of(const KernelCase& kernel) const;
  // What passes of it before the GPU begins.
  Duration before(const KernelCase& kernel) const;
  // What is measured of a kernel that keeps the GPU for so long.
  Duration measured(const KernelCase& kernel, Duration on_gpu) const;
  // Whether the row says more of the host than of the GPU.
  bool hides(const KernelCase& kernel) const { return kernel.time < of(kernel) * 2; }

 private:
  using Bench = std::tuple<std::string, std::string, std::string, std::string>;
  struct Host {
    Duration floor;   // nothing takes less
    Duration before;  // of it, until the GPU begins
  };
  static Bench bench_of(const KernelCase& kernel);
  static Host host_of(const std::vector<const KernelCase*>& kernels);
  Host find(const KernelCase& kernel) const;

  std::map<Bench, Host> hosts_;
};

}  // namespace lockstep
