#pragma once

// --stats: how much work the simulator itself did.
//
// Invariant: on stderr only, because no result may depend on a clock.

#include <chrono>
#include <cstdint>

namespace lockstep {

class Stopwatch {
 public:
  Stopwatch() : start_(std::chrono::steady_clock::now()) {}
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_;
};

// Wall time, events of one simulation per second of it, and the peak resident memory of the process.
void print_statistics(const Stopwatch& since_start, std::uint64_t events, double simulating_seconds);

}  // namespace lockstep
