#pragma once

// What workers and servers did with the time.
//
// Problem:   a worker's transfers, its computing and its waiting overlap and end in any order, and only what
//            lies in the measured window counts.
// Idea:      of each worker it is known until when its time is accounted for; whoever knows what it did since
//            says so. A step's computing is known when it begins, and accounted for when it ends.
// Invariant: what a worker does is always one of computing, communicating and waiting: the three add up to
//            the window to the picosecond.
// Cost:      constant for each of them.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/quantile_sketch.h"
#include "sim/base/units.h"
#include "sim/engine/staleness.h"

namespace lockstep {

struct WorkerTime {
  Duration computing, communicating, waiting;
};

// Means over all that was measured are sums over `updates`.
struct UpdateTotals {
  Duration window;                  // that was measured
  std::int64_t updates = 0;         // gradients that were used in it
  std::vector<WorkerTime> workers;  // how each spent it
  Duration hidden;                  // pulling and pushing beside computing, of all workers
  QuantileSketch steps;             // from one update of a worker to its next, in picoseconds
  StalenessCounts staleness = {};
  std::int64_t conflicts = 0;  // updates that began while another was being applied
  Duration server_work;        // one after the other
  std::uint64_t events = 0;
};

class UpdateAccount {
 public:
  enum class Activity : std::uint8_t { computing, communicating, waiting };
  // Where all stalls of the forward pass are moved to its front.
  struct Computing {
    Time begin, end;
  };

  // The window begins after so many rounds and lasts so many.
  UpdateAccount(std::size_t workers, std::int64_t warm_up, std::int64_t rounds);

  // What a worker does from here on, until it is said what it did; of a step, when it computes.
  void turn_to(std::uint32_t worker, Activity activity) { workers_[worker].doing = activity; }
  void compute(std::uint32_t worker, Computing when);
  const Computing& computing(std::uint32_t worker) const { return workers_[worker].computing; }

  // What it did until then with the time that is not yet accounted for.
  void spend(std::uint32_t worker, Activity activity, Time until);
  void spend_step(std::uint32_t worker, Time now);
  void end_step(std::uint32_t worker, Time now);

  void take_event() { ++totals_.events; }
  void hide(Duration duration);
  void add_server_work(Duration work);
  void add_staleness(std::int64_t staleness);
  void add_conflict();

  // Gradients that were used, and rounds that were completed with them.
  void count(std::int64_t updates, std::int64_t rounds, Time now);
  bool is_complete() const { return is_complete_; }
  const UpdateTotals& totals() const { return totals_; }

 private:
  struct Worker {
    Time accounted;                      // until when it is known what it did
    Activity doing = Activity::waiting;  // since then
    Computing computing;
    Time updated;  // last
  };

  bool is_measuring() const { return window_begin_.has_value(); }
  void close(Time now);

  std::int64_t warm_up_;
  std::int64_t most_rounds_;
  std::vector<Worker> workers_;
  std::int64_t rounds_ = 0;
  std::optional<Time> window_begin_;
  bool is_complete_ = false;
  UpdateTotals totals_;
};

}  // namespace lockstep
