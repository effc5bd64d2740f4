#include "sim/training/parallel_model.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/base/units.h"
#include "sim/training/context_slice.h"
#include "sim/training/layer_slice.h"

namespace lockstep {
namespace {

bool is_embedding(const Layer& layer) {
  return layer.split == TensorSplit::row && !layer.product;
}

// Reads the same tensor as the layer before it: who kept it first pays for it.
bool shares_input(const Layer& layer, const Layer& before) {
  return layer.split == TensorSplit::column && before.split == TensorSplit::column && is_linear(layer) &&
         is_linear(before) && layer.is_expert == before.is_expert && layer.saved_elements == 0 &&
         sides_of(layer).shape.k == sides_of(before).shape.k &&
         sides_of(layer).shape.m == sides_of(before).shape.m;
}

void slice_extent(ParameterTensor& tensor, std::size_t dimension, std::int64_t extent) {
  tensor.elements = tensor.elements / tensor.shape[dimension] * extent;
  tensor.shape[dimension] = extent;
}

class ModelSlicer {
 public:
  ModelSlicer(const Model& whole, const ParallelDegrees& degrees) : whole_(whole), degrees_(degrees) {
    if (degrees_.expert_tensor == 0)
      degrees_.expert_tensor = degrees_.tensor;
    degrees_.sequence_parallel = degrees_.sequence_parallel && degrees_.tensor > 1;
    result_.model = whole;
    result_.model.layers.clear();
    result_.parameters.resize(whole.parameters.size());
  }

  ParallelModel slice() {
    for (index_ = 0; index_ < whole_.layers.size(); ++index_) add(whole_.layers[index_]);
    if (is_divided_)
      gather_output();
    slice_sizes();
    return std::move(result_);
  }

 private:
  void exchange(std::vector<Exchange>& list, Exchange exchange) const {
    if (degree_of(degrees_, exchange.axis) > 1)
      list.push_back(std::move(exchange));
  }

  LayerExchanges& here() { return result_.exchanges.back(); }
  const std::string& name_here() const { return result_.model.layers.back().name; }

  void push(Layer layer) {
    result_.model.layers.push_back(std::move(layer));
    result_.exchanges.emplace_back();
  }

  void add(Layer layer) {
    const bool shares = index_ > 0 && shares_input(layer, whole_.layers[index_ - 1]);
    if (degrees_.context > 1)
      divide_rows(layer, degrees_.context);
    if (layer.is_expert)
      return add_expert(std::move(layer));
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
    for (const std::uint32_t parameter : layer.parameters)
      result_.parameters[parameter] = {.is_replicated = true, .is_partial = is_cut};
    push(std::move(layer));
  }

  // The parts of a divided stream side by side. Its gradient needs no collective: each rank takes its part.
  void gather_output() {
    exchange(
        here().after_forward,
        {.name = "gather of " + name_here(), .op = CollectiveOp::all_gather, .elements = divided_elements_});
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
    for (const std::uint32_t parameter : layer.parameters)
      slice_outputs(parameter, whole.shape.n, divided_columns_);
    push(std::move(layer));
    gather_shared_heads(whole);
    exchange_input(whole.input(), shares);
    is_divided_ = true;
  }

  std::int64_t columns_of_rank(const Layer& layer) const {
    const std::int64_t columns = sides_of(layer).shape.n;
    const bool are_words = whole_.transformer && layer.block < 0 && columns == whole_.transformer->vocabulary;
    return are_words ? words_of_rank(columns, degrees_) : divided_up(columns, degrees_.tensor);
  }

  // A bias has one extent, a weight two, those of many experts three.
  void slice_outputs(std::uint32_t parameter, std::int64_t whole, std::int64_t part) {
    ParameterTensor& tensor = result_.model.parameters[parameter];
    const std::size_t first = tensor.shape.size() > 2 ? 1 : 0;
    for (std::size_t dimension = first; dimension < tensor.shape.size(); ++dimension)
      if (tensor.shape[dimension] == whole)
        return slice_extent(tensor, dimension, part);
  }

  // A bias stays whole: it is added to the sum.
  void slice_inputs(std::uint32_t parameter, std::int64_t whole, std::int64_t part) {
    ParameterTensor& tensor = result_.model.parameters[parameter];
    if (tensor.shape.size() == 1) {
      result_.parameters[parameter] = {.is_replicated = true, .is_partial = degrees_.sequence_parallel};
      return;
    }
    for (std::size_t dimension = tensor.shape.size(); dimension-- > 0;)
      if (tensor.shape[dimension] == whole)
        return slice_extent(tensor, dimension, part);
  }

  // Layers that read one tensor share its exchanges: the first of them in forward is the last in backward.
  void exchange_input(std::int64_t elements, bool shares) {
    if (!shares)
      exchange_first_input(elements);
    if (!degrees_.sequence_parallel || degrees_.keeps_gathered_inputs)
      return;
    if (shares)
      result_.exchanges[result_.exchanges.size() - 2].before_backward.pop_back();
    exchange(here().before_backward, {.name = "gather again for " + name_here(),
                                      .op = CollectiveOp::all_gather,
                                      .elements = elements,
                                      .beside_kernel = overlaps_backward()});
  }

  bool overlaps_backward() const { return degrees_.tensor_overlap != TensorOverlap::none; }
  // Heads and embeddings stand outside of blocks, and wait.
  bool overlaps_pieces() const {
    return degrees_.sequence_parallel && degrees_.tensor_overlap == TensorOverlap::pieces &&
           result_.model.layers.back().block >= 0;
  }

  void exchange_first_input(std::int64_t elements) {
    const bool is_scattered = degrees_.sequence_parallel;
    if (is_scattered)
      exchange(here().before_forward, {.name = "gather for " + name_here(),
                                       .op = CollectiveOp::all_gather,
                                       .elements = elements,
                                       .beside_kernel = overlaps_pieces()});
    if (result_.model.layers.back().backward_input_flops > 0)
      exchange(here().after_backward_input,
               {.name = "input gradient of " + name_here(),
                .op = is_scattered ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                .elements = elements,
                .beside_kernel = overlaps_backward()});
  }

  // Fewer heads of keys than ranks: what the columns made is gathered, and each rank takes its head of it.
  void gather_shared_heads(const LinearSides& whole) {
    if (!whole_.transformer || result_.model.layers.back().block < 0)
      return;
    const TransformerSizes& sizes = *whole_.transformer;
    const bool holds_keys =
        whole.shape.n == sizes.kv_width() || whole.shape.n == sizes.query_width() + 2 * sizes.kv_width();
    if (!holds_keys || sizes.latent.kv_rank > 0 || sizes.kv_heads >= degrees_.tensor)
      return;
    const std::string name = "heads of " + name_here();
    exchange(here().after_forward,
             {.name = name, .op = CollectiveOp::all_gather, .elements = whole.output()});
    exchange(here().before_backward,
             {.name = name, .op = CollectiveOp::reduce_scatter, .elements = whole.output()});
  }

  void add_row(Layer layer) {
    const LinearSides whole = sides_of(layer);
    take_inputs(layer, divided_up(whole.shape.k, degrees_.tensor));
    for (const std::uint32_t parameter : layer.parameters)
      slice_inputs(parameter, whole.shape.k, sides_of(layer).shape.k);
    push(std::move(layer));
    const bool is_whole = !std::exchange(is_divided_, false);
    if (is_whole && result_.model.layers.back().backward_input_flops > 0)
      exchange(here().after_backward, {.name = "input gradient of " + name_here(),
                                       .op = CollectiveOp::all_gather,
                                       .elements = whole.input()});
    sum_output(whole.output());
  }

  void sum_output(std::int64_t elements) {
    const std::string name = "sum of " + name_here();
    if (!degrees_.sequence_parallel)
      return exchange(here().after_forward,
                      {.name = name, .op = CollectiveOp::all_reduce, .elements = elements});
    scatter_output(name, elements);
    exchange(here().before_backward, {.name = "output gradient of " + name_here(),
                                      .op = CollectiveOp::all_gather,
                                      .elements = elements,
                                      .beside_kernel = overlaps_pieces()});
  }

  // In as many pieces as there are ranks the last is summed when the product is done.
  void scatter_output(const std::string& name, std::int64_t elements) {
    const std::int64_t behind = overlaps_pieces() ? divided_up(elements, degrees_.tensor) : elements;
    if (behind < elements)
      exchange(here().before_forward, {.name = name,
                                       .op = CollectiveOp::reduce_scatter,
                                       .elements = elements - behind,
                                       .beside_kernel = true});
    exchange(here().after_forward, {.name = name, .op = CollectiveOp::reduce_scatter, .elements = behind});
  }

  // Each rank looks its own words up and leaves zeros for the others'. Positions are added to whole sums,
  // which are then scattered without a collective.
  void add_embedding(Layer layer) {
    const bool adds_positions = layer.parameters.size() > 1;
    if (degrees_.tensor > 1) {
      layer.gradient_elements = 0;
      for (const std::uint32_t parameter : layer.parameters)
        layer.gradient_elements += slice_table(parameter);
    }
    push(std::move(layer));
    const std::int64_t elements =
        divided_up(whole_.tokens_per_sample, degrees_.context) * whole_.transformer->hidden;
    sum_output(elements);
    if (adds_positions && degrees_.sequence_parallel)
      here().after_forward.back().op = CollectiveOp::all_reduce;
    is_divided_ = false;
  }

  std::int64_t slice_table(std::uint32_t parameter) {
    ParameterTensor& table = result_.model.parameters[parameter];
    if (table.shape.front() == whole_.transformer->vocabulary)
      slice_extent(table, 0, words_of_rank(table.shape.front(), degrees_));
    else
      result_.parameters[parameter].is_replicated = true;
    return table.elements;
  }

  void add_local(Layer layer) {
    const bool is_loss = layer.is_loss;
    if (is_loss)
      pad_logits(layer);
    for (const std::uint32_t parameter : layer.parameters)  // one weight for all heads
      result_.parameters[parameter] = {.is_replicated = true, .is_partial = degrees_.tensor > 1};
    divide_all(layer, degrees_.tensor);
    if (layer.product && std::holds_alternative<AttentionShape>(*layer.product))
      return add_attention(std::move(layer));
    push(std::move(layer));
    if (is_loss)
      sum_loss();
  }

  // Logits of padded words are made and compared as all others.
  void pad_logits(Layer& layer) {
    const std::int64_t whole = layer.saved_elements;
    const std::int64_t padded = divided_elements_;
    for (std::int64_t* count : {&layer.forward_elements, &layer.backward_elements, &layer.saved_elements})
      *count = arithmetic::product_divided_up(*count, padded, whole);
  }

  // Softmax over divided words: of each token the largest logit, the right word's and the sum of powers.
  void sum_loss() {
    is_divided_ = false;
    const std::int64_t tokens = result_.model.layers.back().saved_elements / divided_columns_;
    for (const char* what : {"largest logits", "right words' logits", "sums of powers"})
      exchange(here().after_forward, {.name = what, .elements = tokens, .is_wide = true});
  }

  void add_attention(Layer layer) {
    if (degrees_.context == 1)
      return push(std::move(layer));
    for (ContextStep& step : context_steps(layer, degrees_)) {
      push(std::move(step.layer));
      here() = std::move(step.exchanges);
    }
  }

  // A mixture's rows are tokens that come from all ranks of the expert group.
  void add_expert(Layer layer) {
    if (degrees_.tensor > 1 && !shares_experts())
      divide_rows(layer, degrees_.tensor);
    if (degrees_.expert > 1)
      scale_rows(layer, degrees_.expert_imbalance);
    take_experts(layer, degrees_.expert);
    slice_expert(layer);
    for (const std::uint32_t parameter : layer.parameters) result_.parameters[parameter].is_expert = true;
    push(std::move(layer));
    if (index_ == 0 || !whole_.layers[index_ - 1].is_expert)
      dispatch();
    if (index_ + 1 == whole_.layers.size() || !whole_.layers[index_ + 1].is_expert)
      combine();
  }

  bool shares_experts() const { return degrees_.expert_tensor > 1; }

  void slice_expert(Layer& layer) {
    for (const std::uint32_t parameter : layer.parameters) {
      ParameterTensor& tensor = result_.model.parameters[parameter];
      slice_extent(tensor, 0, divided_up(tensor.shape.front(), degrees_.expert));
    }
    if (!is_linear(layer))
      return divide_all(layer, degrees_.expert_tensor);
    const GemmShape whole = sides_of(layer).shape;
    if (layer.split == TensorSplit::column)
      take_columns(layer, divided_up(whole.n, degrees_.expert_tensor));
    else
      take_inputs(layer, divided_up(whole.k, degrees_.expert_tensor));
    const GemmShape part = sides_of(layer).shape;
    for (const std::uint32_t parameter : layer.parameters) {
      if (layer.split == TensorSplit::column)
        slice_outputs(parameter, whole.n, part.n);
      else
        slice_inputs(parameter, whole.k, part.k);
    }
  }

  // Of a sample, that come to this rank's experts: who gets most is who all wait for.
  std::int64_t routed_elements() const {
    const Layer& layer = whole_.layers[index_];
    const GemmShape shape = sides_of(layer).shape;
    const std::int64_t width = layer.split == TensorSplit::column ? shape.k : shape.n;
    const std::int64_t even = divided_up(shape.batch * shape.m * width, degrees_.context * degrees_.tensor);
    return degrees_.expert > 1 ? scaled_up(even, degrees_.expert_imbalance) : even;
  }

  Exchange to_experts(const char* name) const {
    return {.name = name,
            .axis = ParallelAxis::expert,
            .op = CollectiveOp::all_to_all,
            .elements = routed_elements()};
  }
  Exchange among_sharers(const char* name, CollectiveOp op) const {
    return {.name = name, .op = op, .elements = routed_elements() * degrees_.tensor};
  }

  // Who computes whatever comes has to know how much will: each rank's tokens for each expert, of all.
  void exchange_counts() {
    const MixtureSizes& mixture = whole_.transformer->mixture;
    if (mixture.capacity_percent == 0)
      exchange(here().before_forward, {.name = "counts of tokens",
                                       .axis = ParallelAxis::expert,
                                       .op = CollectiveOp::all_gather,
                                       .elements = mixture.experts * degrees_.expert,
                                       .is_wide = true});
  }

  void dispatch() {
    exchange_counts();
    exchange(here().before_forward, to_experts("dispatch"));
    if (shares_experts()) {
      exchange(here().before_forward, among_sharers("gather of tokens", CollectiveOp::all_gather));
      exchange(here().after_backward, among_sharers("token gradients", CollectiveOp::reduce_scatter));
    }
    exchange(here().after_backward, to_experts("gradients of dispatch"));
  }

  void combine() {
    exchange(here().before_backward, to_experts("gradients of combine"));
    if (shares_experts()) {
      exchange(here().after_forward, among_sharers("sum of experts", CollectiveOp::reduce_scatter));
      exchange(here().before_backward, among_sharers("output gradients", CollectiveOp::all_gather));
    }
    exchange(here().after_forward, to_experts("combine"));
  }

  void slice_sizes() {
    Model& model = result_.model;
    model.tokens_per_sample = divided_up(whole_.tokens_per_sample, degrees_.context);
    model.input_bytes = divided_up(whole_.input_bytes, degrees_.context);
    model.output_elements = 0;
    for (const Layer& layer : model.layers) model.output_elements += layer.is_loss ? layer.saved_elements : 0;
    if (!model.transformer)
      return;
    TransformerSizes& sizes = *model.transformer;
    sizes.head_width = sizes.width_of_head();
    sizes.heads = divided_up(sizes.heads, degrees_.tensor);
    sizes.kv_heads = divided_up(sizes.kv_heads, degrees_.tensor);
    sizes.ffn = divided_up(sizes.ffn, degrees_.tensor);
    sizes.vocabulary = words_of_rank(sizes.vocabulary, degrees_);
    sizes.mixture.experts = divided_up(sizes.mixture.experts, degrees_.expert);
    sizes.mixture.ffn = divided_up(sizes.mixture.ffn, degrees_.expert_tensor);
    sizes.mixture.shared_ffn = divided_up(sizes.mixture.shared_ffn, degrees_.tensor);
  }

  const Model& whole_;
  ParallelDegrees degrees_;
  ParallelModel result_;
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
    for (const std::uint32_t parameter : layer.parameters) roles[parameter].is_expert = layer.is_expert;
  return roles;
}

bool are_all_one(const ParallelDegrees& degrees) {
  return degrees.tensor == 1 && degrees.context == 1 && degrees.expert == 1;
}

}  // namespace

std::int64_t degree_of(const ParallelDegrees& degrees, ParallelAxis axis) {
  switch (axis) {
    case ParallelAxis::tensor:
      return degrees.tensor;
    case ParallelAxis::context:
      return degrees.context;
    case ParallelAxis::expert:
      break;
  }
  return degrees.expert;
}

ParallelModel parallel_model(const Model& model, const ParallelDegrees& degrees) {
  if (are_all_one(degrees))
    return {.model = model,
            .exchanges = std::vector<LayerExchanges>(model.layers.size()),
            .parameters = roles_in(model)};
  return ModelSlicer(model, degrees).slice();
}

std::int64_t words_of_rank(std::int64_t vocabulary, const ParallelDegrees& degrees) {
  if (degrees.tensor == 1)
    return vocabulary;
  return divided_up(vocabulary, degrees.vocabulary_multiple * degrees.tensor) * degrees.vocabulary_multiple;
}

}  // namespace lockstep
