#include "sim/study/fit/calibration_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/weighted_quantile.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/load/hardware/write_calibration.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t four_digits = 10'000;
constexpr std::size_t fewest_samples = 5;
// What read_calibration takes for a band.
constexpr double lowest_residual = -0.999;
constexpr double highest_residual = 100;

std::int64_t rounded(std::int64_t value) {
  return to_four_digits(value);
}

Duration rounded(Duration duration) {
  return Duration::picoseconds(rounded(duration.picoseconds()));
}

Ratio rounded(Ratio ratio) {
  return Ratio::parts_per_million(rounded(ratio.parts_per_million()));
}

Bandwidth rounded(Bandwidth bandwidth) {
  return Bandwidth{rounded(bandwidth.count())};
}

template <class T>
void round_values(std::map<LinkClass, T>& values) {
  for (auto& [link_class, value] : values) value = rounded(value);
}

template <class T>
void round_known(std::optional<T>& value) {
  if (value)
    value = rounded(*value);
}

void round_protocol(ProtocolCost& protocol) {
  protocol.payload = rounded(protocol.payload);
  round_values(protocol.fill);
  protocol.launch = rounded(protocol.launch);
  round_values(protocol.step);
}

void round_algorithm(AlgorithmCost& algorithm) {
  algorithm.launch = rounded(algorithm.launch);
  algorithm.step_scale = rounded(algorithm.step_scale);
  algorithm.efficiency = rounded(algorithm.efficiency);
}

using Votes = std::vector<std::pair<double, double>>;

ResidualBand band_of(const Votes& votes, Bytes from) {
  return {.low = rounded_residual(weighted_quantile(votes, 0.1) - 1),
          .high = rounded_residual(weighted_quantile(votes, 0.9) - 1),
          .from = from};
}

FittedRange range_of(std::span<const MeasuredTable> tables) {
  FittedRange range{.smallest = Bytes{INT64_MAX}, .largest = Bytes{0}};
  for (const MeasuredTable& table : tables) {
    for (const MeasuredRow& row : table.rows) {
      range.smallest = std::min(range.smallest, row.size);
      range.largest = std::max(range.largest, row.size);
    }
    range.most_ranks = std::max(range.most_ranks, table.ranks());
    range.most_nodes = std::max(range.most_nodes, table.nodes);
  }
  return range;
}

std::int64_t release_of(const MeasuredTable& table, const CommunicationFit& fit) {
  const auto taken = fit.release.find(table.group);
  return parse_nccl_version(table.library_version).value_or(taken == fit.release.end() ? 0 : taken->second);
}

// That of the most points; of several, the newest.
std::int64_t common_release(std::span<const MeasuredTable> tables, const CommunicationFit& fit) {
  std::map<std::int64_t, std::size_t> points;
  for (const MeasuredTable& table : tables) points[release_of(table, fit)] += table.rows.size();
  std::int64_t common = 0;
  std::size_t most = 0;
  for (const auto& [release, count] : points)
    if (count >= most) {
      common = release;
      most = count;
    }
  return common;
}

std::set<std::string> groups_of(std::span<const MeasuredTable> tables) {
  std::set<std::string> groups;
  for (const MeasuredTable& table : tables) groups.insert(table.group);
  return groups;
}

std::string describe_host_launch(const CommunicationFit& fit) {
  std::string text = "geometric mean of";
  for (const auto& [group, time] : fit.host_launch_us)
    text += fmt::format("{} {:.4g} us ({})", text.ends_with("of") ? "" : ",", time, group);
  return text;
}

ordered_json write_sources(const CommunicationFit& fit, const ProfileFacts& facts) {
  ordered_json sources;
  for (const MeasuredTable& table : facts.tables)
    sources["tables"].push_back(table.id == table.source ? table.id : table.id + ": " + table.source);
  if (!facts.residual_source.empty())
    sources["residuals"] = facts.residual_source;
  if (fit.host_launch_us.size() > 1)
    sources["host_launch"] = describe_host_launch(fit);
  sources["compute"] =
      fmt::format("what concerns computing was not fitted: as calibration {}", fit.calibration.name);
  return sources;
}

double in_microseconds(Duration time) {
  return static_cast<double>(time.picoseconds()) / 1e6;
}

// Collects the figures that say something: a cost of nothing and a ratio of one do not.
class ConstantList {
 public:
  void add(const std::string& name, Duration time) {
    if (time > Duration::zero())
      list_.push_back({name, in_microseconds(time), "us"});
  }
  void add(const std::string& name, Ratio ratio) {
    if (ratio != Ratio::one())
      list_.push_back({name, ratio.in_real(), ""});
  }
  void add(const std::string& name, const std::optional<Bandwidth>& bandwidth) {
    if (bandwidth)
      list_.push_back({name, static_cast<double>(bandwidth->count()) / 1e9, "GB/s"});
  }
  template <class T>
  void add(const std::string& name, const std::map<LinkClass, T>& values) {
    for (const auto& [link_class, value] : values)
      add(name + "." + name_of(link_class, link_class_spellings), value);
  }
  std::vector<CalibrationConstant> take() && { return std::move(list_); }

 private:
  std::vector<CalibrationConstant> list_;
};

}  // namespace

std::int64_t to_four_digits(std::int64_t value) {
  std::int64_t unit = 1;
  while (std::abs(value) / unit >= four_digits) unit *= 10;
  return (value + (value < 0 ? -unit : unit) / 2) / unit * unit;
}

Ratio rounded_residual(double residual) {
  return rounded(
      Ratio::parts_per_million(std::llround(std::clamp(residual, lowest_residual, highest_residual) * 1e6)));
}

std::vector<ResidualBand> residual_bands(std::span<const ErrorSample> samples) {
  std::map<SizeClass, Votes> by_class;
  Votes all;
  for (const ErrorSample& sample : samples) {
    all.emplace_back(sample.measured_over_predicted, sample.weight);
    by_class[size_class(sample.size)].push_back(all.back());
  }
  std::vector<ResidualBand> bands;
  if (all.empty())
    return bands;
  for (const SizeClass of : size_classes) {
    const Votes& votes = by_class[of];
    bands.push_back(band_of(votes.size() < fewest_samples ? all : votes, first_of(of)));
  }
  return bands;
}

Calibration rounded_communication(Calibration calibration) {
  calibration.collective_launch = rounded(calibration.collective_launch);
  calibration.channel_start = rounded(calibration.channel_start);
  calibration.shared_channel_start = rounded(calibration.shared_channel_start);
  round_known(calibration.own_copy_channel_bandwidth);
  calibration.message_gap = rounded(calibration.message_gap);
  calibration.host_launch = rounded(calibration.host_launch);
  round_values(calibration.efficiency);
  for (ProtocolCost& protocol : calibration.protocols) round_protocol(protocol);
  for (AlgorithmCost& algorithm : calibration.algorithms) round_algorithm(algorithm);
  calibration.peer.start = rounded(calibration.peer.start);
  calibration.peer.ramp = rounded(calibration.peer.ramp);
  round_known(calibration.peer.channel_bandwidth);
  return calibration;
}

std::size_t count_cells(std::span<const MeasuredTable> tables) {
  std::set<std::string> cells;
  for (const MeasuredTable& table : tables) cells.insert(table.cell());
  return cells.size();
}

std::string describe_tables(std::span<const MeasuredTable> tables) {
  std::size_t points = 0;
  for (const MeasuredTable& table : tables) points += table.rows.size();
  const auto counted = [](std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  return fmt::format("fitted to {} in {} ({}) of {}", counted(points, "point"),
                     counted(tables.size(), "table"), counted(count_cells(tables), "cell"),
                     fmt::join(groups_of(tables), ", "));
}

Calibration calibration_of_profile(const CommunicationFit& fit, const ProfileFacts& facts) {
  Calibration calibration = rounded_communication(fit.calibration);
  calibration.name = facts.name;
  calibration.source = describe_tables(facts.tables);
  calibration.library_version = common_release(facts.tables, fit);
  calibration.communication_residuals = facts.residuals;
  calibration.fitted = range_of(facts.tables);
  return calibration;
}

ordered_json write_profile(const CommunicationFit& fit, const ProfileFacts& facts) {
  return profile_of(calibration_of_profile(fit, facts), write_sources(fit, facts));
}

ordered_json profile_of(const Calibration& calibration, ordered_json sources) {
  const ordered_json complete = write_calibration(calibration);
  const ordered_json defaults = write_calibration(Calibration{});
  ordered_json profile{
      {"name", complete.at("name")}, {"source", complete.at("source")}, {"sources", std::move(sources)}};
  for (const auto& [key, value] : complete.items()) {
    const auto standard = defaults.find(key);
    if (standard == defaults.end() || *standard != value)
      profile[key] = value;
  }
  return profile;
}

std::vector<CalibrationConstant> calibration_constants(const Calibration& calibration) {
  ConstantList list;
  list.add("collective_launch", calibration.collective_launch);
  list.add("channel_start", calibration.channel_start);
  list.add("shared_channel_start", calibration.shared_channel_start);
  list.add("own_copy_channel_bandwidth", calibration.own_copy_channel_bandwidth);
  list.add("message_gap", calibration.message_gap);
  list.add("host_launch", calibration.host_launch);
  list.add("link_efficiency", calibration.efficiency);
  for (const ProtocolCost& protocol : calibration.protocols) {
    const std::string name = "protocols." + protocol.name;
    list.add(name + ".fill", protocol.fill);
    list.add(name + ".launch", protocol.launch);
    list.add(name + ".step", protocol.step);
  }
  for (const AlgorithmCost& algorithm : calibration.algorithms) {
    const std::string name = "algorithms." + algorithm.name;
    list.add(name + ".launch", algorithm.launch);
    list.add(name + ".step_scale", algorithm.step_scale);
    list.add(name + ".efficiency", algorithm.efficiency);
  }
  list.add("peer.start", calibration.peer.start);
  list.add("peer.channel_bandwidth", calibration.peer.channel_bandwidth);
  list.add("peer.ramp", calibration.peer.ramp);
  return std::move(list).take();
}

}  // namespace lockstep
