#include "sim/training/context_slice.h"

#include <utility>
#include <variant>

#include "sim/base/units.h"
#include "sim/training/context_block.h"
#include "sim/training/torch_ring.h"

namespace lockstep {
namespace {

AttentionShape& shape_of(Layer& layer) {
  return std::get<AttentionShape>(*layer.product);
}

const AttentionShape& shape_of(const Layer& layer) {
  return std::get<AttentionShape>(*layer.product);
}

class Ring {
 public:
  Ring(const Layer& attention, std::int64_t ranks)
      : attention_(attention),
        ranks_(ranks),
        elements_(elements_of(shape_of(attention), divided_up(shape_of(attention).sequence, ranks))) {}

  std::vector<SlicedLayer> steps() const {
    std::vector<SlicedLayer> steps;
    for (std::int64_t index = 0; index < ranks_; ++index)
      steps.push_back({.layer = layer(index), .exchanges = exchanges(index)});
    return steps;
  }

 private:
  Layer layer(std::int64_t index) const {
    Layer step = layer_of_block(attention_, ranks_, index);
    if (index > 0)
      add_to_sums(step);
    return step;
  }

  // What this block adds to the output, and in backward to the gradients: read twice, written once.
  void add_to_sums(Layer& step) const {
    step.forward_elements += 3 * elements_.outputs;
    step.forward_kernels += 1;
    const std::int64_t gradients = 3 * (elements_.queries + elements_.keys_values);
    step.backward_elements += gradients;
    step.backward_pass_elements += gradients;
    step.backward_passes += 2;
    step.backward_kernels += 2;
  }

  // Backward walks the ring from the last step: there it has no gradients yet, and at the first step no block
  // has further to go.
  LayerExchanges exchanges(std::int64_t index) const {
    const bool is_first = index == 0;
    const bool is_last = index + 1 == ranks_;
    LayerExchanges exchanges;
    if (!is_last)
      exchanges.before_forward.push_back(sent("keys and values", elements_.keys_values));
    if (is_last)
      exchanges.before_backward.push_back(sent("keys and values", elements_.keys_values));
    else if (is_first)
      exchanges.before_backward.push_back(sent("gradients of keys and values", elements_.keys_values));
    else
      exchanges.before_backward.push_back(
          sent("keys, values and their gradients", 2 * elements_.keys_values));
    return exchanges;
  }

  static Exchange sent(std::string name, std::int64_t elements) {
    Exchange exchange = of_context(std::move(name), CollectiveOp::send_recv, elements);
    exchange.beside_kernel = true;
    return exchange;
  }

  const Layer& attention_;
  std::int64_t ranks_;
  TokenElements elements_;
};

SlicedLayer gathered(const Layer& attention, std::int64_t ranks) {
  SlicedLayer step{.layer = attention};
  AttentionShape& shape = shape_of(step.layer);
  const std::int64_t keys_values = elements_of(shape, shape.sequence).keys_values;
  shape.keys = shape.sequence;
  shape.sequence = divided_up(shape.sequence, ranks);
  // Counted so far: one rank's part of them.
  step.layer.forward_elements += keys_values - divided_up(keys_values, ranks);
  step.layer.backward_elements += 2 * (keys_values - divided_up(keys_values, ranks));
  const Exchange gather = of_context("keys and values", CollectiveOp::all_gather, keys_values);
  step.exchanges = {.before_forward = {gather},
                    .after_forward = {},
                    .before_backward = {gather},
                    .after_backward_input = {},
                    .after_backward = {of_context("gradients of keys and values",
                                                  CollectiveOp::reduce_scatter, keys_values)}};
  return step;
}

SlicedLayer by_heads(const Layer& attention, std::int64_t ranks) {
  SlicedLayer step{.layer = attention};
  AttentionShape& shape = shape_of(step.layer);
  const TokenElements tokens = elements_of(shape, divided_up(shape.sequence, ranks));
  shape.heads = divided_up(shape.heads, ranks);
  shape.kv_heads = divided_up(shape.kv_heads, ranks);
  const auto to_all = [](const char* name, std::int64_t elements) {
    return of_context(name, CollectiveOp::all_to_all, elements);
  };
  const std::int64_t inputs = tokens.queries + tokens.keys_values;
  step.exchanges = {.before_forward = {to_all("queries, keys and values by heads", inputs)},
                    .after_forward = {to_all("outputs by tokens", tokens.outputs)},
                    .before_backward = {to_all("output gradients by heads", tokens.outputs)},
                    .after_backward_input = {},
                    .after_backward = {to_all("input gradients by tokens", inputs)}};
  return step;
}

}  // namespace

std::vector<SlicedLayer> context_steps(const Layer& attention, const ParallelDegrees& degrees) {
  switch (degrees.context_kind) {
    case ContextKind::ring:
      return Ring(attention, degrees.context).steps();
    case ContextKind::all_gather:
      return {gathered(attention, degrees.context)};
    case ContextKind::rotate_all_gather:
    case ContextKind::rotate_all_to_all:
      return torch_ring_steps(attention, degrees);
    case ContextKind::ulysses:
      break;
  }
  return {by_heads(attention, degrees.context)};
}

}  // namespace lockstep
