#include "sim/load/hardware/read_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/collectives/collective.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/library_version.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr RatioRange share_range{0.001, 2};
constexpr RatioRange network_share_range{0.001, 1};
constexpr RatioRange slowdown_range{1, 100};
constexpr Duration longest_per_byte = Duration::microseconds(1);
constexpr RatioRange residual_range{-0.999, 100};

// {"nvlink": ..., "network": ...}; `read` is told the class.
template <class T, class Read>
std::map<LinkClass, T> read_by_class(const std::optional<JsonReader>& json, Read read) {
  std::map<LinkClass, T> values;
  if (!json) {
    return values;
  }
  for (const auto& spelling : link_class_spellings) {
    if (const auto member = json->optional(spelling.name)) {
      values[spelling.value] = read(*member, spelling.value);
    }
  }
  json->finish();
  return values;
}

// A NIC carries its rate at most.
Ratio read_share(const JsonReader& json, LinkClass link_class) {
  return ratio(json, link_class == LinkClass::network ? network_share_range : share_range, "of the wire");
}

// What a library pays once for a collective, a step or a tensor: sums of it stay within 64 bits.
constexpr Duration longest_cost = Duration::seconds(60);

Duration read_cost(const JsonReader& json) {
  const Duration cost = json.duration();
  if (cost > longest_cost)
    json.expected("at most 60 s");
  return std::min(cost, longest_cost);
}

Duration read_step_cost(const JsonReader& json, LinkClass) {
  return read_cost(json);
}

Duration cost_or(const JsonReader& json, std::string_view key) {
  const auto found = json.optional(key);
  return found ? read_cost(*found) : Duration::zero();
}

ProtocolCost read_protocol(const JsonReader& json) {
  ProtocolCost protocol;
  protocol.name = json.required("name").text();
  protocol.payload = ratio_or(json, "payload", Ratio::one(), {0.001, 1});
  if (const auto limits = json.optional("most_bandwidth")) {
    for (const JsonReader& limit : limits->elements()) {
      protocol.most_bandwidth.push_back(limit.bandwidth());
    }
  }
  protocol.fill = read_by_class<Ratio>(json.optional("fill"), read_share);
  protocol.launch = cost_or(json, "launch");
  protocol.step = read_by_class<Duration>(json.optional("step"), read_step_cost);
  json.finish();
  return protocol;
}

std::vector<ProtocolCost> read_protocols(const JsonReader& json) {
  std::vector<ProtocolCost> protocols;
  for (const JsonReader& element : json.elements()) {
    protocols.push_back(read_protocol(element));
  }
  if (protocols.empty()) {
    json.expected("at least one protocol");
  }
  return protocols;
}

// More than a share of the links is an algorithm's that is less bound than the rest by what narrows these: but
// with the NIC's own share it is no more than the NIC.
void check_within_the_wire(const JsonReader& json, const AlgorithmCost& algorithm,
                           const Calibration& calibration) {
  const auto network = calibration.efficiency.find(LinkClass::network);
  if (network != calibration.efficiency.end() &&
      algorithm.efficiency > divided_down(Ratio::one(), std::max(network->second, Ratio::smallest())))
    json.required("efficiency")
        .expected("at most what makes 1 with link_efficiency/network: no NIC carries more than its rate");
}

AlgorithmCost read_algorithm(const JsonReader& json) {
  AlgorithmCost algorithm;
  algorithm.name = json.required("name").one_of(Registry<Collective>::names());
  algorithm.launch = cost_or(json, "launch");
  algorithm.step_scale = ratio_or(json, "step_scale", Ratio::one(), {0.001, 1000});
  algorithm.efficiency = ratio_or(json, "efficiency", Ratio::one(), share_range);
  json.finish();
  return algorithm;
}

PeerCost read_peer(const JsonReader& json) {
  PeerCost peer;
  peer.start = cost_or(json, "start");
  if (const auto bandwidth = json.optional("channel_bandwidth")) {
    peer.channel_bandwidth = bandwidth->bandwidth();
  }
  peer.ramp = cost_or(json, "ramp");
  json.finish();
  return peer;
}

FittedRange read_fitted(const JsonReader& json) {
  FittedRange fitted;
  fitted.smallest = json.required("smallest").bytes();
  fitted.largest = json.required("largest").bytes();
  fitted.most_ranks = json.required("most_ranks").integer(1, 10'000'000);
  fitted.most_nodes = json.required("most_nodes").integer(1, 10'000'000);
  json.finish();
  return fitted;
}

ResidualBand read_band(const JsonReader& json) {
  ResidualBand band;
  if (const auto from = json.optional("from")) {
    band.from = from->bytes();
  }
  band.low = ratio(json.required("low"), residual_range, "measured over predicted, minus 1");
  band.high = ratio(json.required("high"), residual_range, "measured over predicted, minus 1");
  json.finish();
  if (band.low > band.high) {
    json.problem("expected low to be at most high");
  }
  return band;
}

// In picoseconds, since a byte takes few of them.
std::int64_t per_byte_or_zero(const JsonReader& json, std::string_view key) {
  const auto found = json.optional(key);
  const Duration time = found ? found->duration() : Duration::zero();
  if (time > longest_per_byte) {
    found->expected("at most 1 us for a byte");
  }
  return time.picoseconds();
}

void read_gradient_copy(const JsonReader& json, Calibration& calibration) {
  calibration.copy_per_tensor = cost_or(json, "per_tensor");
  if (const auto bandwidth = json.optional("bandwidth")) {
    calibration.copy_bandwidth = bandwidth->bandwidth();
  }
  json.finish();
}

void read_residuals(const JsonReader& json, Calibration& calibration) {
  if (const auto communication = json.optional("communication")) {
    calibration.communication_residuals = read_residual_bands(*communication);
  }
  if (const auto compute = json.optional("compute")) {
    calibration.compute_residual = read_band(*compute);
  }
  json.finish();
}

}  // namespace

// One band for all sizes, or a list of them by size.
std::vector<ResidualBand> read_residual_bands(const JsonReader& json) {
  if (json.is_object()) {
    return {read_band(json)};
  }
  std::vector<ResidualBand> bands;
  for (const JsonReader& element : json.elements()) {
    bands.push_back(read_band(element));
    if (bands.size() > 1 && bands.back().from <= bands[bands.size() - 2].from) {
      element.problem("expected bands in ascending order of from");
    }
  }
  return bands;
}

void read_computing(const JsonReader& json, Calibration& calibration) {
  calibration.compute_slowdown = ratio_if_stated(json, "compute_slowdown", slowdown_range);
  calibration.sm_interference = ratio_if_stated(json, "sm_interference", {0, 100});
  calibration.rank_variation = ratio_if_stated(json, "rank_variation", {0, 1});
  if (const auto copy = json.optional("gradient_copy")) {
    read_gradient_copy(*copy, calibration);
  }
  calibration.host_per_bucket = cost_or(json, "host_per_bucket");
}

Calibration read_calibration(const JsonReader& json, const Place&) {
  Calibration calibration;
  calibration.name = json.required("name").text();
  calibration.source = text_or(json, "source", "");
  json.optional("sources");
  calibration.collective_launch = cost_or(json, "collective_launch");
  calibration.channel_start = cost_or(json, "channel_start");
  const auto shared_start = json.optional("shared_channel_start");
  calibration.shared_channel_start = shared_start ? shared_start->duration() : calibration.channel_start;
  if (const auto copies = json.optional("own_copy_channel_bandwidth"))
    calibration.own_copy_channel_bandwidth = copies->bandwidth();
  calibration.message_gap = cost_or(json, "message_gap");
  calibration.efficiency = read_by_class<Ratio>(json.optional("link_efficiency"), read_share);
  calibration.protocols = read_protocols(json.required("protocols"));
  if (const auto algorithms = json.optional("algorithms")) {
    for (const JsonReader& element : algorithms->elements()) {
      calibration.algorithms.push_back(read_algorithm(element));
      check_within_the_wire(element, calibration.algorithms.back(), calibration);
    }
  }
  if (const auto peer = json.optional("peer")) {
    calibration.peer = read_peer(*peer);
  }
  calibration.host_launch = cost_or(json, "host_launch");
  if (const auto version = json.optional("library_version")) {
    calibration.library_version = read_library_version(*version);
  }
  read_computing(json, calibration);
  calibration.core_time_per_byte_ps = per_byte_or_zero(json, "core_time_per_byte");
  calibration.core_share = ratio_or(json, "core_share", Ratio::percent(50), {0.01, 0.99});
  calibration.core_wait = cost_or(json, "core_wait");
  calibration.unhidden_per_byte_ps = per_byte_or_zero(json, "unhidden_per_byte");
  if (const auto residuals = json.optional("residuals")) {
    read_residuals(*residuals, calibration);
  }
  if (const auto fitted = json.optional("fitted")) {
    calibration.fitted = read_fitted(*fitted);
  }
  json.finish();
  return calibration;
}

}  // namespace lockstep
