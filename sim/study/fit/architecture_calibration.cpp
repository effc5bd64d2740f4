#include "sim/study/fit/architecture_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/report/text_table.h"
#include "sim/study/bench/kernel_prediction.h"
#include "sim/study/gpu_name.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// The GPUs of one architecture that tables name, by what they name them.
class ArchitectureGpus {
 public:
  ArchitectureGpus(std::string architecture, const ProfileStore& store)
      : architecture_(std::move(architecture)), store_(store) {}

  // Null: another architecture's, or nobody's.
  const GpuSpec* find(const std::string& printed) {
    const auto [known, is_new] = gpus_.try_emplace(printed);
    if (is_new)
      known->second = read(printed);
    return known->second ? &*known->second : nullptr;
  }

 private:
  std::optional<GpuSpec> read(const std::string& printed) const {
    const std::string name = find_gpu_named(printed, store_);
    if (name.empty())
      return std::nullopt;
    GpuSpec gpu = load_gpu(name, store_);
    const bool is_member = gpu.kernels && gpu.kernels->name == architecture_;
    return is_member ? std::optional(std::move(gpu)) : std::nullopt;
  }

  std::string architecture_;
  const ProfileStore& store_;
  std::map<std::string, std::optional<GpuSpec>> gpus_;
};

KernelConstants constants_now(const std::string& name, const ProfileStore& store) {
  if (!store.has(ProfileKind::architecture, name))
    throw ConfigError(fmt::format("--architecture: found \"{}\"; {}", name,
                                  describe_choices(name, store.names(ProfileKind::architecture))));
  JsonDocument document = JsonDocument::from_file(store.open(ProfileKind::architecture, name)->file);
  LoadContext context{.store = store, .folder = ""};
  KernelConstants constants = read_kernel_constants(document.root(), {context, ""});
  document.throw_if_problems();
  return constants;
}

Json json_of(const SectionResidual& residual) {
  const auto two_digits = [](double value) { return std::round(value * 100) / 100; };
  return {{"section", residual.section},
          {"rows", residual.is_fitted ? "fitted" : "kept aside"},
          {"kernels", residual.kernels},
          {"median_percent", two_digits(residual.median)},
          {"p90_percent", two_digits(residual.p90)},
          {"bias_percent", two_digits(residual.bias)}};
}

// Residuals of sections that stay as they were.
Json kept_residuals(const Json& before, const Json& profile, const std::set<std::string>& fitted) {
  Json kept = Json::array();
  for (const Json& residual : before.value("residuals", Json::array())) {
    const std::string section = residual.at("section");
    if (!fitted.contains(section) && profile.contains(section))
      kept.push_back(residual);
  }
  return kept;
}

// Who says what the rows of this fit do not.
Json kept_sources(const Json& before, const Json& kept, const std::set<std::string>& fitted) {
  Json sources = before.value("sources", Json::object());
  for (const std::string& section : fitted) sources.erase(section);
  for (const Json& residual : kept)
    if (const std::string section = residual.at("section"); !sources.contains(section))
      sources[section] = before.at("source");
  return sources;
}

Json profile_of(const ArchitectureFit& fit, const Json& before) {
  std::set<std::string> fitted;
  for (const SectionResidual& residual : fit.residuals) fitted.insert(residual.section);
  const Json constants = write_kernel_constants(to_four_digits(fit.constants));
  Json residuals = kept_residuals(before, constants, fitted);
  const Json sources = kept_sources(before, residuals, fitted);
  Json profile{{"name", constants.at("name")}, {"source", constants.at("source")}};
  if (!sources.empty())
    profile["sources"] = sources;
  profile.update(constants);
  for (const SectionResidual& residual : fit.residuals) residuals.push_back(json_of(residual));
  profile["residuals"] = residuals;
  return profile;
}

}  // namespace

ArchitectureCalibration calibrate_architecture(const std::string& name, std::span<const KernelCase> kernels,
                                               const std::string& without, const ProfileStore& store) {
  const KernelConstants start = constants_now(name, store);
  TellingRows telling(kernels);
  ArchitectureGpus gpus(name, store);
  std::set<std::string> sources;
  bool leaves_out = false;
  for (const KernelCase& kernel : kernels) {
    const GpuSpec* gpu = gpus.find(kernel.gpu);
    if (gpu == nullptr)
      continue;
    if (without == gpu->name || without == kernel.gpu) {
      leaves_out = true;
      continue;
    }
    if (telling.add(kernel, *gpu))
      sources.insert(fmt::format("{} of {}", kernel.source, gpu->name));
  }
  if (!without.empty() && !leaves_out)
    throw ConfigError(
        fmt::format("--without: found \"{}\", and no row is of such a GPU of {}", without, name));
  if (telling.rows().empty())
    throw ConfigError(fmt::format("--architecture {}: no row of the tables is of a shipped GPU of it", name));
  ArchitectureFit fit = fit_architecture(start, telling.rows());
  fit.constants.source = fmt::format("fitted to timed kernels: {}", fmt::join(sources, ", "));
  return {.profile = profile_of(fit, *store.open(ProfileKind::architecture, name)->value),
          .residuals = fit.residuals,
          .warnings = telling.warnings()};
}

std::string to_text(const ArchitectureCalibration& report) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"section", "rows", "kernels", "median %", "p90", "bias"});
  for (const SectionResidual& residual : report.residuals)
    table.add_row({residual.section, residual.is_fitted ? "fitted" : "kept aside",
                   fmt::format("{}", residual.kernels), fmt::format("{:.1f}", residual.median),
                   fmt::format("{:.1f}", residual.p90), fmt::format("{:+.1f}", residual.bias)});
  return fmt::format("{}: {}\n\n{}", report.profile.at("name").get<std::string>(),
                     report.profile.at("source").get<std::string>(), table.text(2));
}

Json to_json(const ArchitectureCalibration& report) {
  return {{"schema", "lockstep.calibration_report/1"},
          {"architecture", report.profile.at("name")},
          {"residuals", report.profile.at("residuals")},
          {"warnings", report.warnings},
          {"profile", report.profile}};
}

}  // namespace lockstep
