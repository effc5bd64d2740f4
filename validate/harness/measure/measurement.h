#pragma once

// What every measurement is made with, and the plain numbers it makes.
//
// Idea:      a Bench is a device, its ranks and a way to tell progress; a measurement is a function of it.
// Invariant: all ranks call the same measurements with equal counts, for collectives are among what is
//            measured.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "validate/harness/communication/communicator.h"
#include "validate/harness/device/device.h"
#include "validate/harness/measure/ranks.h"
#include "validate/harness/measure/statistics.h"

namespace lockstep::harness {

struct Bench {
  Device& device;
  Communicator& communicator;
  Ranks& ranks;
  std::function<void(const std::string&)> tell_progress;
};

// How often something is repeated: as often as fits `seconds`, within limits. Equal on all ranks where
// `seconds_each` is.
struct Repeats {
  double seconds = 2;
  std::int64_t least = 3;
  std::int64_t most = 200;
};
std::int64_t count_repeats(const Repeats& repeats, double seconds_each);

// Waits until every rank is here, to within a latency of the network: a sum of one number. It is closer than
// Ranks::barrier.
class CloseBarrier {
 public:
  explicit CloseBarrier(Bench& bench);
  void wait();

 private:
  Bench& bench_;
  Buffer number_;
};

// Seconds that `work` takes on the device, including the wait for it.
double time_of(Device& device, const std::function<void()>& work);

struct TensorTiming {
  std::int64_t tensors = 1;
  std::int64_t bytes = 0;  // in all
  Statistics time;
};

}  // namespace lockstep::harness
