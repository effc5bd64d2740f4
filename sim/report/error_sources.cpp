#include "sim/report/error_sources.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/base/series.h"

namespace lockstep {
namespace {

bool is_measured(const Scenario& scenario) {
  const auto& stated = scenario.model.stated;
  return scenario.compute.single_gpu_iteration || scenario.compute.is_anchored || scenario.model.measured ||
         std::any_of(stated.begin(), stated.end(), [](const auto& times) { return times.has_value(); });
}

const ConvolutionShape* filter_of(const Layer& layer) {
  return layer.product ? std::get_if<ConvolutionShape>(&*layer.product) : nullptr;
}

// No table has kernels of one channel each: what is said of them rests on three published timings, and misses more.
bool is_depthwise(const Layer& layer) {
  const ConvolutionShape* filter = filter_of(layer);
  return filter != nullptr && filter->groups > 1 && filter->groups == filter->in_channels;
}

std::string kernels_of(const Model& model) {
  std::int64_t convolving = 0;
  std::int64_t multiplying = 0;
  for (const Layer& layer : model.layers) {
    if (is_depthwise(layer))
      return "depthwise convolutions";
    (filter_of(layer) != nullptr ? convolving : multiplying) += layer.forward_flops;
  }
  return convolving > multiplying ? "convolutions" : "products";
}

// Tensor cores take tf32 with operands as wide as fp32's.
std::string width_of(Precision precision) {
  if (precision == Precision::fp32)
    return "fp32";
  return precision == Precision::tf32 ? "tf32" : "half precision";
}

double doublings(std::int64_t from, std::int64_t to) {
  const double ratio = static_cast<double>(to) / static_cast<double>(std::max<std::int64_t>(from, 1));
  return std::max(natural_logarithm(ratio) / natural_logarithm(2), 0.0);
}

ErrorRange widest(const std::map<std::string, ErrorRange>& ranges) {
  ErrorRange all;
  for (const auto& [kind, range] : ranges) {
    all.low = std::min(all.low, range.low);
    all.high = std::max(all.high, range.high);
  }
  return all;
}

ErrorSource unanchored(const StepConditions& conditions, const ErrorModel& errors) {
  if (!conditions.are_compared)
    return {"no measured step, on kernels that nobody timed", log_range(widest(errors.unanchored))};
  const auto known = errors.unanchored.find(conditions.kind);
  if (known != errors.unanchored.end())
    return {"no measured step: " + conditions.kind, log_range(known->second)};
  return {"no measured step, of a kind never compared: " + conditions.kind,
          log_range(widest(errors.unanchored))};
}

}  // namespace

LogRange log_range(const ErrorRange& range) {
  const auto end = [](Ratio miss) { return natural_logarithm((Ratio::one() + miss).in_real()); };
  return {std::min(end(range.low), 0.0), std::max(end(range.high), 0.0)};
}

LogRange operator*(const LogRange& range, double times) {
  return {range.low * times, range.high * times};
}

LogRange root_of_squares(const std::vector<LogRange>& ranges) {
  double low = 0;
  double high = 0;
  for (const LogRange& range : ranges) {
    low += range.low * range.low;
    high += range.high * range.high;
  }
  return {-std::sqrt(low), std::sqrt(high)};
}

double independent_times(double doublings) {
  return std::sqrt(doublings);
}

Ratio to_ratio(double logarithm) {
  constexpr double most = 7;  // a factor of a thousand
  const double ratio = exponential(std::clamp(logarithm, -most, most));
  return Ratio::parts_per_million(static_cast<std::int64_t>(std::floor(ratio * 1e6 + 0.5)));
}

StepConditions conditions_of(const Scenario& scenario) {
  const ComputeSpec& compute = scenario.compute;
  return {.is_measured = is_measured(scenario),
          .kind = kernels_of(scenario.model.model) + " " + width_of(scenario.model.precision),
          .are_compared = !scenario.cluster.gpu.kernels || scenario.cluster.gpu.kernels->are_compared,
          .transferred = compute.transfer.in_real(),
          .in_node = doublings(compute.measured_gpus_per_node, scenario.cluster.gpus_per_node),
          .between_nodes = doublings(compute.measured_nodes, scenario.cluster.nodes)};
}

std::vector<ErrorSource> sources_of(const StepConditions& conditions, const ErrorModel& errors) {
  std::vector<ErrorSource> sources;
  if (!conditions.is_measured)
    sources.push_back(unanchored(conditions, errors));
  const auto add = [&](const char* name, const ErrorRange& range, double times) {
    if (times > 0)
      sources.push_back({name, log_range(range) * times});
  };
  add("carried over from another step", errors.transferred, conditions.transferred);
  add("ranks that share a node", errors.in_node, independent_times(conditions.in_node));
  add("more nodes", errors.between_nodes, independent_times(conditions.between_nodes));
  return sources;
}

const std::vector<ResidualBand>& message_residuals(const Calibration& calibration, const ErrorModel& errors) {
  return calibration.communication_residuals.empty() ? errors.communication
                                                     : calibration.communication_residuals;
}

}  // namespace lockstep
