#pragma once

// One kernel that a layer launches: what it multiplies, and which way.
//
// Problem:   FLOPs do not say how long a product takes: a thin one and a square one of the same FLOPs differ
//            by a factor of five.
// Idea:      a kernel is its shape, as the libraries that run it are called with it. Directions are those of
//            the layer; which operands a backward product has follows from the forward shape.
// Invariant: shapes are in range, so that FLOPs and bytes fit 64 bits.
// Reference: BLAS (gemm), cuDNN (convolution), Dao et al. 2205.14135 (attention without its square).

#include <compare>
#include <cstdint>
#include <variant>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

// Times `batch`: m x k by k x n.
struct GemmShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  auto operator<=>(const GemmShape&) const = default;
};

struct ConvolutionShape {
  std::int64_t batch = 1, in_channels = 1, height = 1, width = 1, out_channels = 1;
  std::int64_t filter_height = 1, filter_width = 1, stride_height = 1, stride_width = 1;
  std::int64_t pad_height = 0, pad_width = 0;
  std::int64_t groups = 1;
  bool is_channels_last = false;  // pixel by pixel in memory
  auto operator<=>(const ConvolutionShape&) const = default;

  bool is_depthwise() const { return groups > 1 && groups == in_channels; }
  std::int64_t out_height() const { return (height + 2 * pad_height - filter_height) / stride_height + 1; }
  std::int64_t out_width() const { return (width + 2 * pad_width - filter_width) / stride_width + 1; }
};

// Whose kernel it is: of FlashAttention's family as servers run it or cuDNN's of Hopper and later; FlashAttention-2,
// which frameworks train with and which uses nothing that came after Ampere; TensorRT-LLM's.
enum class AttentionLibrary : std::uint8_t { flash_attention, flash_attention_2, tensorrt_llm };

// One kernel from queries, keys and values to the output: no square matrix is stored.
struct AttentionShape {
  std::int64_t batch = 1, sequence = 1, heads = 1, kv_heads = 1;
  std::int64_t query_width = 1;  // of one head; keys have the same
  std::int64_t value_width = 1;
  bool is_causal = true;
  bool fills_cache = false;  // in serving: keys and values are written to a cache on the way
  // That a query meets; 0: as many as there are queries. A causal rank that holds a balanced part of the
  // queries meets half of them in the mean.
  std::int64_t keys = 0;
  AttentionLibrary library = AttentionLibrary::flash_attention;
  auto operator<=>(const AttentionShape&) const = default;

  std::int64_t keys_of_query() const { return keys > 0 ? keys : sequence; }
};

using ProductShape = std::variant<GemmShape, ConvolutionShape, AttentionShape>;

// backward: by the data and by the weights, one after the other.
enum class KernelDirection : std::uint8_t { forward, backward, by_data, by_weights, step };

struct Kernel {
  ProductShape shape;
  KernelDirection direction = KernelDirection::forward;
  // Elements from one matrix of a batch to the next, where their rows lie between one another's; 0: they follow.
  std::int64_t interleaved_by = 0;
  auto operator<=>(const Kernel&) const = default;
};

// Products one after another.
struct RunTime {
  Duration whole;
  Duration starts;  // of that, what their kernels take to start
};

// What `samples` samples make of the shape that one has: a product with weights grows in rows, any other in
// number.
ProductShape for_samples(const ProductShape& shape, std::int64_t samples, bool has_weights);

}  // namespace lockstep
