#include "validate/harness/gpu_bench/attention_cases.h"

#include <fmt/format.h>

namespace lockstep::harness {
namespace {

constexpr std::int64_t tokens = 8192;
constexpr std::int64_t hidden = 2048;

void append_both(std::vector<AttentionCase>& cases, AttentionCase attention) {
  attention.is_backward = false;
  cases.push_back(attention);
  attention.is_backward = true;
  cases.push_back(attention);
}

}  // namespace

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> cases;
  for (const std::string precision : {"bf16", "fp16", "tf32", "fp32"}) {
    append_both(cases, {.precision = precision, .batch = 8, .sequence = 1024, .heads = 12, .head_width = 64});
    for (const std::int64_t width : {128, 64})
      for (std::int64_t sequence = 512; sequence <= tokens; sequence *= 2)
        append_both(cases, {.precision = precision,
                            .batch = tokens / sequence,
                            .sequence = sequence,
                            .heads = hidden / width,
                            .head_width = width});
  }
  return cases;
}

TableLayout attention_layout() {
  return {
      .columns = {"gpu", "precision", "batch", "seq", "heads", "kv_heads", "head_dim", "causal", "direction",
                  "kernel", "time_us", "source", "p10", "p90", "clock_mhz", "cold"},
      .key = {"precision", "batch", "seq", "heads", "kv_heads", "head_dim", "causal", "direction", "kernel"}};
}

Cells key_cells(const AttentionCase& attention, const std::string& kernel) {
  const std::string heads = fmt::to_string(attention.heads);
  return {attention.precision,
          fmt::to_string(attention.batch),
          fmt::to_string(attention.sequence),
          heads,
          heads,
          fmt::to_string(attention.head_width),
          "1",
          attention.is_backward ? "bwd" : "fwd",
          kernel};
}

}  // namespace lockstep::harness
