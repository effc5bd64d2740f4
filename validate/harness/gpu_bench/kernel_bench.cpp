#include "validate/harness/gpu_bench/kernel_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sim/base/check.h"

namespace lockstep::harness {
namespace {

void leave_out(const KernelBench& bench, const KernelWork& work, const char* reason) {
  bench.tell(fmt::format("{} {}: left out, {}", work.part, fmt::join(work.key, " "), reason));
}

void append(Cells& row, const Cells& cells) {
  row.insert(row.end(), cells.begin(), cells.end());
}

}  // namespace

Type type_of(const std::string& precision) {
  if (precision == "bf16")
    return Type::bf16;
  if (precision == "fp16")
    return Type::fp16;
  LOCKSTEP_CHECK(precision == "fp32" || precision == "tf32", "cases have one of four precisions");
  return Type::fp32;
}

// To nanoseconds.
std::string microseconds(double value) {
  return fmt::format("{:.3f}", value);
}

std::string clock_text(const std::optional<double>& megahertz) {
  return megahertz ? fmt::format("{:.0f}", *megahertz) : "";
}

Cells time_cells(const KernelBench& bench, const KernelTime& time, bool is_cold) {
  return {microseconds(time.median_us), bench.source,
          microseconds(time.p10_us),    microseconds(time.p90_us),
          clock_text(time.clock_mhz),   is_cold ? "1" : "0"};
}

bool measure_kernel(const KernelBench& bench, const KernelWork& work) {
  Stage& stage = bench.stage_of(work.precision);
  if (!bench.arena.prepare(stage.device(), work.operands, type_of(work.precision), work.is_cold)) {
    leave_out(bench, work, "it does not fit the memory at hand");
    return false;
  }
  const std::optional<KernelTime> time = time_held(stage, work.run);
  if (!time) {
    leave_out(bench, work, "the host is slower than the GPU");
    return false;
  }
  Cells row = {bench.gpu};
  append(row, work.cells());
  append(row, time_cells(bench, *time, work.is_cold));
  bench.table.add(std::move(row));
  return true;
}

}  // namespace lockstep::harness
