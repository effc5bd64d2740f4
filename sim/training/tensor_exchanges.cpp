#include "sim/training/tensor_exchanges.h"

#include <utility>

#include "sim/base/units.h"

namespace lockstep {

void TensorExchanges::add(std::vector<Exchange>& list, Exchange exchange) const {
  add_exchange(list, degrees_, std::move(exchange));
}

// Heads and embeddings stand outside of blocks, and wait.
bool TensorExchanges::overlaps_pieces(const Layer& layer) const {
  return degrees_.sequence_parallel && degrees_.tensor_overlap == TensorOverlap::pieces && layer.block >= 0;
}

void TensorExchanges::read_input(SlicedLayer& column, std::int64_t elements) const {
  const bool is_scattered = degrees_.sequence_parallel;
  if (is_scattered)
    add(column.exchanges.before_forward, {.name = "gather for " + column.layer.name,
                                          .op = CollectiveOp::all_gather,
                                          .elements = elements,
                                          .beside_kernel = overlaps_pieces(column.layer)});
  if (column.layer.backward_input_flops > 0)
    add(column.exchanges.after_backward_input,
        {.name = "input gradient of " + column.layer.name,
         .op = is_scattered ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
         .elements = elements,
         .beside_kernel = overlaps_backward()});
  if (gathers_again())
    gather_again(column, elements);
}

void TensorExchanges::read_shared_input(SlicedLayer& column, SlicedLayer& before,
                                        std::int64_t elements) const {
  if (!gathers_again())
    return;
  before.exchanges.before_backward.pop_back();
  gather_again(column, elements);
}

void TensorExchanges::gather_again(SlicedLayer& column, std::int64_t elements) const {
  add(column.exchanges.before_backward, {.name = "gather again for " + column.layer.name,
                                         .op = CollectiveOp::all_gather,
                                         .elements = elements,
                                         .beside_kernel = overlaps_backward()});
}

void TensorExchanges::gather_output(SlicedLayer& column, std::int64_t elements) const {
  add(column.exchanges.after_forward,
      {.name = "gather of " + column.layer.name, .op = CollectiveOp::all_gather, .elements = elements});
}

void TensorExchanges::share_heads(SlicedLayer& column, std::int64_t elements) const {
  const std::string name = "heads of " + column.layer.name;
  add(column.exchanges.after_forward, {.name = name, .op = CollectiveOp::all_gather, .elements = elements});
  add(column.exchanges.before_backward,
      {.name = name, .op = CollectiveOp::reduce_scatter, .elements = elements});
}

void TensorExchanges::gather_input_gradient(SlicedLayer& row, std::int64_t elements) const {
  if (row.layer.backward_input_flops > 0)
    add(row.exchanges.after_backward, {.name = "input gradient of " + row.layer.name,
                                       .op = CollectiveOp::all_gather,
                                       .elements = elements});
}

void TensorExchanges::sum_output(SlicedLayer& row, std::int64_t elements) const {
  const std::string name = "sum of " + row.layer.name;
  if (!degrees_.sequence_parallel)
    return add(row.exchanges.after_forward,
               {.name = name, .op = CollectiveOp::all_reduce, .elements = elements});
  scatter_output(row, name, elements);
  add(row.exchanges.before_backward, {.name = "output gradient of " + row.layer.name,
                                      .op = CollectiveOp::all_gather,
                                      .elements = elements,
                                      .beside_kernel = overlaps_pieces(row.layer)});
}

// In as many pieces as there are ranks the last is summed when the product is done.
void TensorExchanges::scatter_output(SlicedLayer& row, const std::string& name, std::int64_t elements) const {
  const std::int64_t behind = overlaps_pieces(row.layer) ? divided_up(elements, degrees_.tensor) : elements;
  if (behind < elements)
    add(row.exchanges.before_forward, {.name = name,
                                       .op = CollectiveOp::reduce_scatter,
                                       .elements = elements - behind,
                                       .beside_kernel = true});
  add(row.exchanges.after_forward, {.name = name, .op = CollectiveOp::reduce_scatter, .elements = behind});
}

void TensorExchanges::sum_embeddings(SlicedLayer& embedding, std::int64_t elements,
                                     bool adds_positions) const {
  sum_output(embedding, elements);
  if (adds_positions && degrees_.sequence_parallel)
    embedding.exchanges.after_forward.back().op = CollectiveOp::all_reduce;
}

void TensorExchanges::sum_loss(SlicedLayer& loss, std::int64_t tokens) const {
  for (const char* what : {"largest logits", "right words' logits", "sums of powers"})
    add(loss.exchanges.after_forward, {.name = what, .elements = tokens, .is_wide = true});
}

}  // namespace lockstep
