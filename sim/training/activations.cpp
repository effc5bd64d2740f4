#include "sim/training/activations.h"

#include <algorithm>
#include <span>
#include <variant>

#include "sim/training/torch_version.h"

namespace lockstep {
namespace {

constexpr std::int64_t wide = 4;  // bytes of an fp32 element

// Bytes of a logit: from its forward to its backward, and besides while that runs.
struct LossBytes {
  std::int64_t kept = 0;
  std::int64_t in_backward = 0;
};

// eager: the logits, whose caller holds them, and their log-probabilities; the gradients of these and of the
// logits in fp32. compiled: the logits; their gradient in fp32 and as they are. fused: the probabilities, which
// become their gradient in place, and that as the logits are.
LossBytes loss_bytes(KernelStyle kernels, std::int64_t element_bytes) {
  switch (kernels) {
    case KernelStyle::eager:
    case KernelStyle::primitives:
      return {.kept = element_bytes + wide, .in_backward = 2 * wide};
    case KernelStyle::compiled:
      return {.kept = element_bytes, .in_backward = wide + (element_bytes < wide ? element_bytes : 0)};
    case KernelStyle::fused:
      break;
  }
  return {.kept = wide, .in_backward = element_bytes};
}

class Activations {
 public:
  Activations(const Model& model, const BatchUse& use, const TrainingSpec& training)
      : model_(model),
        element_bytes_(activation_bytes(use.precision)),
        loss_(loss_bytes(use.kernels, element_bytes_)),
        runs_operators_(runs_operators(use.kernels)),
        is_composed_(use.kernels == KernelStyle::primitives),
        is_compiled_(use.kernels == KernelStyle::compiled),
        is_autocast_(use.kernels == KernelStyle::eager && is_mixed(use.precision)),
        keeps_softmax_input_(use.kernels == KernelStyle::eager && is_torch_before(training, 1, 11)),
        keeps_wide_gelu_(is_autocast_ && is_torch_before(training, 1, 10)) {}

  std::int64_t of_layer(std::uint32_t index) const {
    const Layer& layer = model_.layers[index];
    if (layer.is_loss)
      return layer.saved_elements * loss_.kept;
    if (is_compiled_)
      return (layer.saved_elements - layer.repeatable_elements) * element_bytes_ +
             (layer.pointwise_elements > 0 ? 0 : layer.saved_bytes);
    return input_of(layer) + (runs_operators_ ? layer.eager_bytes : 0) + of_composition(layer) +
           of_older_releases(layer);
  }

  // Of a run that is computed again: the input of its first layer, which nothing before it need keep.
  std::int64_t kept_of(std::span<const std::uint32_t> run) const {
    const std::uint32_t first = run.front();
    if (model_.layers[first].kind != LayerKind::attention || !model_.transformer)
      return input_of(model_.layers[first]);
    return run.size() == 1 ? std::min(of_layer(first), queries_keys_values()) : queries_keys_values();
  }

  // Of a layer whose block runs again but for it: its output.
  std::int64_t output_of(std::uint32_t index) const {
    const ProductShape& shape = *model_.layers[index].product;
    if (const auto* attention = std::get_if<AttentionShape>(&shape))
      return attention->sequence * attention->heads * attention->value_width * element_bytes_;
    const GemmShape& product = std::get<GemmShape>(shape);
    return product.batch * product.m * product.n * element_bytes_;
  }

  // The gradients that one kernel reads and writes: as large as what its forward wrote and read.
  std::int64_t in_backward(std::uint32_t index) const {
    const Layer& layer = model_.layers[index];
    if (layer.is_loss)
      return layer.saved_elements * loss_.in_backward;
    return layer.forward_elements / std::max(layer.forward_kernels, 1) * element_bytes_ +
           query_accumulators(layer);
  }

 private:
  std::int64_t input_of(const Layer& layer) const {
    return layer.saved_elements * element_bytes_ + layer.saved_bytes +
           (is_autocast_ ? layer.autocast_bytes : 0);
  }

  std::int64_t of_composition(const Layer& layer) const {
    if (!layer.composition)
      return 0;
    const bool is_of_operators = runs_operators_ && layer.composition->by == ComposedBy::operators;
    return is_composed_ || is_of_operators ? layer.composition->kept_elements * element_bytes_ : 0;
  }

  std::int64_t of_older_releases(const Layer& layer) const {
    return (keeps_softmax_input_ ? layer.softmax_elements * element_bytes_ : 0) +
           (keeps_wide_gelu_ ? layer.gelu_elements * (wide - element_bytes_) : 0);
  }

  // Fused attention adds up the gradient of its queries in fp32.
  std::int64_t query_accumulators(const Layer& layer) const {
    const auto* shape = layer.product ? std::get_if<AttentionShape>(&*layer.product) : nullptr;
    return shape == nullptr ? 0 : wide * shape->sequence * shape->heads * shape->query_width;
  }

  std::int64_t queries_keys_values() const {
    const TransformerSizes& sizes = *model_.transformer;
    return model_.tokens_per_sample * (sizes.query_width() + 2 * sizes.kv_width()) * element_bytes_;
  }

  const Model& model_;
  std::int64_t element_bytes_;
  LossBytes loss_;
  bool runs_operators_;
  bool is_composed_;
  bool is_compiled_;
  bool is_autocast_;
  bool keeps_softmax_input_;
  bool keeps_wide_gelu_;
};

}  // namespace

void describe_activations(Job& job, const Model& model, const BatchUse& use) {
  const Activations activations(model, use, job.training);
  for (std::uint32_t layer = 0; layer < model.layers.size(); ++layer) {
    LayerWork& work = job.layers[layer];
    work.kept = work.activations = Bytes{activations.of_layer(layer)} * use.samples;
    work.backward_workspace = Bytes{activations.in_backward(layer)} * use.samples;
  }
  for (std::uint32_t layer = 0; layer < model.layers.size(); ++layer) {
    LayerWork& work = job.layers[layer];
    if (!work.is_saved)
      continue;
    // What it reads is there again in time for its backward; a block's own input never went.
    const bool begins_block = layer == 0 || model.layers[layer - 1].block != model.layers[layer].block;
    const Bytes read = begins_block ? Bytes{0} : work.activations;
    work.backward_workspace += read;
    work.kept = work.activations =
        Bytes{activations.output_of(layer)} * use.samples + (work.activations - read);
  }
  for (const LayerWork& last : job.layers) {
    for (const std::uint32_t again : last.recomputed) job.layers[again].kept = Bytes{0};
    if (!last.recomputed.empty())
      job.layers[last.recomputed.front()].kept = Bytes{activations.kept_of(last.recomputed)} * use.samples;
  }
}

}  // namespace lockstep
