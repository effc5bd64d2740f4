#include "sim/training/context_block.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "sim/base/units.h"

namespace lockstep {
namespace {

void set_shape(AttentionShape& shape, std::int64_t tokens, std::int64_t index) {
  shape.sequence = tokens;
  if (index == 0 || !shape.is_causal)
    return;
  shape.keys = divided_up(tokens, 2);
  shape.is_causal = false;
}

}  // namespace

TokenElements elements_of(const AttentionShape& shape, std::int64_t tokens) {
  return {.queries = tokens * shape.heads * shape.query_width,
          .keys_values = tokens * shape.kv_heads * (shape.query_width + shape.value_width),
          .outputs = tokens * shape.heads * shape.value_width};
}

Layer layer_of_block(const Layer& attention, std::int64_t ranks, std::int64_t index) {
  Layer step = attention;
  step.name = fmt::format("{}.ring_{}", attention.name, index);
  step.forward_flops = divided_up(attention.forward_flops, ranks);
  step.backward_input_flops = divided_up(attention.backward_input_flops, ranks);
  auto& shape = std::get<AttentionShape>(*step.product);
  set_shape(shape, divided_up(shape.sequence, ranks), index);
  if (index > 0)
    step.saved_elements = step.repeatable_elements = step.saved_bytes = step.autocast_bytes = 0;
  return step;
}

Exchange of_context(std::string name, CollectiveOp op, std::int64_t elements) {
  return {.name = std::move(name), .axis = ParallelAxis::context, .op = op, .elements = elements};
}

}  // namespace lockstep
