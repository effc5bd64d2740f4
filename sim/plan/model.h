#pragma once

// A neural network as the simulator sees it: tensors to reduce, work to do, bytes to keep.
//
// Problem:   training strategies need gradient sizes and their order, pricing needs work and shapes of kernels,
//            memory needs what backward keeps; none of them may know what a ResNet is.
// Idea:      one flat list of layers in forward order, one per operation that launches kernels; families
//            under models/ write it, everybody else reads it.
// Invariant: work is per sample (one image, one sequence) and counts one pass over memory per kernel;
//            weights count once per batch. Each parameter belongs to exactly one layer: the one whose
//            backward completes its gradient (a tied tensor: the last of them). All sums fit int64.
// Reference: Korthikanti et al. 2205.05198 (activations), torchvision and Hugging Face (names, order).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/kernel.h"

namespace lockstep {

struct ParameterTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
};

struct BufferTensor {
  std::string name;
  std::int64_t elements = 0;
  int element_bytes = 4;
};

// matmul: convolution, linear. vector: everything bound by memory: norm, activation, pooling, softmax,
// residual, embedding, loss.
enum class LayerKind : std::uint8_t { matmul, attention, vector };

// How tensor parallelism cuts a layer over t ranks (Megatron's scheme):
//   replicated: every rank does all of it (norms, dropout, residuals; sequence parallelism cuts these);
//   column:     weights, work and output divided by t, the kept input is not; backward sums its input
//   gradient; row:        weights, work and kept input divided by t; forward sums its output over the ranks;
//   local:      everything divided by t, nothing to sum (attention by heads, activations).
// Where what comes in is not divided (a classifier's loss) nothing of a local layer is.
enum class TensorSplit : std::uint8_t { replicated, column, row, local };

// What the primitives of an operator pass over in one direction, per sample.
struct PrimitiveWork {
  std::int64_t elements = 0;
  std::int64_t wide_elements = 0;  // in fp32, whatever the precision
  std::int64_t cast_elements = 0;  // between fp32 and half precision; nothing in fp32
  int kernels = 0;
  int casts = 0;

  // Of one sample, read and written.
  std::int64_t bytes(std::int64_t element_bytes) const {
    constexpr std::int64_t wide = 4;
    const std::int64_t casting = element_bytes < wide ? cast_elements * (element_bytes + wide) : 0;
    return elements * element_bytes + wide_elements * wide + casting;
  }
  std::int64_t launches(std::int64_t element_bytes) const {
    constexpr std::int64_t wide = 4;
    return kernels + (element_bytes < wide ? casts : 0);
  }
};

// Who has no kernel of its own for an operator: frameworks of primitives; all that run operators; a mixture's router or
// permutation that is not fused.
enum class ComposedBy : std::uint8_t { primitives, operators, router, permutation };

// An operator where a framework has no kernel of its own for it. Of a product: what comes beside its kernel.
struct Composition {
  PrimitiveWork forward;
  PrimitiveWork backward;
  std::int64_t kept_elements = 0;  // for backward, beside what the operator's own kernel keeps
  ComposedBy by = ComposedBy::primitives;
};

// What PyTorch's autocast moves beside that, of a sample: fp32 where all else has half precision, and casts.
struct AutocastWork {
  std::int64_t bytes = 0;
  int casts = 0;  // kernels; their bytes are among those above
  // Scores whose cast is among them, and that a softmax of fp16 casts itself.
  std::int64_t softmax_of_half = 0;
};

// Who writes what each element does by itself into the kernel that has made it. Of a library's product nobody, of tokens'
// norms, softmax and embeddings a compiler, of all else also who writes kernels by hand.
enum class MergedBy : std::uint8_t { nobody, compiler, everybody };

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::vector;
  TensorSplit split = TensorSplit::replicated;
  int block = -1;  // the transformer layer or residual block it belongs to; -1 outside of all

  // Tensors whose gradient is complete when this layer's backward ends, in the order autograd adds them.
  std::vector<std::uint32_t> parameters = {};

  // Per sample. A multiply-add is 2 operations; vector layers count none.
  std::int64_t forward_flops = 0;
  std::int64_t backward_input_flops = 0;   // B: gradient of the input
  std::int64_t backward_weight_flops = 0;  // W: gradient of the weights
  std::int64_t forward_elements = 0;       // activations read and written
  std::int64_t backward_elements = 0;      // activations and their gradients read and written, B and W
  std::int64_t saved_elements = 0;         // activations kept for backward that no earlier layer keeps
  std::int64_t saved_bytes = 0;  // kept whatever the precision: dropout masks (1 B), pool indices (8 B)
  std::int64_t repeatable_elements = 0;  // of those saved, what is pointwise of others that are saved
  std::int64_t eager_bytes = 0;          // what one kernel for each operator keeps besides
  std::int64_t autocast_bytes = 0;       // and what PyTorch's autocast keeps in fp32, or casts once more
  std::int64_t softmax_elements = 0;     // of a softmax: PyTorch before 1.11 keeps its input as well
  std::int64_t gelu_elements = 0;        // of a GELU: autocast before PyTorch 1.10 takes it in fp32

  // Per batch.
  std::int64_t weight_elements = 0;    // parameters read by forward, and again by B
  std::int64_t gradient_elements = 0;  // parameter gradients written by backward

  // The product that a sample makes, whose kernels these are; its counts above are of the same product. Beside
  // its products a backward may pass over memory: bias gradients, gradients that are added.
  std::optional<ProductShape> product = {};
  std::int64_t backward_pass_elements = 0;
  int backward_passes = 0;

  // Of its output, where each element depends on its own place alone: such a layer may be a part of the kernel before
  // it. 0: it is none.
  std::int64_t pointwise_elements = 0;
  MergedBy merged_by = MergedBy::everybody;
  // Its elements lie otherwise, and products of strided matrices read them where they lay: operators alone copy them.
  bool is_view_forward = false;
  bool is_view_backward = false;
  // What an eager framework's kernels pass over once more: norms read their rows again, and a layer of several operators
  // has so many kernels more.
  std::int64_t eager_forward_elements = 0;
  std::int64_t eager_backward_elements = 0;
  int eager_forward_kernels = 0;
  int eager_backward_kernels = 0;

  std::optional<Composition> composition = {};  // none: every framework has a kernel for it
  AutocastWork autocast_forward = {};
  AutocastWork autocast_backward = {};

  int forward_kernels = 1;
  int backward_kernels = 1;
  bool is_rotary = false;  // turns queries or keys by their place
  bool is_loss = false;    // compares an output of the model with what it should be
  // Of a mixture, this rank's: its rows are the tokens routed to them, its products one for each. 0: of none.
  std::int64_t experts = 0;
  bool is_expert() const { return experts > 0; }
  bool is_convolution() const { return product && std::holds_alternative<ConvolutionShape>(*product); }
  // A product of a block's own weights: what frameworks make in fp8.
  bool is_product_of_block() const {
    return block >= 0 && weight_elements > 0 && product && std::holds_alternative<GemmShape>(*product);
  }
};

// What keeps a mixture's experts evenly busy, in Megatron-LM's words: a loss beside the loss, tokens dealt by
// Sinkhorn's iterations, nothing.
enum class RouterBalancing : std::uint8_t { aux_loss, sinkhorn, none };

// Layers whose feed-forward part is a mixture of experts. No experts: no layer is.
struct MixtureSizes {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t ffn = 0;               // of one expert
  std::int64_t shared_ffn = 0;        // of the experts that every token visits, all together
  std::int64_t dense_layers = 0;      // the first so many have no mixture
  std::int64_t capacity_percent = 0;  // of an even share, what each expert computes, padded; 0: what comes
  RouterBalancing balancing = RouterBalancing::aux_loss;
  std::int64_t groups = 1;            // of experts, which the router chooses first
  std::int64_t groups_per_token = 1;  // of these, which it then chooses experts of

  bool operator==(const MixtureSizes&) const = default;
};

// Attention whose keys and values come out of one narrow vector (DeepSeek). No rank: attention is plain.
struct LatentSizes {
  std::int64_t query_rank = 0;  // 0: queries are not narrowed
  std::int64_t kv_rank = 0;
  std::int64_t rope_width = 0;  // of each query and key, what is turned by its place, beside the head's width
  std::int64_t value_width = 0;  // of one head

  bool operator==(const LatentSizes&) const = default;
};

// What a strategy that cuts inside a transformer needs: heads to divide, states to exchange.
struct TransformerSizes {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;
  bool causal = true;  // FLOPs below count the full square, as MFU does; fused kernels skip half of it
  bool fused_attention = true;  // no sequence x sequence matrix is ever stored
  bool says_attention = true;   // whether the model's file says so, rather than its style
  std::int64_t head_width = 0;  // 0: hidden / heads
  MixtureSizes mixture = {};
  LatentSizes latent = {};

  std::int64_t width_of_head() const {
    return head_width > 0 ? head_width : hidden / (heads > 0 ? heads : 1);
  }
  std::int64_t query_width() const { return heads > 0 ? width_of_head() * heads : hidden; }
  std::int64_t kv_width() const { return width_of_head() * kv_heads; }
};

struct Model {
  std::string name;
  std::string family;
  std::string source;
  std::vector<ParameterTensor> parameters;  // in registration order, PyTorch names
  std::vector<BufferTensor> buffers;
  std::vector<Layer> layers;           // in forward order
  std::int64_t tokens_per_sample = 0;  // 0 for images
  std::int64_t input_bytes = 0;        // a sample as it reaches the GPU: fp32 pixels, int64 tokens
  std::int64_t output_elements = 0;    // of a sample, that its losses are taken of
  std::optional<TransformerSizes> transformer;
};

std::int64_t parameter_count(const Model& model);
std::int64_t buffer_bytes(const Model& model);

// Per sample, over all layers. Backward is B and W together.
std::int64_t forward_flops(const Model& model);
std::int64_t backward_flops(const Model& model);

}  // namespace lockstep
