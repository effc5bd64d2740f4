#pragma once

// Which products of matrices are timed: those of real layers, most valuable first.
//
// Idea:      a network is a handful of linear layers; a layer is three products (forward, by data, by
//            weights); tensor parallelism over t GPUs divides a column layer's outputs and a row layer's
//            inputs by t. Networks first in bf16 on one GPU, then in the other precisions, then the parts
//            that tensor parallelism leaves of them.
// Invariant: no product stands twice. Matrices are row-major: "NT" is A [m, k] times B stored [n, k], which
//            is a forward y = x W' with weights [outputs, inputs]; by data is NN, by weights TN.
// Reference: sizes as in models/*.json; Shoeybi et al. 1909.08053 for what tensor parallelism divides.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/gpu_bench/measurement_table.h"

namespace lockstep::harness {

enum class Split : std::uint8_t { column, row };

struct LinearShape {
  std::string name;       // "llama2_7b query"
  std::int64_t rows = 0;  // tokens or samples
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  Split split = Split::column;
  std::int64_t count = 1;  // how many of them a block of the network has
};

struct TransformerShape {
  std::string name;
  std::int64_t tokens = 0;  // of a micro-batch
  std::int64_t sequence = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;
  bool is_gated = false;
  bool is_joined = false;  // query, key and value are one layer
};

struct GemmCase {
  std::string precision;  // bf16, fp16, tf32, fp32
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string layout;     // NN, NT, TN
  std::string direction;  // fwd, bwd_data, bwd_weight
};

const std::vector<TransformerShape>& benched_transformers();
std::vector<LinearShape> block_layers_of(const TransformerShape& network);
LinearShape head_of(const TransformerShape& network);
// As one of `ways` GPUs has it; what cannot be divided evenly stays whole.
LinearShape divided(LinearShape layer, std::int64_t ways);
std::vector<GemmCase> products_of(const LinearShape& layer, const std::string& precision);

std::vector<GemmCase> gemm_cases();
// Large ones, run for seconds: where a GPU leaves its highest clock.
std::vector<GemmCase> sustained_cases();

TableLayout gemm_layout();
Cells key_cells(const GemmCase& gemm);

}  // namespace lockstep::harness
