#include "sim/training/expert_slice.h"

#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "sim/training/layer_slice.h"

namespace lockstep {
namespace {

// Padded experts compute as many tokens whatever comes.
Ratio busiest_share(const MixtureSizes& mixture, const ParallelDegrees& degrees) {
  const bool takes_what_comes = degrees.expert > 1 && mixture.capacity_percent == 0;
  return takes_what_comes ? degrees.expert_imbalance : Ratio::one();
}

TokenRouting routing_of(const MixtureSizes& mixture) {
  return {.experts = mixture.experts,
          .per_token = mixture.experts_per_token,
          .groups = mixture.groups,
          .groups_per_token = mixture.groups_per_token};
}

// Of the tokens on their way to the experts of one mixture, and back.
class TokenDispatcher {
 public:
  // At the first or the last layer of the mixture.
  TokenDispatcher(const Model& whole, std::size_t index, const ParallelDegrees& degrees)
      : degrees_(degrees),
        mixture_(whole.transformer->mixture),
        copied_(copied_elements(whole.layers[index])),
        elements_(routed_elements()) {}

  void dispatch(LayerExchanges& exchanges) const {
    exchange_counts(exchanges);
    add(exchanges.before_forward, to_experts("dispatch", CollectiveOp::all_gather));
    add(exchanges.before_forward, among_sharers("gather of tokens", CollectiveOp::all_gather));
    add(exchanges.after_backward, among_sharers("token gradients", CollectiveOp::reduce_scatter));
    add(exchanges.after_backward, to_experts("gradients of dispatch", CollectiveOp::reduce_scatter));
  }

  void combine(LayerExchanges& exchanges) const {
    add(exchanges.before_backward, to_experts("gradients of combine", CollectiveOp::all_gather));
    add(exchanges.after_forward, among_sharers("sum of experts", CollectiveOp::reduce_scatter));
    add(exchanges.before_backward, among_sharers("output gradients", CollectiveOp::all_gather));
    add(exchanges.after_forward, to_experts("combine", CollectiveOp::reduce_scatter));
  }

 private:
  void add(std::vector<Exchange>& list, Exchange exchange) const {
    add_exchange(list, degrees_, std::move(exchange));
  }

  // Of a sample's tokens on one rank, each as often as it has experts.
  std::int64_t copied_elements(const Layer& whole) const {
    const GemmShape shape = sides_of(whole).shape;
    const std::int64_t width = whole.split == TensorSplit::column ? shape.k : shape.n;
    return divided_up(shape.batch * shape.m * width, degrees_.context * degrees_.tensor);
  }
  // That come to this rank's experts: who gets most is who all wait for.
  std::int64_t routed_elements() const { return scaled_up(copied_, busiest_share(mixture_, degrees_)); }

  // Who computes whatever comes has to know how much will: each rank's tokens for each expert, of all.
  void exchange_counts(LayerExchanges& exchanges) const {
    if (mixture_.capacity_percent == 0)
      add(exchanges.before_forward, {.name = "counts of tokens",
                                     .axis = ParallelAxis::expert,
                                     .op = CollectiveOp::all_gather,
                                     .elements = mixture_.experts * degrees_.expert,
                                     .is_wide = true});
  }

  // Where all ranks get all tokens it is `by_all`, of each token once.
  Exchange to_experts(const char* name, CollectiveOp by_all) const {
    Exchange exchange{
        .name = name, .axis = ParallelAxis::expert, .op = CollectiveOp::all_to_all, .elements = elements_};
    switch (degrees_.token_dispatch) {
      case TokenDispatch::alltoall:
        break;
      case TokenDispatch::allgather:
        exchange.op = by_all;
        exchange.elements = divided_up(copied_, mixture_.experts_per_token) * degrees_.expert;
        break;
      case TokenDispatch::deepep:
      case TokenDispatch::hybridep:
        exchange.relayed = routing_of(mixture_);
        break;
    }
    return exchange;
  }
  Exchange among_sharers(const char* name, CollectiveOp op) const {
    const bool are_all = degrees_.expert_tensor == degrees_.tensor;
    return {.name = name,
            .axis = are_all ? ParallelAxis::tensor : ParallelAxis::expert_tensor,
            .op = op,
            .elements = elements_ * degrees_.expert_tensor};
  }

  const ParallelDegrees& degrees_;
  const MixtureSizes& mixture_;
  std::int64_t copied_;
  std::int64_t elements_;
};

}  // namespace

SlicedLayer ExpertSlicer::slice(std::size_t index, Layer layer) {
  if (degrees_.tensor > degrees_.expert_tensor)
    divide_rows(layer, degrees_.tensor / degrees_.expert_tensor);
  scale_rows(layer, busiest_share(whole_.transformer->mixture, degrees_));
  take_experts(layer, degrees_.expert);
  parameters_.take_experts(layer);
  slice_product(layer);
  SlicedLayer sliced{.layer = std::move(layer)};
  if (is_first_of_mixture(index))
    TokenDispatcher(whole_, index, degrees_).dispatch(sliced.exchanges);
  if (is_last_of_mixture(index))
    TokenDispatcher(whole_, index, degrees_).combine(sliced.exchanges);
  return sliced;
}

// An expert among the ranks that share it.
void ExpertSlicer::slice_product(Layer& layer) {
  if (!is_linear(layer))
    return divide_all(layer, degrees_.expert_tensor);
  const GemmShape whole = sides_of(layer).shape;
  if (layer.split == TensorSplit::column) {
    const SideExtent outputs{whole.n, divided_up(whole.n, degrees_.expert_tensor)};
    take_columns(layer, outputs.part);
    parameters_.take_outputs(layer, outputs);
  } else {
    const SideExtent inputs{whole.k, divided_up(whole.k, degrees_.expert_tensor)};
    take_inputs(layer, inputs.part);
    parameters_.take_inputs(layer, inputs);
  }
}

bool ExpertSlicer::is_first_of_mixture(std::size_t index) const {
  return index == 0 || !whole_.layers[index - 1].is_expert();
}

bool ExpertSlicer::is_last_of_mixture(std::size_t index) const {
  return index + 1 == whole_.layers.size() || !whole_.layers[index + 1].is_expert();
}

}  // namespace lockstep
