#pragma once

// One part of the bench: a list of cases, timed in turn until the time is up.
//
// Problem:   every part must stop when its time ends, keep what it has, skip what an earlier run measured,
//            and survive a case that a GPU cannot do.
// Idea:      `run_cases` does all of that; a part says how a case is told from others and how it is timed.
// Invariant: cases are taken in their order, so that the first are measured whatever the time. What failed,
//            or did not fit, is told by name and left out: a table has no row without a time.
// Errors:    EnvironmentError of the third case in a row that failed: the GPU is gone.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "validate/harness/gpu_bench/arena.h"
#include "validate/harness/gpu_bench/held_timing.h"
#include "validate/harness/gpu_bench/measurement_table.h"
#include "validate/harness/gpu_bench/stage.h"

namespace lockstep::harness {

struct KernelBench {
  std::string gpu;     // as its driver calls it; profiles know it by that name too
  std::string source;  // who measured
  Stage& exact;        // products and convolutions of fp32 are not rounded
  Stage& rounding;     // to TF32
  Arena& arena;
  MeasurementTable& table;
  std::function<bool()> time_is_up;
  std::function<void(const std::string&)> tell;

  Stage& stage_of(const std::string& precision) const { return precision == "tf32" ? rounding : exact; }
};

struct PartResult {
  std::int64_t cases = 0;
  std::int64_t measured = 0;  // now or before
  std::int64_t left_out = 0;  // they failed, or do not fit
  bool is_complete() const { return measured + left_out == cases; }
};

Type type_of(const std::string& precision);
std::string microseconds(double value);
// "" where there is none.
std::string clock_text(const std::optional<double>& megahertz);
// time_us, source, p10, p90, clock_mhz, cold: how every kernel table ends.
Cells time_cells(const KernelBench& bench, const KernelTime& time, bool is_cold);

struct KernelWork {
  std::string part;
  std::string precision;
  Cells key;
  std::vector<ArenaOperand> operands;
  bool is_cold = true;
  std::function<void(std::int64_t)> run;  // of call `number`, on the arena's operands of that number
  // Between the GPU's name and the times.
  std::function<Cells()> cells;
};
// Adds a row; false, with a reason for people, where there is none to add.
bool measure_kernel(const KernelBench& bench, const KernelWork& work);

inline constexpr int most_failures_in_a_row = 3;

// key(case): as the table's key; measure(case) adds a row, or returns false where nothing could be measured.
template <class Case, class Key, class Measure>
PartResult run_cases(const KernelBench& bench, const std::vector<Case>& cases, Key key, Measure measure) {
  PartResult result{.cases = static_cast<std::int64_t>(cases.size())};
  int failures = 0;
  for (const Case& one : cases) {
    if (bench.table.has(key(one))) {
      ++result.measured;
      continue;
    }
    if (bench.time_is_up())
      break;
    try {
      ++(measure(one) ? result.measured : result.left_out);
      failures = 0;
    } catch (const EnvironmentError& error) {
      bench.tell(error.what());
      ++result.left_out;
      if (++failures < most_failures_in_a_row)
        continue;
      bench.table.save();
      throw;
    }
  }
  bench.table.save();
  return result;
}

}  // namespace lockstep::harness
