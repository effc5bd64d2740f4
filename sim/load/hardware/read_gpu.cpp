// Reads a GPU: its data sheet, and what kernels reach of it.
//
// A processor that was measured as a whole states a curve of efficiencies; every other takes the constants it
// names, or its architecture's.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/nearest_name.h"
#include "sim/base/other_names.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using Curve = std::vector<EfficiencyPoint>;
using Curves = std::map<Precision, Curve>;

constexpr RatioRange efficiency_range{0.001, 1};
// Far from any device, and far enough from the ends of 64 bits that no efficiency takes a rate out of them.
constexpr std::int64_t least_tdp_milliwatts = 1'000;
constexpr FlopRate slowest_peak{1'000'000};
constexpr FlopRate fastest_peak{1'000'000'000'000'000'000};
constexpr Bandwidth slowest_memory{1'000'000};
constexpr Bandwidth fastest_memory{1'000'000'000'000'000};

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
    curve.push_back(
        {.flops = element.required("flops").flops(),
         .efficiency = ratio(element.required("efficiency"), efficiency_range, "achieved over peak")});
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

Curves read_curves(const JsonReader& json) {
  const auto curves = json.optional("matmul_efficiency");
  return curves ? read_by_precision<Curve>(*curves, read_curve) : Curves{};
}

KernelConstants read_architecture(const std::string& name, const Place& place) {
  JsonDocument document = JsonDocument::from_value(name, "GPU architecture");
  KernelConstants constants =
      read_named(document.root(), place, ProfileKind::architecture, read_kernel_constants);
  place.context.add_problems(document.problems());
  return constants;
}

// Inline GPUs say no compute capability: what they multiply in tells how old their SMs are.
std::int64_t guessed_capability(const GpuSpec& gpu) {
  if (gpu.compute_capability > 0)
    return gpu.compute_capability;
  if (gpu.peak.contains(Precision::fp8))
    return 90;
  if (gpu.peak.contains(Precision::bf16) || gpu.peak.contains(Precision::tf32))
    return 80;
  return gpu.peak.contains(Precision::fp16) ? 70 : 60;
}

// A processor that was measured as a whole has its curve, a GPU the constants it states or its architecture's.
void read_kernels(const JsonReader& json, const Place& place, std::string_view vendor, GpuSpec& gpu) {
  const Place kernels = place / "compute";
  if (const auto stated = json.optional("compute")) {
    gpu.kernels = read_named(*stated, kernels, ProfileKind::architecture, read_kernel_constants);
  } else if (gpu.matmul_efficiency.empty()) {
    const ArchitectureChoice choice = architecture_of(gpu.is_amd ? 0 : guessed_capability(gpu), vendor);
    gpu.kernels = read_architecture(choice.name, kernels);
    gpu.kernels->are_compared = gpu.kernels->are_compared && choice.is_own;
    if (!choice.is_own)
      kernels.note_stand_in(
          fmt::format("GPU {}: no kernels of its architecture were timed: those of {} stand for them",
                      gpu.name, choice.name));
    else if (!gpu.is_amd && gpu.compute_capability == 0)
      kernels.note_stand_in(
          fmt::format("GPU {} states no compute_capability: by its precisions, kernels of {} stand "
                      "for its own",
                      gpu.name, choice.name));
  }
  if (gpu.kernels && json.optional("memory_efficiency"))
    gpu.kernels->memory.efficiency = gpu.memory_efficiency;
}

FlopRate read_peak(const JsonReader& json) {
  const FlopRate peak = json.flop_rate();
  if (is_readable(json, parse_flop_rate) && (peak < slowest_peak || peak > fastest_peak)) {
    json.expected("a peak from 1 MFLOP/s to 1 EFLOP/s");
  }
  return peak;
}

void read_memory(const JsonReader& json, GpuSpec& gpu) {
  const JsonReader memory = json.required("memory");
  gpu.memory = memory.bytes();
  if (is_readable(memory, parse_bytes) && gpu.memory.count() == 0)
    memory.expected("a memory above 0 B");
  const JsonReader bandwidth = json.required("memory_bandwidth");
  gpu.memory_bandwidth = bandwidth.bandwidth();
  if (is_readable(bandwidth, parse_bandwidth) &&
      (gpu.memory_bandwidth < slowest_memory || gpu.memory_bandwidth > fastest_memory)) {
    bandwidth.expected("a bandwidth from 1 MB/s to 1 PB/s");
  }
  gpu.memory_efficiency = ratio_or(json, "memory_efficiency", gpu.memory_efficiency, efficiency_range);
  if (const auto cache = json.optional("l2")) {
    gpu.l2 = cache->bytes();
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

}  // namespace

GpuSpec read_gpu(const JsonReader& json, const Place& place) {
  GpuSpec gpu;
  gpu.name = json.required("name").text();
  gpu.source = text_or(json, "source", "");
  json.optional("sources");
  const std::string vendor = text_or(json, "vendor", "");
  gpu.is_amd = vendor == "amd";
  read_other_names(json);
  gpu.compute_capability = read_compute_capability(json);
  read_peaks(json, gpu);
  read_memory(json, gpu);
  gpu.sms = json.required("sms").integer(1, 100'000);
  if (const auto power = json.optional("tdp")) {
    gpu.tdp_milliwatts = power->milliwatts();
    if (is_readable(*power, parse_power) && gpu.tdp_milliwatts < least_tdp_milliwatts)
      power->expected("at least 1 W");
  }
  gpu.kernel_launch = duration_or(json, "kernel_launch", Duration::nanoseconds(4'500));
  gpu.host_launch = duration_or(json, "host_launch", Duration::microseconds(5));
  gpu.matmul_efficiency = read_curves(json);
  read_kernels(json, place, vendor, gpu);
  json.finish();
  return gpu;
}

}  // namespace lockstep
