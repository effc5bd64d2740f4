#pragma once

// How long one kernel takes among others of its kind, without its host.
//
// Problem:   see stage.h; and a buffer that the last call left in the cache is read faster than a layer's is.
// Idea:      a sample is as many calls as fill a fraction of a millisecond, launched while the queue is held
//            back, timed by two events and divided; each call is told its number and takes other memory. A
//            sample that began before its last call was launched is thrown away, and held longer.
// Invariant: a time includes the pause between two dependent kernels (about 1 us), as steps have it. Nothing
//            is returned where the host is slower than the device whatever is done: that is no kernel's time.
// Cost:      two calls to warm up, one to estimate, then 5 to 20 samples.

#include <cstdint>
#include <functional>
#include <optional>

#include "validate/harness/gpu_bench/stage.h"

namespace lockstep::harness {

struct KernelTime {
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  std::int64_t samples = 0;
  std::optional<double> clock_mhz;
};

struct HeldTiming {
  double sample_seconds = 300e-6;  // at least so long, unless that takes more than `most_calls`
  double seconds = 60e-3;          // of all samples together
  std::int64_t most_calls = 64;
  std::int64_t least_samples = 5;
  std::int64_t most_samples = 20;
};

// work(number of the call, from 0 on)
std::optional<KernelTime> time_held(Stage& stage, const std::function<void(std::int64_t)>& work,
                                    const HeldTiming& timing = {});

}  // namespace lockstep::harness
