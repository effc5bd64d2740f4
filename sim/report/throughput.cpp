#include "sim/report/throughput.h"

#include <algorithm>

#include "sim/compute/kernel_time.h"
#include "sim/run/describe_input.h"

namespace lockstep {
namespace {

bool has_lengths(const Scenario& scenario) {
  return scenario.input && scenario.input->lengths;
}

std::int64_t tokens_of(const Scenario& scenario, std::int64_t samples) {
  return has_lengths(scenario) ? scaled_up(samples, describe_lengths(scenario).mean_own())
                               : samples * scenario.model.model.tokens_per_sample;
}

// How long samples are on average, of the model's whole length.
double share_of_length(const Scenario& scenario) {
  const Ratio whole = Ratio::one() * scenario.model.model.tokens_per_sample;
  return has_lengths(scenario)
             ? static_cast<double>(describe_lengths(scenario).mean_own().parts_per_million()) /
                   static_cast<double>(whole.parts_per_million())
             : 1;
}

// Padding of experts is nothing that the model asks for.
double forward_flops_asked_for(const Model& model) {
  const std::int64_t percent = model.transformer ? model.transformer->mixture.capacity_percent : 0;
  const double padding = static_cast<double>(std::max<std::int64_t>(percent, 100)) / 100;
  double flops = 0;
  for (const Layer& layer : model.layers)
    flops += static_cast<double>(layer.forward_flops) / (layer.is_expert() ? padding : 1);
  return flops;
}

std::optional<double> model_flops_utilisation(const Scenario& scenario, Duration iteration) {
  const std::optional<double> step = model_flops_of_gpu(scenario);
  if (!step || iteration == Duration::zero())
    return std::nullopt;
  const FlopRate peak = matmul_peak(scenario.cluster.gpu, scenario.model.precision);
  return *step / iteration.in_seconds() / static_cast<double>(peak.count());
}

}  // namespace

std::optional<double> model_flops_of_gpu(const Scenario& scenario) {
  const double step =
      share_of_length(scenario) * 3.0 * forward_flops_asked_for(scenario.model.model) *
      static_cast<double>(scenario.model.batch_per_gpu * scenario.training.gradient_accumulation) /
      static_cast<double>(scenario.training.layout.ranks_of_a_copy());
  return step > 0 ? std::optional(step) : std::nullopt;
}

Throughput find_throughput(const Scenario& scenario, Duration iteration) {
  Throughput found;
  found.samples_per_iteration =
      scenario.model.batch_per_gpu * scenario.training.gradient_accumulation * scenario.copies_of_model();
  if (scenario.model.model.tokens_per_sample > 0)
    found.tokens_per_iteration = tokens_of(scenario, found.samples_per_iteration);
  found.mfu = model_flops_utilisation(scenario, iteration);
  return found;
}

std::optional<double> per_second(std::int64_t per_iteration, Duration iteration) {
  if (iteration == Duration::zero() || per_iteration == 0)
    return std::nullopt;
  return static_cast<double>(per_iteration) / iteration.in_seconds();
}

}  // namespace lockstep
