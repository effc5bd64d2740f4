#pragma once

// The constants of an architecture's kernels from timed kernels of its GPUs.
//
// Problem:   products, attention, convolutions and passes over memory have a few constants each, and no kernel
//            shows one of them alone.
// Idea:      section by section, Ceres moves the constants while the model of computing itself prices every
//            kernel, each on its own GPU's data sheet; then each constant alone takes small steps, since tiles
//            make the floor of a valley uneven. Cauchy's loss on logarithms, since libraries have slow
//            kernels for some shapes. A shape in five is kept aside, on all GPUs alike.
// Invariant: rows that are kept aside decide nothing; a section without rows stays as it was; the priors are
//            the same for every architecture.
// Cost:      a microsecond a kernel and evaluation, at most 1,200 kernels a section: seconds.
// Reference: compute/product_time.h and its neighbours, whose constants these are.

#include <span>
#include <string>
#include <vector>

#include "sim/compute/gpu.h"
#include "sim/study/bench/host_floor.h"
#include "sim/study/bench/kernel_case.h"

namespace lockstep {

struct TimedKernel {
  const KernelCase& kernel;
  const GpuSpec& gpu;
  Duration host = {};  // of who measured, before it starts
};

// How far predictions lie from what was timed, of the rows of one section.
struct SectionResidual {
  std::string section;
  bool is_fitted = false;  // else kept aside
  std::size_t kernels = 0;
  double median = 0;  // of |predicted / measured - 1|, in per cent
  double p90 = 0;
  double bias = 0;  // median of predicted / measured - 1, in per cent
};

struct ArchitectureFit {
  KernelConstants constants;
  std::vector<SectionResidual> residuals;
};

// Which of the timed kernels tell something of their GPU, and how many do not.
class TellingRows {
 public:
  explicit TellingRows(std::span<const KernelCase> kernels) : floors_(kernels) {}

  // Whether it is one, now among `rows`. Both must outlive them.
  bool add(const KernelCase& kernel, const GpuSpec& gpu);

  const std::vector<TimedKernel>& rows() const { return rows_; }
  std::vector<std::string> warnings() const;  // of what was left out

 private:
  HostFloors floors_;
  std::vector<TimedKernel> rows_;
  std::size_t hidden_ = 0;  // that tell how long their host took
  std::size_t cached_ = 0;  // that were faster than memory
};

// Whether the shape is one of those kept aside.
bool is_kept_aside(const KernelCase& kernel);

// "tensor", "attention", ...: the constants that decide a kernel on this GPU; empty: none do.
std::string section_of(const KernelCase& kernel, const GpuSpec& gpu);

// As profiles state them.
KernelConstants to_four_digits(KernelConstants constants);

ArchitectureFit fit_architecture(const KernelConstants& start, std::span<const TimedKernel> kernels);

}  // namespace lockstep
