#include "sim/training/parallel_model.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/base/units.h"
#include "sim/training/context_slice.h"
#include "sim/training/expert_slice.h"
#include "sim/training/layer_slice.h"
#include "sim/training/parameter_slice.h"
#include "sim/training/sliced_layer.h"
#include "sim/training/tensor_exchanges.h"

namespace lockstep {
namespace {

// Reads the same tensor as the layer before it: who kept it first pays for it.
bool shares_input(const Layer& layer, const Layer& before) {
  return layer.split == TensorSplit::column && before.split == TensorSplit::column && is_linear(layer) &&
         is_linear(before) && layer.experts == before.experts && layer.saved_elements == 0 &&
         sides_of(layer).shape.k == sides_of(before).shape.k &&
         sides_of(layer).shape.m == sides_of(before).shape.m;
}

ParallelDegrees in_effect(ParallelDegrees degrees) {
  degrees.expert_tensor = sharers_of_expert(degrees);
  degrees.sequence_parallel = degrees.sequence_parallel && degrees.tensor > 1;
  return degrees;
}

void slice_sizes(TransformerSizes& sizes, const ParallelDegrees& degrees) {
  sizes.head_width = sizes.width_of_head();
  sizes.heads = divided_up(sizes.heads, degrees.tensor);
  sizes.kv_heads = divided_up(sizes.kv_heads, degrees.tensor);
  sizes.ffn = divided_up(sizes.ffn, degrees.tensor);
  sizes.vocabulary = words_of_rank(sizes.vocabulary, degrees);
  sizes.mixture.experts = divided_up(sizes.mixture.experts, degrees.expert);
  sizes.mixture.ffn = divided_up(sizes.mixture.ffn, degrees.expert_tensor);
  sizes.mixture.shared_ffn = divided_up(sizes.mixture.shared_ffn, degrees.tensor);
}

// Walks the layers and knows of what flows between them whether it is whole or divided over the tensor group.
class ModelSlicer {
 public:
  ModelSlicer(const Model& whole, const ParallelDegrees& degrees)
      : whole_(whole),
        degrees_(in_effect(degrees)),
        tensor_(degrees_),
        parameters_(whole, degrees_),
        experts_(whole, degrees_, parameters_) {}

  ParallelModel slice() {
    for (index_ = 0; index_ < whole_.layers.size(); ++index_) add(whole_.layers[index_]);
    if (is_divided_)
      gather_output();
    ParallelModel result{.model = whole_, .exchanges = {}, .parameters = parameters_.take_roles()};
    result.model.parameters = parameters_.take_tensors();
    result.model.layers.clear();
    for (SlicedLayer& sliced : layers_) {
      result.model.layers.push_back(std::move(sliced.layer));
      result.exchanges.push_back(std::move(sliced.exchanges));
    }
    slice_totals(result.model);
    return result;
  }

 private:
  SlicedLayer& push(Layer layer) { return layers_.emplace_back(SlicedLayer{std::move(layer)}); }

  void add(Layer layer) {
    const bool shares = index_ > 0 && shares_input(layer, whole_.layers[index_ - 1]);
    if (degrees_.context > 1)
      divide_rows(layer, degrees_.context);
    if (layer.is_expert()) {
      layers_.push_back(experts_.slice(index_, std::move(layer)));
      return;
    }
    if (is_embedding(layer))
      return add_embedding(std::move(layer));
    switch (layer.split) {
      case TensorSplit::column:
        return add_column(std::move(layer), shares);
      case TensorSplit::row:
        return add_row(std::move(layer));
      case TensorSplit::local:
        if (is_divided_)
          return add_local(std::move(layer));
        break;
      case TensorSplit::replicated:
        break;
    }
    add_replicated(std::move(layer));
  }

  // A single row (a classifier's) has no tokens to be divided by.
  bool has_divisible_rows(const Layer& layer) const {
    return !is_linear(layer) || sides_of(layer).shape.m % degrees_.tensor == 0;
  }

  void add_replicated(Layer layer) {
    if (is_divided_)
      gather_output();
    const bool is_cut = degrees_.sequence_parallel && has_divisible_rows(layer);
    if (is_cut)
      divide_rows(layer, degrees_.tensor);
    parameters_.replicate(layer, is_cut);
    push(std::move(layer));
  }

  void gather_output() {
    tensor_.gather_output(layers_.back(), divided_elements_);
    is_divided_ = false;
  }

  void add_column(Layer layer, bool shares) {
    const LinearSides whole = sides_of(layer);
    if (is_divided_ && !shares && whole.shape.k == last_outputs_)
      gather_output();
    last_outputs_ = whole.shape.n;
    divided_columns_ = columns_of_rank(layer);
    divided_elements_ = whole.shape.m * divided_columns_ * degrees_.tensor;
    take_columns(layer, divided_columns_);
    if (degrees_.sequence_parallel && !degrees_.keeps_gathered_inputs)
      divide_kept(layer, degrees_.tensor);
    parameters_.take_outputs(layer, {whole.shape.n, divided_columns_});
    SlicedLayer& column = push(std::move(layer));
    if (has_too_few_keys(column.layer, whole.shape))
      tensor_.share_heads(column, whole.output());
    if (shares)
      tensor_.read_shared_input(column, layers_[layers_.size() - 2], whole.input());
    else
      tensor_.read_input(column, whole.input());
    is_divided_ = true;
  }

  std::int64_t columns_of_rank(const Layer& layer) const {
    const std::int64_t columns = sides_of(layer).shape.n;
    const bool are_words = whole_.transformer && layer.block < 0 && columns == whole_.transformer->vocabulary;
    return are_words ? words_of_rank(columns, degrees_) : divided_up(columns, degrees_.tensor);
  }

  // To give each rank heads of its own.
  bool has_too_few_keys(const Layer& layer, const GemmShape& whole) const {
    if (!whole_.transformer || layer.block < 0)
      return false;
    const TransformerSizes& sizes = *whole_.transformer;
    const bool holds_keys =
        whole.n == sizes.kv_width() || whole.n == sizes.query_width() + 2 * sizes.kv_width();
    return holds_keys && sizes.latent.kv_rank == 0 && sizes.kv_heads < degrees_.tensor;
  }

  void add_row(Layer layer) {
    const LinearSides whole = sides_of(layer);
    const SideExtent inputs{whole.shape.k, divided_up(whole.shape.k, degrees_.tensor)};
    take_inputs(layer, inputs.part);
    parameters_.take_inputs(layer, inputs);
    SlicedLayer& row = push(std::move(layer));
    if (!std::exchange(is_divided_, false))
      tensor_.gather_input_gradient(row, whole.input());
    tensor_.sum_output(row, whole.output());
  }

  // Each rank looks its own words up and leaves zeros for the others'.
  void add_embedding(Layer layer) {
    const bool adds_positions = layer.parameters.size() > 1;
    if (words_of_rank(whole_.transformer->vocabulary, degrees_) != whole_.transformer->vocabulary)
      layer.gradient_elements = parameters_.take_words(layer, whole_.transformer->vocabulary);
    const std::int64_t elements =
        divided_up(whole_.tokens_per_sample, degrees_.context) * whole_.transformer->hidden;
    tensor_.sum_embeddings(push(std::move(layer)), elements, adds_positions);
    is_divided_ = false;
  }

  void add_local(Layer layer) {
    if (layer.is_loss)
      pad_logits(layer);
    parameters_.replicate(layer, degrees_.tensor > 1);  // one weight for all heads
    divide_all(layer, degrees_.tensor);
    if (layer.product && std::holds_alternative<AttentionShape>(*layer.product))
      return add_attention(std::move(layer));
    SlicedLayer& local = push(std::move(layer));
    if (local.layer.is_loss) {
      tensor_.sum_loss(local, local.layer.saved_elements / divided_columns_);
      is_divided_ = false;
    }
  }

  // Logits of padded words are made and compared as all others.
  void pad_logits(Layer& layer) const {
    const std::int64_t whole = layer.saved_elements;
    const std::int64_t padded = divided_elements_;
    for (std::int64_t* count : {&layer.forward_elements, &layer.backward_elements, &layer.saved_elements})
      *count = arithmetic::product_divided_up(*count, padded, whole);
  }

  void add_attention(Layer layer) {
    if (degrees_.context == 1) {
      push(std::move(layer));
      return;
    }
    for (SlicedLayer& step : context_steps(layer, degrees_)) layers_.push_back(std::move(step));
  }

  void slice_totals(Model& model) const {
    model.tokens_per_sample = divided_up(whole_.tokens_per_sample, degrees_.context);
    model.input_bytes = divided_up(whole_.input_bytes, degrees_.context);
    model.output_elements = 0;
    for (const Layer& layer : model.layers) model.output_elements += layer.is_loss ? layer.saved_elements : 0;
    if (model.transformer)
      slice_sizes(*model.transformer, degrees_);
  }

  const Model& whole_;
  const ParallelDegrees degrees_;
  const TensorExchanges tensor_;
  ParameterSlicer parameters_;
  ExpertSlicer experts_;
  std::vector<SlicedLayer> layers_;
  std::size_t index_ = 0;
  bool is_divided_ = false;  // what flows between the layers, over the tensor group
  std::int64_t divided_elements_ = 0;
  std::int64_t divided_columns_ = 0;
  std::int64_t last_outputs_ = 0;  // of the last columns, all ranks' together: who reads as many reads them
};

// With all of it on one rank, nothing is replicated that would be reduced otherwise; experts are experts.
std::vector<ParameterRole> roles_in(const Model& model) {
  std::vector<ParameterRole> roles(model.parameters.size());
  for (const Layer& layer : model.layers)
    for (const std::uint32_t parameter : layer.parameters) roles[parameter].is_expert = layer.is_expert();
  return roles;
}

bool is_whole(const Model& model, const ParallelDegrees& degrees) {
  return degrees.tensor == 1 && degrees.context == 1 && degrees.expert == 1 && !pads_words(model, degrees);
}

}  // namespace

bool pads_words(const Model& model, const ParallelDegrees& degrees) {
  return model.transformer && words_of_rank(model.transformer->vocabulary, degrees) * degrees.tensor !=
                                  model.transformer->vocabulary;
}

std::int64_t sharers_of_expert(const ParallelDegrees& degrees) {
  return degrees.expert_tensor == 0 ? degrees.tensor : degrees.expert_tensor;
}

bool has_groups_of_sharers(const ParallelDegrees& degrees) {
  const std::int64_t sharers = sharers_of_expert(degrees);
  return sharers > 1 && sharers < degrees.tensor;
}

std::int64_t degree_of(const ParallelDegrees& degrees, ParallelAxis axis) {
  switch (axis) {
    case ParallelAxis::tensor:
      return degrees.tensor;
    case ParallelAxis::context:
      return degrees.context;
    case ParallelAxis::expert:
      return degrees.expert;
    case ParallelAxis::expert_tensor:
      break;
  }
  return sharers_of_expert(degrees);
}

ParallelModel parallel_model(const Model& model, const ParallelDegrees& degrees) {
  if (is_whole(model, degrees))
    return {.model = model,
            .exchanges = std::vector<LayerExchanges>(model.layers.size()),
            .parameters = roles_in(model)};
  return ModelSlicer(model, degrees).slice();
}

std::int64_t words_of_rank(std::int64_t vocabulary, const ParallelDegrees& degrees) {
  return divided_up(vocabulary, degrees.vocabulary_multiple * degrees.tensor) * degrees.vocabulary_multiple;
}

}  // namespace lockstep
