#pragma once

// What every measurement is made with, and how a call is timed.
//
// Problem:   on a device that works behind its host, a call asked of an idle device takes the host's launch as
//            well; one of many in a row does not, and that is what a step is made of.
// Idea:      a Bench is a device, its ranks and a way to tell progress; a measurement is a function of it.
//            Calls are timed both ways: alone, from idle; and many between two marks, divided by their
//            number, as nccl-tests counts (it reads the host's clock before the first of them and after the
//            last has ended). A host that works itself (CPU) knows the first way alone.
// Invariant: all ranks call the same measurements with equal counts, for collectives are among what is
//            measured. What is timed was warm before.
// Reference: github.com/NVIDIA/nccl-tests, src/common.cu, BenchTime.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validate/harness/communication/communicator.h"
#include "validate/harness/device/device.h"
#include "validate/harness/measure/ranks.h"
#include "validate/harness/measure/statistics.h"

namespace lockstep::harness {

// What was tried and gave no number that means what it says.
struct FailedMeasurement {
  std::string measurement;
  std::int64_t bytes = 0;
  std::string reason;
};

struct Bench {
  Device& device;
  Communicator& communicator;
  Ranks& ranks;
  std::function<void(const std::string&)> tell_progress;
  bool gpus_shared = false;  // several ranks take turns on a GPU: times are those of neither
  std::vector<FailedMeasurement> failures = {};

  void tell_failure(const FailedMeasurement& failure);
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

struct CallTimes {
  Statistics from_idle = {};
  std::optional<Statistics> back_to_back =
      {};  // one entry a row of calls; none of a device that runs no work ahead

  // What a call costs among others.
  const Statistics& time() const { return back_to_back ? *back_to_back : from_idle; }
};

struct TimedCall {
  std::function<void(std::int64_t calls)> run;  // asks for so many, one after the other
  std::function<void()> meet;                   // brings ranks together; before each call alone, and each row
  Repeats repeats = {};
  bool takes_slowest_rank = false;  // else the median of ranks
};
CallTimes time_calls(Bench& bench, const TimedCall& call);

struct TensorTiming {
  std::int64_t tensors = 1;
  std::int64_t bytes = 0;  // in all
  CallTimes time = {};
};

}  // namespace lockstep::harness
