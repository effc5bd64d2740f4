#include "validate/harness/gpu_bench/memory_cases.h"

#include <fmt/format.h>

namespace lockstep::harness {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
// Of the main tensor, in bytes: what layers have first.
constexpr std::int64_t sizes[] = {64 * mebibyte,   16 * mebibyte, 256 * mebibyte, 4 * mebibyte,
                                  1024 * mebibyte, mebibyte,      mebibyte / 4,   mebibyte / 16};
constexpr std::int64_t most_hot_bytes = 4 * mebibyte;

void append(std::vector<MemoryCase>& cases, const MemoryOp& op, const std::string& precision,
            std::int64_t bytes) {
  if (op.is_fp32_only && precision != "fp32")
    return;
  MemoryCase memory{.precision = precision, .op = op.name, .hidden = op.hidden};
  memory.rows = bytes / (precision == "fp32" ? 4 : 2) / op.hidden;
  if (memory.rows == 0)
    return;
  for (const bool is_backward : {false, true})
    for (const bool is_cold : {true, false}) {
      if ((is_backward && !op.has_backward) || (!is_cold && (!op.has_hot || bytes > most_hot_bytes)))
        continue;
      memory.is_backward = is_backward;
      memory.is_cold = is_cold;
      cases.push_back(memory);
    }
}

}  // namespace

const std::vector<MemoryOp>& memory_ops() {
  static const std::vector<MemoryOp> ops = {
      {.name = "copy"},
      {.name = "add"},
      {.name = "layer_norm", .has_backward = true},
      {.name = "gelu", .has_backward = true},
      {.name = "relu", .has_backward = true},
      {.name = "batch_norm", .hidden = 256, .has_backward = true},
      {.name = "adamw", .is_fp32_only = true},
      {.name = "sgd", .is_fp32_only = true},
      {.name = "momentum", .is_fp32_only = true},
      {.name = "causal_softmax", .has_backward = true},
      {.name = "cross_entropy", .hidden = 50257},
      {.name = "embedding", .hidden = 768, .has_backward = true, .has_hot = false},
      {.name = "cast"},
      {.name = "add_bias"},
      {.name = "sum_columns"},
      {.name = "layer_norm", .hidden = 8192, .has_backward = true},
      {.name = "batch_norm", .hidden = 64, .has_backward = true},
      {.name = "batch_norm", .hidden = 2048, .has_backward = true}};
  return ops;
}

std::vector<MemoryCase> memory_cases() {
  std::vector<MemoryCase> cases;
  for (const std::string precision : {"bf16", "fp32", "fp16"})
    for (const std::int64_t bytes : sizes)
      for (const MemoryOp& op : memory_ops()) append(cases, op, precision, bytes);
  return cases;
}

TableLayout memory_layout() {
  return {.columns = {"gpu", "precision", "op", "rows", "hidden", "direction", "kernel", "time_us", "source",
                      "p10", "p90", "clock_mhz", "cold"},
          .key = {"precision", "op", "rows", "hidden", "direction", "cold"}};
}

Cells key_cells(const MemoryCase& memory) {
  return {memory.precision,
          memory.op,
          fmt::to_string(memory.rows),
          fmt::to_string(memory.hidden),
          memory.is_backward ? "bwd" : "fwd",
          memory.is_cold ? "1" : "0"};
}

}  // namespace lockstep::harness
