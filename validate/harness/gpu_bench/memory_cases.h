#pragma once

// Which kernels bound by memory are timed: the harness's own, by class and size.
//
// Idea:      one class after another at each size, 64 KiB to 1 GiB of the main tensor, the sizes that layers
//            have first; cold, and once more with its operands in the cache where they fit.
// Invariant: a case's tensor has `rows` rows of `hidden` elements. Optimizers work on fp32 whatever the
//            precision of a step, and are timed in fp32 alone.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/gpu_bench/measurement_table.h"

namespace lockstep::harness {

struct MemoryCase {
  std::string precision;  // bf16, fp16, fp32
  std::string op;
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  bool is_backward = false;
  bool is_cold = true;
};

struct MemoryOp {
  std::string name;
  std::int64_t hidden = 1024;
  bool has_backward = false;
  bool is_fp32_only = false;
  bool has_hot = true;  // all it reads may be in the cache
};

const std::vector<MemoryOp>& memory_ops();
std::vector<MemoryCase> memory_cases();

TableLayout memory_layout();
Cells key_cells(const MemoryCase& memory);

}  // namespace lockstep::harness
