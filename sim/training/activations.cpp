#include "sim/training/activations.h"

#include <algorithm>

namespace lockstep {
namespace {

class Activations {
 public:
  Activations(const Model& model, Precision precision)
      : model_(model), element_bytes_(activation_bytes(precision)) {}

  std::int64_t of_layer(std::uint32_t layer) const {
    return model_.layers[layer].saved_elements * element_bytes_ + model_.layers[layer].saved_bytes;
  }

  // Of the first layer of a run that is computed again: its input.
  std::int64_t kept_of(std::uint32_t first) const {
    if (model_.layers[first].kind != LayerKind::attention || !model_.transformer)
      return of_layer(first);
    return std::min(of_layer(first), queries_keys_values());
  }

 private:
  std::int64_t queries_keys_values() const {
    const TransformerSizes& sizes = *model_.transformer;
    const std::int64_t heads = std::max<std::int64_t>(sizes.heads, 1);
    const std::int64_t width = sizes.hidden + 2 * sizes.hidden / heads * sizes.kv_heads;
    return model_.tokens_per_sample * width * element_bytes_;
  }

  const Model& model_;
  std::int64_t element_bytes_;
};

}  // namespace

void describe_activations(Job& job, const Model& model, Precision precision, std::int64_t samples) {
  const Activations activations(model, precision);
  for (std::uint32_t layer = 0; layer < model.layers.size(); ++layer)
    job.layers[layer].kept = job.layers[layer].activations = Bytes{activations.of_layer(layer)} * samples;
  for (const LayerWork& last : job.layers) {
    for (const std::uint32_t again : last.recomputed) job.layers[again].kept = Bytes{0};
    if (!last.recomputed.empty())
      job.layers[last.recomputed.front()].kept =
          Bytes{activations.kept_of(last.recomputed.front())} * samples;
  }
}

}  // namespace lockstep
