#pragma once

// What is kept of repeated measurements of one time.
//
// Problem:   machines have noise with a long tail upwards; a mean says little about a program.
// Idea:      the median stands for the time, the 10th and 90th percentiles for the noise, the least for what
//            the machine can do. Quantiles interpolate between neighbours.
// Invariant: least <= p10 <= median <= p90; of no values everything is 0.

#include <cstdint>
#include <vector>

namespace lockstep::harness {

struct Statistics {
  double median = 0;
  double mean = 0;
  double p10 = 0;
  double p90 = 0;
  double least = 0;
  std::int64_t count = 0;
};

Statistics summarise(std::vector<double> values);
double quantile(std::vector<double> values, double share);
double median(std::vector<double> values);

}  // namespace lockstep::harness
