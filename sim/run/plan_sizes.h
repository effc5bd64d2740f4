#pragma once

// What a run will take, counted while its plans are written and before any of them runs.
//
// Invariant: a plan that would not fit is given up while it is written, and refused with what is known.
// Cost:      that of the plans; of a long run, merging one as its windows will be.

#include <cstdint>

#include "sim/run/run_size.h"
#include "sim/run/written_plan.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// At least: twice for each of the settings that are tried.
double rehearsals(const Scenario& scenario);

// Writes plans that are run later, and knows what they come to.
class PlanSizes {
 public:
  PlanSizes(const Scenario& scenario, const Cluster& cluster);

  // It is run so many times.
  WrittenPlan write(const Job& job, PlanExtent extent, double runs = 1);

  // Where windows of a long run follow: merged as they will be, the steady iterations tell its events.
  void add_long_run(const WrittenPlan& steady);
  void add_window(const WrittenPlan& steady, std::int64_t iterations);
  void add_report(const WrittenPlan& steady);
  void add_events(double events) { size_.events += events; }
  void add_rehearsed(double events) {
    size_.events += events;
    size_.rehearsed += events;
  }
  const RunSize& size() const { return size_; }
  // As if nobody shared anything: who does shows once it runs (size_watch.h).
  void check() const { refuse_if_large(scenario_, size_); }

 private:
  const Scenario& scenario_;
  const Cluster& cluster_;
  RunSize size_;
};

}  // namespace lockstep
