#pragma once

// Which attentions are timed: causal, 512 to 8192 tokens, heads of 64 and 128, forward and backward.
//
// Idea:      the number of tokens stays the same while sequences grow, so that rows compare what a token
//            costs. GPT-2's own micro-batch stands first.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/gpu_bench/measurement_table.h"

namespace lockstep::harness {

struct AttentionCase {
  std::string precision;
  std::int64_t batch = 1;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  bool is_backward = false;
};

std::vector<AttentionCase> attention_cases();

TableLayout attention_layout();
Cells key_cells(const AttentionCase& attention, const std::string& kernel);

}  // namespace lockstep::harness
