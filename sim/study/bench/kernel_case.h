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
#include "sim/plan/kernel.h"
#include "sim/plan/precision.h"

namespace lockstep {

// An operator that computes next to nothing for each number it reads.
struct MemoryBoundShape {
  std::string op;  // as memory_bound_cost knows it, or as the table says
  std::int64_t elements = 1;
  std::int64_t width = 1;  // of what is normalised
  bool is_fused = false;   // by a library or compiler; eager norms and softmax take more passes
};

// A whole training step of one GPU.
struct StepShape {
  std::string model;
  std::int64_t batch = 1;
  bool is_channels_last = false;
  bool is_of_pytorch_1 = false;  // whose attention is several kernels
};

using KernelShape = std::variant<GemmShape, ConvolutionShape, AttentionShape, MemoryBoundShape, StepShape>;

struct KernelCase {
  std::string table = {};  // "gemm": the file's name without its ending
  std::int64_t line = 0;
  std::string gpu = {};                    // as the table says
  std::string precision = {};              // as the table says; empty: it does not
  Precision multiplied = Precision::fp32;  // what that is to a multiplication unit
  std::int64_t element_bytes = 4;
  KernelDirection direction = KernelDirection::forward;
  // A product that is timed as such: its operands lie as in this pass of a linear layer.
  KernelDirection operands = KernelDirection::forward;
  KernelShape shape = {};
  Duration time = {};
  bool is_cold = false;              // its operands were not in a cache
  bool is_of_server = false;         // attention whose row names no kernel
  bool has_unknown_library = false;  // attention of a server, and nothing tells of which
  std::string source = {};
};

std::string_view name_of(KernelDirection direction);

// "gemm:17 1 x 128 x 128 x 64": the table's place and the shape.
std::string describe(const KernelCase& kernel);

}  // namespace lockstep
