#include "sim/load/hardware/write_calibration.h"

#include <map>
#include <optional>
#include <vector>

#include "sim/collectives/nccl_tuner.h"
#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

double in_real(Ratio ratio) {
  return ratio.in_real();
}

template <class T, class Write>
ordered_json write_by_class(const std::map<LinkClass, T>& values, Write write) {
  ordered_json json = ordered_json::object();
  for (const auto& [link_class, value] : values) {
    json[name_of(link_class, link_class_spellings)] = write(value);
  }
  return json;
}

ordered_json write_protocols(const std::vector<ProtocolCost>& protocols) {
  ordered_json json = ordered_json::array();
  for (const ProtocolCost& protocol : protocols) {
    ordered_json entry{{"name", protocol.name}, {"payload", in_real(protocol.payload)}};
    if (!protocol.fill.empty()) {
      entry["fill"] = write_by_class(protocol.fill, in_real);
    }
    for (const Bandwidth limit : protocol.most_bandwidth) {
      entry["most_bandwidth"].push_back(exact_text(limit));
    }
    entry["launch"] = exact_text(protocol.launch);
    entry["step"] = write_by_class(protocol.step, [](Duration step) { return exact_text(step); });
    json.push_back(std::move(entry));
  }
  return json;
}

ordered_json write_algorithms(const std::vector<AlgorithmCost>& algorithms) {
  ordered_json json = ordered_json::array();
  for (const AlgorithmCost& algorithm : algorithms) {
    json.push_back({{"name", algorithm.name},
                    {"launch", exact_text(algorithm.launch)},
                    {"step_scale", in_real(algorithm.step_scale)},
                    {"efficiency", in_real(algorithm.efficiency)}});
  }
  return json;
}

ordered_json write_peer(const PeerCost& peer) {
  ordered_json json{{"start", exact_text(peer.start)}, {"ramp", exact_text(peer.ramp)}};
  if (peer.channel_bandwidth) {
    json["channel_bandwidth"] = exact_text(*peer.channel_bandwidth);
  }
  return json;
}

ordered_json write_fitted(const FittedRange& fitted) {
  return {{"smallest", exact_text(fitted.smallest)},
          {"largest", exact_text(fitted.largest)},
          {"most_ranks", fitted.most_ranks},
          {"most_nodes", fitted.most_nodes}};
}

ordered_json write_residual(const ResidualBand& band) {
  return {{"low", in_real(band.low)}, {"high", in_real(band.high)}};
}

}  // namespace

ordered_json write_residual_bands(const std::vector<ResidualBand>& bands) {
  ordered_json json = ordered_json::array();
  for (const ResidualBand& band : bands) {
    ordered_json entry{{"from", exact_text(band.from)}};
    entry.update(write_residual(band));
    json.push_back(std::move(entry));
  }
  return json;
}

void write_computing(const Calibration& calibration, ordered_json& json) {
  const auto write_if_measured = [&](const char* key, const std::optional<Ratio>& ratio) {
    if (ratio)
      json[key] = in_real(*ratio);
  };
  write_if_measured("compute_slowdown", calibration.compute_slowdown);
  write_if_measured("sm_interference", calibration.sm_interference);
  write_if_measured("rank_variation", calibration.rank_variation);
  json["gradient_copy"] = {{"per_tensor", exact_text(calibration.copy_per_tensor)}};
  if (calibration.copy_bandwidth) {
    json["gradient_copy"]["bandwidth"] = exact_text(*calibration.copy_bandwidth);
  }
  json["host_per_bucket"] = exact_text(calibration.host_per_bucket);
}

ordered_json write_calibration(const Calibration& calibration) {
  ordered_json json{{"name", calibration.name}, {"source", calibration.source}};
  json["collective_launch"] = exact_text(calibration.collective_launch);
  json["channel_start"] = exact_text(calibration.channel_start);
  json["shared_channel_start"] = exact_text(calibration.shared_channel_start);
  if (calibration.own_copy_channel_bandwidth)
    json["own_copy_channel_bandwidth"] = exact_text(*calibration.own_copy_channel_bandwidth);
  json["message_gap"] = exact_text(calibration.message_gap);
  json["link_efficiency"] = write_by_class(calibration.efficiency, in_real);
  json["protocols"] = write_protocols(calibration.protocols);
  if (!calibration.algorithms.empty()) {
    json["algorithms"] = write_algorithms(calibration.algorithms);
  }
  json["peer"] = write_peer(calibration.peer);
  json["host_launch"] = exact_text(calibration.host_launch);
  if (calibration.library_version > 0) {
    json["library_version"] = nccl_version_text(calibration.library_version);
  }
  json["core_time_per_byte"] = exact_text(Duration::picoseconds(calibration.core_time_per_byte_ps));
  json["core_share"] = in_real(calibration.core_share);
  if (calibration.core_wait > Duration::zero())
    json["core_wait"] = exact_text(calibration.core_wait);
  json["unhidden_per_byte"] = exact_text(Duration::picoseconds(calibration.unhidden_per_byte_ps));
  write_computing(calibration, json);
  if (!calibration.communication_residuals.empty()) {
    json["residuals"]["communication"] = write_residual_bands(calibration.communication_residuals);
  }
  if (calibration.compute_residual) {
    json["residuals"]["compute"] = write_residual(*calibration.compute_residual);
  }
  if (calibration.fitted) {
    json["fitted"] = write_fitted(*calibration.fitted);
  }
  return json;
}

}  // namespace lockstep
