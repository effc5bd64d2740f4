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

  std::int64_t of_run(const std::vector<std::uint32_t>& run) const {
    std::int64_t bytes = 0;
    for (const std::uint32_t layer : run) bytes += of_layer(layer);
    return bytes;
  }

  std::int64_t kept_of_run(const std::vector<std::uint32_t>& run) const {
    const std::uint32_t first = run.front();
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

std::int64_t kept_activation_bytes(const Model& model, const Job& job, Precision precision) {
  const Activations activations(model, precision);
  std::int64_t kept = 0;
  std::int64_t largest_again = 0;
  for (std::uint32_t layer = 0; layer < model.layers.size(); ++layer) kept += activations.of_layer(layer);
  for (const LayerWork& layer : job.layers) {
    if (layer.recomputed.empty())
      continue;
    const std::int64_t forgotten =
        activations.of_run(layer.recomputed) - activations.kept_of_run(layer.recomputed);
    kept -= forgotten;
    largest_again = std::max(largest_again, forgotten);
  }
  return kept + largest_again;
}

}  // namespace lockstep
