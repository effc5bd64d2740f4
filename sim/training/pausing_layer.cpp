#include "sim/training/pausing_layer.h"

#include <utility>

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

using Exchanges = std::vector<ExchangeWork>;

bool is_of_experts(const ExchangeWork& work) {
  return work.axis == ParallelAxis::expert;
}

// One after another, each awaited but those that run beside a kernel.
Pausing begin_pausing(const StrategyContext& context, PausesAt at, const Exchanges& exchanges,
                      BegunExchanges& begun) {
  for (const ExchangeWork& work : exchanges) {
    begun.push_back(begin_exchange(context, work));
    if (work.is_beside_kernel)
      continue;
    if (at == PausesAt::every_exchange || is_of_experts(work))
      co_await pause();
    end_exchange(context, work, begun.back());
  }
}

Pausing exchange_all(const StrategyContext& context, PausesAt at, const Exchanges& exchanges) {
  BegunExchanges begun;
  Pausing all = begin_pausing(context, at, exchanges, begun);
  while (all.resume()) co_await pause();
  end_exchanges(context, exchanges, begun);
}

Pausing forward_kernels(const StrategyContext& context, PausesAt at, const LayerWork& layer, PassVerb verb,
                        std::vector<OpId>& kernels) {
  BegunExchanges before;
  count_rows(context, layer);
  Pausing first = begin_pausing(context, at, layer.exchanges.before_forward, before);
  while (first.resume()) co_await pause();
  kernels = write_layer_kernels(context, layer, verb);
  end_exchanges(context, layer.exchanges.before_forward, before);
  Pausing after = exchange_all(context, at, layer.exchanges.after_forward);
  while (after.resume()) co_await pause();
}

// What is recomputed, and the gradient of what came in.
Pausing input_gradient(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                       std::vector<OpId>& done) {
  const LayerExchangeWork& exchanges = layer.exchanges;
  for (const std::uint32_t index : layer.recomputed) {
    const LayerWork& again = context.job.layers[index];
    std::vector<OpId> kernels;
    Pausing repeated = forward_kernels(context, at, again, PassVerb::recompute, kernels);
    while (repeated.resume()) co_await pause();
    keep_recomputed(context, again, kernels);
  }
  BegunExchanges before;
  Pausing first = begin_pausing(context, at, exchanges.before_backward, before);
  while (first.resume()) co_await pause();
  done = write_layer_kernels(context, layer, PassVerb::backward);
  hold_during(context, layer.backward_workspace, done);
  end_exchanges(context, exchanges.before_backward, before);
}

}  // namespace

Pausing pausing_forward(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                        std::vector<OpId>& done) {
  Pausing kernels = forward_kernels(context, at, layer, PassVerb::forward, done);
  while (kernels.resume()) co_await pause();
  done = end_forward(context, layer, std::move(done));
}

Pausing pausing_backward(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                         std::vector<OpId>& done) {
  const LayerExchangeWork& exchanges = layer.exchanges;
  Pausing first = input_gradient(context, at, layer, done);
  while (first.resume()) co_await pause();
  BegunExchanges beside;
  Pausing begun = begin_pausing(context, at, exchanges.after_backward_input, beside);
  while (begun.resume()) co_await pause();
  if (layer.backward_weights)
    done = write_backward_weights(context, layer);
  else
    release_at_end(context, MemoryCategory::activations, layer.activations, done);
  end_exchanges(context, exchanges.after_backward_input, beside);
  Pausing last = exchange_all(context, at, exchanges.after_backward);
  while (last.resume()) co_await pause();
  done = end_backward(context, layer, std::move(done));
}

Pausing pausing_backward_input(const StrategyContext& context, PausesAt at, const LayerWork& layer,
                               std::vector<OpId>& done) {
  Pausing first = input_gradient(context, at, layer, done);
  while (first.resume()) co_await pause();
  for (const auto* after : {&layer.exchanges.after_backward_input, &layer.exchanges.after_backward}) {
    Pausing exchanged = exchange_all(context, at, *after);
    while (exchanged.resume()) co_await pause();
  }
  done = end_backward(context, layer, std::move(done));
}

}  // namespace lockstep
