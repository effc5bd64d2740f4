#pragma once

// One timed kernel, whoever timed it and in whatever table.
//
// Idea:      what was run stands as its shape, how it was run as its precision and direction; who reads
//            tables knows no model of computing, and who predicts knows no tables.
// Invariant: shapes are in range, so that FLOPs and bytes fit 64 bits; times are above zero.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/precision.h"

namespace lockstep {

// Times `batch`: m x k by k x n.
struct GemmShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};

struct ConvolutionShape {
  std::int64_t batch = 1, in_channels = 1, height = 1, width = 1, out_channels = 1;
  std::int64_t filter_height = 1, filter_width = 1, stride_height = 1, stride_width = 1;
  std::int64_t pad_height = 0, pad_width = 0;

  std::int64_t out_height() const { return (height + 2 * pad_height - filter_height) / stride_height + 1; }
  std::int64_t out_width() const { return (width + 2 * pad_width - filter_width) / stride_width + 1; }
};

struct AttentionShape {
  std::int64_t batch = 1, sequence = 1, heads = 1, kv_heads = 1;
  std::int64_t query_width = 1;  // of one head; keys have the same
  std::int64_t value_width = 1;
  bool is_causal = true;
};

// An operator that computes next to nothing for each number it reads.
struct MemoryBoundShape {
  std::string op;  // as memory_bound_cost knows it, or as the table says
  std::int64_t elements = 1;
  std::int64_t width = 1;  // of what is normalised
};

// A whole training step of one GPU.
struct StepShape {
  std::string model;
  std::int64_t batch = 1;
};

using KernelShape = std::variant<GemmShape, ConvolutionShape, AttentionShape, MemoryBoundShape, StepShape>;

enum class KernelDirection : std::uint8_t { forward, backward, by_data, by_weights, step };

struct KernelCase {
  std::string table = {};  // "gemm": the file's name without its ending
  std::int64_t line = 0;
  std::string gpu = {};                    // as the table says
  std::string precision = {};              // as the table says; empty: it does not
  Precision multiplied = Precision::fp32;  // what that is to a multiplication unit
  std::int64_t element_bytes = 4;
  KernelDirection direction = KernelDirection::forward;
  KernelShape shape = {};
  Duration time = {};
  std::string source = {};
};

std::string_view name_of(KernelDirection direction);

// "gemm:17 1 x 128 x 128 x 64": the table's place and the shape.
std::string describe(const KernelCase& kernel);

}  // namespace lockstep
