// Products that run for seconds without a pause: how far a GPU falls from its highest clock when it is hot or
// at its power limit, which no short measurement shows.

#include <fmt/format.h>

#include <chrono>

#include "validate/harness/gpu_bench/cuda_parts.h"
#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {
namespace {

constexpr double seconds_each = 4;
constexpr double slice_seconds = 0.25;
constexpr double hold_seconds = 20e-6;

struct Slice {
  double since_begin = 0;  // seconds, at its end
  double seconds = 0;      // of one product
  std::optional<double> clock_mhz;
};

// The next slice is launched while one runs, so that the GPU never waits for the host.
std::vector<Slice> run_slices(Stage& stage, const std::function<void(std::int64_t)>& work) {
  Device& device = stage.device();
  work(0);
  const double estimate = time_of(device, [&] { work(1); });
  const auto calls = static_cast<std::int64_t>(slice_seconds / estimate) + 1;
  std::vector<Slice> slices;
  std::vector<Mark> marks = {device.mark()};
  std::int64_t call = 0;
  const auto launch_slice = [&] {
    for (std::int64_t end = call + calls; call < end; ++call) work(call);
    stage.hold(hold_seconds);  // a ten-thousandth of the slice, to see its clock
    marks.push_back(device.mark());
  };
  launch_slice();
  while (slices.empty() || slices.back().since_begin < seconds_each) {
    launch_slice();
    const std::size_t done = slices.size() + 1;
    const double seconds = device.seconds_between(marks[done - 1], marks[done]);
    slices.push_back({.since_begin = device.seconds_between(marks.front(), marks[done]),
                      .seconds = seconds / static_cast<double>(calls),
                      .clock_mhz = stage.clock_mhz()});
  }
  device.synchronize();
  device.forget_marks();
  return slices;
}

bool measure(const KernelBench& bench, const GemmCase& gemm) {
  Stage& stage = bench.stage_of(gemm.precision);
  if (!bench.arena.prepare(stage.device(), operands_of(gemm), type_of(gemm.precision)))
    return false;
  const auto work = [&](std::int64_t call) { stage.device().matmul(matmul_of(gemm, bench.arena, call)); };
  std::int64_t number = 0;
  for (const Slice& slice : run_slices(stage, work)) {
    Cells row = {bench.gpu};
    const Cells key = key_cells(gemm);
    row.insert(row.end(), key.begin(), key.end());
    row.insert(row.end(), {fmt::to_string(number++), fmt::format("{:.3f}", slice.since_begin),
                           microseconds(slice.seconds * 1e6), bench.source, clock_text(slice.clock_mhz)});
    bench.table.add(row);
  }
  return true;
}

}  // namespace

TableLayout sustained_layout() {
  TableLayout layout = gemm_layout();
  layout.columns = {"gpu",       "precision", "batch",         "m",       "n",      "k",        "layout",
                    "direction", "slice",     "since_begin_s", "time_us", "source", "clock_mhz"};
  layout.key.emplace_back("slice");
  return layout;
}

PartResult measure_sustained(const KernelBench& bench, const std::vector<GemmCase>& cases) {
  const auto first_row_key = [](const GemmCase& gemm) {
    Cells key = key_cells(gemm);
    key.emplace_back("0");
    return key;
  };
  return run_cases(bench, cases, first_row_key, [&](const GemmCase& gemm) { return measure(bench, gemm); });
}

}  // namespace lockstep::harness
