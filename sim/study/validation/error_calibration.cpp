#include "sim/study/validation/error_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/weighted_quantile.h"
#include "sim/load/error_model_json.h"
#include "sim/load/hardware/read_calibration.h"

namespace lockstep {
namespace {

// Wide enough to see what the iteration makes of it, narrow enough to stay near.
constexpr ErrorRange probe_range{.low = Ratio::percent(-5), .high = Ratio::percent(10)};

double parts_of(Ratio ratio) {
  return static_cast<double>(ratio.parts_per_million());
}

Calibration calibration_named(const std::string& name, const ProfileStore& store) {
  LoadContext context{.store = store, .folder = ""};
  JsonDocument document = JsonDocument::from_value(name, "calibration");
  Calibration calibration =
      read_named(document.root(), {context, ""}, ProfileKind::calibration, read_calibration);
  document.throw_if_problems();
  return calibration;
}

// Half of the calibrated machines have narrower residuals than these, by size.
std::vector<ResidualBand> usual_message_residuals(const ProfileStore& store) {
  std::vector<ResidualBand> usual;
  for (const Bytes from : {Bytes{0}, Bytes{64 * 1024}, Bytes{mebi}}) {
    std::vector<std::pair<double, double>> low, high;
    for (const std::string& name : store.names(ProfileKind::calibration)) {
      const auto band = calibration_named(name, store).communication_residual(from);
      if (!band)
        continue;
      low.emplace_back(parts_of(band->low), 1);
      high.emplace_back(parts_of(band->high), 1);
    }
    usual.push_back({.low = Ratio::parts_per_million(std::llround(weighted_quantile(low, 0.5))),
                     .high = Ratio::parts_per_million(std::llround(weighted_quantile(high, 0.5))),
                     .from = from});
  }
  return usual;
}

ErrorModel probe_model(std::vector<ResidualBand> communication) {
  ErrorModel probe;
  probe.name = "probe";
  probe.in_node = probe_range;
  probe.between_nodes = probe_range;
  probe.transferred = probe_range;
  probe.unanchored = {{"any", probe_range}};
  probe.host = probe_range;
  probe.communication = std::move(communication);
  return probe;
}

bool counts(const ValidationCase& entry) {
  return entry.split == "heldout" && entry.caution.empty() && !entry.is_kernel && entry.band;
}

LogRange part_of(const LogRange& iteration, const LogRange& alone) {
  const auto part = [](double of_iteration, double of_itself) {
    return of_itself == 0 ? 0 : of_iteration / of_itself;
  };
  return {part(iteration.low, alone.low), part(iteration.high, alone.high)};
}

StepMiss miss_of(const ValidationCase& entry) {
  const BandParts& band = *entry.band;
  return {.group = entry.group,
          .conditions = band.conditions,
          .missed = std::log(entry.measured_s / entry.predicted_s),
          .per_computing = part_of(band.computing_of_iteration, band.computing),
          .per_host = part_of(band.host_of_iteration, band.host),
          .communication = band.communication_of_iteration};
}

std::string percent(Ratio ratio) {
  return fmt::format("{:+.1f} %", parts_of(ratio) / 1e4);
}

std::string line_of(const std::string& what, const ErrorRange& range) {
  return fmt::format("{:<52} {:>9} {:>9}\n", what, percent(range.low), percent(range.high));
}

}  // namespace

ErrorCalibration calibrate_errors(const ValidationOptions& suites) {
  const ProfileStore store(suites.data_directory);
  const std::vector<ResidualBand> communication = usual_message_residuals(store);
  ValidationOptions probing = suites;
  probing.errors = probe_model(communication);
  std::vector<StepMiss> misses;
  for (const ValidationCase& entry : validate(probing).cases)
    if (counts(entry))
      misses.push_back(miss_of(entry));
  if (misses.empty())
    throw ConfigError("--band: found no held-out case of an iteration in the suites");
  ErrorCalibration report{.errors = fit_errors(misses, communication),
                          .without = fit_errors_without_each(misses, communication),
                          .cases = misses.size()};
  for (const StepMiss& miss : misses) {
    const ErrorModel& others = report.without.at(miss.group);
    report.held += ranges_away(miss, others) <= others.factor.in_real() ? 1 : 0;
  }
  return report;
}

std::string to_text(const ErrorCalibration& report) {
  const ErrorModel& errors = report.errors;
  std::string text = fmt::format("{:<52} {:>9} {:>9}\n", "measured over predicted", "low", "high");
  text += line_of("an iteration measured again, elsewhere", errors.measured);
  text += line_of("ranks that share a node, a doubling", errors.in_node);
  text += line_of("more nodes, a doubling", errors.between_nodes);
  text += line_of("carried over, each doubling", errors.transferred);
  for (const auto& [kind, range] : errors.unanchored) text += line_of("no measured step: " + kind, range);
  text += line_of("what issuing takes a host that is waited for", errors.host);
  text += fmt::format("\nfactor {:.3f}; groups left out one by one: {} of {} cases held ({:.1f} %)\n",
                      errors.factor.in_real(), report.held, report.cases,
                      100.0 * static_cast<double>(report.held) / static_cast<double>(report.cases));
  return text;
}

nlohmann::ordered_json profile_of(const ErrorCalibration& report) {
  nlohmann::ordered_json profile = write_error_model(report.errors);
  profile["source"] = fmt::format(
      "fitted to {} held-out cases of {} groups, one vote a case; each group left out in turn, {} of the "
      "cases lie "
      "within the band made without them",
      report.cases, report.without.size(), report.held);
  return profile;
}

nlohmann::ordered_json to_json(const ErrorCalibration& report) {
  return {{"schema", "lockstep.calibration_report/1"},
          {"cases", report.cases},
          {"groups", report.without.size()},
          {"held", report.held},
          {"profile", profile_of(report)}};
}

}  // namespace lockstep
