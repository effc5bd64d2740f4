// Reads a GPU, and completes its efficiency curves.
//
// A precision without a measured curve borrows one: the GPU's own for the nearest precision, or that of the
// GPU in "matmul_efficiency_like". What is borrowed is scaled so that its top is the best ratio known for the
// precision (for bf16, where only that was measured), because the shape travels better than the height.

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/nearest_name.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using Curve = std::vector<EfficiencyPoint>;
using Curves = std::map<Precision, Curve>;

constexpr RatioRange efficiency_range{0.001, 1};
// Far from any device, and far enough from the ends of 64 bits that no efficiency takes a rate out of them.
constexpr FlopRate slowest_peak{1'000'000};
constexpr FlopRate fastest_peak{1'000'000'000'000'000'000};
constexpr Bandwidth slowest_memory{1'000'000};
constexpr Bandwidth fastest_memory{1'000'000'000'000'000};
constexpr std::int64_t flat_efficiency_ppm = 800'000;

std::optional<Precision> find_precision(const std::string& name, const JsonReader& json) {
  const std::vector<std::string> valid = names_of(multiplication_spellings);
  if (std::find(valid.begin(), valid.end(), name) != valid.end()) {
    return multiplication_spellings[static_cast<std::size_t>(std::find(valid.begin(), valid.end(), name) -
                                                             valid.begin())]
        .value;
  }
  json.problem("found an unknown precision; " + describe_choices(name, valid));
  return std::nullopt;
}

// {"fp16": ..., "bf16": ...} into a map.
template <class T, class Read>
std::map<Precision, T> read_by_precision(const JsonReader& json, Read read) {
  std::map<Precision, T> values;
  for (const auto& [name, member] : json.members()) {
    if (const auto precision = find_precision(name, member)) {
      values[*precision] = read(member);
    }
  }
  return values;
}

Curve read_curve(const JsonReader& json) {
  Curve curve;
  for (const JsonReader& element : json.elements()) {
    curve.push_back({.flops = element.required("flops").flops(),
                     .parts_per_million = parts_per_million(element.required("efficiency"), efficiency_range,
                                                            "achieved over peak")});
    element.finish();
    if (curve.size() > 1 && curve[curve.size() - 2].flops >= curve.back().flops) {
      element.problem("expected points in ascending order of flops");
    }
  }
  if (curve.empty()) {
    json.expected("at least one point");
  }
  return curve;
}

const Curve* find_curve(const Curves& curves, std::initializer_list<Precision> wanted) {
  for (const Precision precision : wanted) {
    const auto found = curves.find(precision);
    if (found != curves.end() && !found->second.empty()) {
      return &found->second;
    }
  }
  return nullptr;
}

Curve scaled_to(Curve curve, std::int64_t top_ppm) {
  std::int64_t highest = 1;
  for (const EfficiencyPoint& point : curve) {
    highest = std::max(highest, point.parts_per_million);
  }
  for (EfficiencyPoint& point : curve) {
    point.parts_per_million = std::max<std::int64_t>(1, point.parts_per_million * top_ppm / highest);
  }
  return curve;
}

std::optional<std::int64_t> best_known(const std::map<Precision, std::int64_t>& best, Precision precision) {
  for (const Precision candidate : {precision, Precision::bf16}) {
    if (const auto found = best.find(candidate); found != best.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

Curve borrowed_curve(const Curves& own, const Curves& relative, Precision precision) {
  if (const Curve* curve = find_curve(own, {Precision::fp16, Precision::bf16})) {
    return *curve;
  }
  if (const Curve* curve =
          find_curve(relative, {precision, Precision::fp16, Precision::bf16, Precision::fp32})) {
    return *curve;
  }
  return {EfficiencyPoint{.flops = Flops{1'000'000'000}, .parts_per_million = flat_efficiency_ppm}};
}

// The curves as that GPU's own file states them; nothing that it borrows in turn.
Curves read_relative_curves(const JsonReader& json, const Place&) {
  const auto curves = json.optional("matmul_efficiency");
  return curves ? read_by_precision<Curve>(*curves, read_curve) : Curves{};
}

Curves read_relative(const JsonReader& json, const Place& place) {
  const Place curves = place / "matmul_efficiency";
  if (const auto name = json.optional("matmul_efficiency_like")) {
    return read_named(*name, curves, ProfileKind::gpu, read_relative_curves);
  }
  return {};
}

void read_efficiency(const JsonReader& json, const Place& place, GpuSpec& gpu) {
  const auto own = json.optional("matmul_efficiency");
  const Curves own_curves = own ? read_by_precision<Curve>(*own, read_curve) : Curves{};
  const Curves relative = read_relative(json, place);
  const auto best_json = json.optional("best_matmul_efficiency");
  const auto best = best_json ? read_by_precision<std::int64_t>(
                                    *best_json,
                                    [](const JsonReader& ratio) {
                                      return parts_per_million(ratio, efficiency_range, "achieved over peak");
                                    })
                              : std::map<Precision, std::int64_t>{};
  gpu.matmul_efficiency = own_curves;
  for (const auto& [precision, peak] : gpu.peak) {
    if (own_curves.contains(precision)) {
      continue;
    }
    Curve curve = borrowed_curve(own_curves, relative, precision);
    const auto top = best_known(best, precision);
    gpu.matmul_efficiency[precision] = top ? scaled_to(std::move(curve), *top) : std::move(curve);
  }
}

FlopRate read_peak(const JsonReader& json) {
  const FlopRate peak = json.flop_rate();
  if (is_readable(json, parse_flop_rate) && (peak < slowest_peak || peak > fastest_peak)) {
    json.expected("a peak from 1 MFLOP/s to 1 EFLOP/s");
  }
  return peak;
}

void read_memory(const JsonReader& json, GpuSpec& gpu) {
  gpu.memory = json.required("memory").bytes();
  const JsonReader bandwidth = json.required("memory_bandwidth");
  gpu.memory_bandwidth = bandwidth.bandwidth();
  if (is_readable(bandwidth, parse_bandwidth) &&
      (gpu.memory_bandwidth < slowest_memory || gpu.memory_bandwidth > fastest_memory)) {
    bandwidth.expected("a bandwidth from 1 MB/s to 1 PB/s");
  }
  gpu.memory_efficiency_ppm =
      parts_per_million_or(json, "memory_efficiency", gpu.memory_efficiency_ppm, efficiency_range);
  if (const auto cache = json.optional("l2")) {
    cache->bytes();
  }
}

void read_peaks(const JsonReader& json, GpuSpec& gpu) {
  const JsonReader peak = json.required("peak");
  if (peak.is_missing()) {
    return;
  }
  gpu.peak = read_by_precision<FlopRate>(peak, read_peak);
  if (gpu.peak.empty() && peak.is_object()) {
    peak.expected("the peak of at least one precision");
  }
  if (const auto vector_peak = json.optional("vector_peak")) {
    gpu.vector_peak = read_peak(*vector_peak);
  } else if (!gpu.peak.empty()) {
    const auto single = gpu.peak.find(Precision::fp32);
    gpu.vector_peak = single != gpu.peak.end() ? single->second : gpu.peak.begin()->second;
  }
}

// "9.0" is 90.
std::int64_t read_compute_capability(const JsonReader& json) {
  const auto found = json.optional("compute_capability");
  if (!found) {
    return 0;
  }
  const std::string text = found->text();
  const auto point = text.find('.');
  const bool is_version = point != std::string::npos && point > 0 && point + 2 == text.size() &&
                          text.find_first_not_of("0123456789.") == std::string::npos &&
                          text.find('.', point + 1) == std::string::npos && text.size() <= 4;
  if (!is_version) {
    found->expected("a compute capability such as \"9.0\"");
    return 0;
  }
  return std::stoll(text.substr(0, point)) * 10 + (text.back() - '0');
}

// For whoever looks a GPU up by what a driver or a benchmark prints.
void read_other_names(const JsonReader& json) {
  if (const auto names = json.optional("also_known_as")) {
    for (const JsonReader& name : names->elements()) {
      name.text();
    }
  }
}

}  // namespace

GpuSpec read_gpu(const JsonReader& json, const Place& place) {
  GpuSpec gpu;
  gpu.name = json.required("name").text();
  gpu.source = text_or(json, "source", "");
  json.optional("sources");
  text_or(json, "vendor", "");
  read_other_names(json);
  gpu.compute_capability = read_compute_capability(json);
  read_peaks(json, gpu);
  read_memory(json, gpu);
  gpu.sms = json.required("sms").integer(1, 100'000);
  if (const auto power = json.optional("tdp")) {
    gpu.tdp_milliwatts = power->milliwatts();
  }
  gpu.kernel_launch = duration_or(json, "kernel_launch", Duration::nanoseconds(4'500));
  gpu.host_launch = duration_or(json, "host_launch", Duration::microseconds(5));
  read_efficiency(json, place, gpu);
  json.finish();
  return gpu;
}

}  // namespace lockstep
