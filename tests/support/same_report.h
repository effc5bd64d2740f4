// Two reports that must be one and the same, but for how they were simulated.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace lockstep {

// What differs first, or nothing. Events and simulated ranks are how, not what.
inline std::string first_difference(const Report& a, const Report& b) {
  const auto differs = [](const char* what, Duration left, Duration right) {
    return left == right ? std::string()
                         : std::string(what) + ": " + std::to_string(left.picoseconds()) + " ps and " +
                               std::to_string(right.picoseconds()) + " ps";
  };
  std::string found = differs("iteration", a.iteration, b.iteration);
  const auto compare = [&](const char* what, Duration left, Duration right) {
    if (found.empty())
      found = differs(what, left, right);
  };
  compare("first iteration", a.first_iteration, b.first_iteration);
  compare("p5", a.p5, b.p5);
  compare("p95", a.p95, b.p95);
  compare("forward", a.breakdown.forward, b.breakdown.forward);
  compare("backward", a.breakdown.backward, b.breakdown.backward);
  compare("gradient copy", a.breakdown.gradient_copy, b.breakdown.gradient_copy);
  compare("exposed communication", a.breakdown.exposed_communication, b.breakdown.exposed_communication);
  compare("optimizer", a.breakdown.optimizer, b.breakdown.optimizer);
  compare("communication", a.communication_total, b.communication_total);
  compare("overlapped", a.communication_overlapped, b.communication_overlapped);
  if (a.buckets.size() != b.buckets.size())
    return "the number of buckets";
  for (std::size_t bucket = 0; bucket < a.buckets.size(); ++bucket) {
    const std::string name = "bucket " + std::to_string(bucket);
    compare((name + " ready").c_str(), a.buckets[bucket].ready, b.buckets[bucket].ready);
    compare((name + " start").c_str(), a.buckets[bucket].start, b.buckets[bucket].start);
    compare((name + " end").c_str(), a.buckets[bucket].end, b.buckets[bucket].end);
  }
  return found;
}

}  // namespace lockstep
