#include "sim/report/band.h"

#include <algorithm>
#include <utility>

#include "sim/base/series.h"
#include "sim/report/extrapolation.h"
#include "sim/run/host_issue.h"

namespace lockstep {
namespace {

// What messages take at one end of their residuals. Between nodes none is faster than the wire.
std::vector<MessageFactor> message_factors(const Scenario& scenario, bool is_high) {
  const Calibration& calibration = scenario.cluster.calibration;
  const auto known = calibration.efficiency.find(LinkClass::network);
  const bool is_bound = scenario.cluster.nodes > 1 && known != calibration.efficiency.end();
  const Ratio least = is_bound ? std::min(known->second, Ratio::one()) : Ratio::smallest();
  std::vector<MessageFactor> factors;
  for (const ResidualBand& band : message_residuals(calibration, *scenario.errors))
    factors.push_back({factors.empty() ? Bytes{0} : band.from,
                       is_high ? std::max(Ratio::one() + band.high, Ratio::one())
                               : std::clamp(Ratio::one() + band.low, least, Ratio::one())});
  return factors;
}

// The calibration's own, where it has measured whole steps.
std::vector<ErrorSource> sources_of_computing(const Scenario& scenario, const StepConditions& conditions) {
  const auto& measured = scenario.cluster.calibration.compute_residual;
  if (!measured || conditions.is_measured)
    return sources_of(conditions, *scenario.errors);
  StepConditions others = conditions;
  others.is_measured = true;
  std::vector<ErrorSource> sources = sources_of(others, *scenario.errors);
  sources.push_back({"computing, as calibrated", log_range({measured->low, measured->high})});
  return sources;
}

LogRange sum_of(const std::vector<ErrorSource>& sources) {
  std::vector<LogRange> ranges;
  for (const ErrorSource& source : sources) ranges.push_back(source.range);
  return root_of_squares(ranges);
}

Duration steady_iteration(const Simulation& simulation) {
  if (simulation.updates)
    return sum(mean_update(*simulation.updates));
  return mean_iteration(RankView(simulation.steady, critical_representative(simulation.steady)));
}

// The iteration at other prices over the one as it is, as a logarithm.
class Ends {
 public:
  Ends(Simulation& simulation, const Scenario& scenario, const RepricedRunOptions& options)
      : simulation_(simulation),
        before_(steady_iteration(simulation)),
        repriced_(simulation, scenario, options) {}

  double at(const PriceChange& change) {
    repriced_.run(change);
    return logarithm_of(steady_iteration(simulation_));
  }

  LogRange of_computing(const LogRange& range) { return between(range, &PriceChange::compute); }

  LogRange of_host(const Scenario& scenario, const LogRange& range) {
    if (!waits_for_host(simulation_.job))
      return {0, of_hidden_host(scenario, range.high)};
    return between(range, &PriceChange::host);
  }

  LogRange of_messages(const Scenario& scenario) {
    if (!repriced_.sends_messages() || scenario.cluster.ranks() == 1)
      return {};
    return {std::min(at({.messages = message_factors(scenario, false)}), 0.0),
            std::max(at({.messages = message_factors(scenario, true)}), 0.0)};
  }

 private:
  LogRange between(const LogRange& range, Ratio PriceChange::*part) {
    if (range.low == 0 && range.high == 0)
      return {};
    const auto end = [&](double logarithm) {
      PriceChange change;
      change.*part = to_ratio(logarithm);
      return at(change);
    };
    return {std::min(end(range.low), 0.0), std::max(end(range.high), 0.0)};
  }

  // Of one that is always ahead: what one GPU would wait for it.
  double of_hidden_host(const Scenario& scenario, double high) const {
    const Duration waiting = waiting_for_slower_host(scenario, simulation_.job, to_ratio(high));
    return logarithm_of(before_ + waiting);
  }

  double logarithm_of(Duration iteration) const {
    const auto of = [](Duration time) {
      return static_cast<double>(std::max<std::int64_t>(time.picoseconds(), 1));
    };
    return natural_logarithm(of(iteration) / of(before_));
  }

  Simulation& simulation_;
  Duration before_;
  RepricedRun repriced_;
};

BandParts parts_of(const Scenario& scenario, Simulation& simulation, const RepricedRunOptions& options) {
  BandParts parts;
  parts.conditions = conditions_of(scenario);
  parts.factor = scenario.errors->factor;
  parts.again = log_range(scenario.errors->measured);
  parts.sources = sources_of_computing(scenario, parts.conditions);
  parts.computing = sum_of(parts.sources);
  Ends ends(simulation, scenario, options);
  parts.computing_of_iteration = ends.of_computing(parts.computing);
  parts.host = log_range(scenario.errors->host);
  parts.host_of_iteration = ends.of_host(scenario, parts.host);
  parts.communication_of_iteration = ends.of_messages(scenario);
  return parts;
}

// Whether all of its sources are known; the report is warned where one is not, or where another's stands in.
bool knows_errors(Report& report, const Scenario& scenario) {
  const bool communicates = scenario.cluster.ranks() > 1;
  const Calibration& calibration = scenario.cluster.calibration;
  const bool has_own = !calibration.communication_residuals.empty();
  const bool is_known =
      scenario.errors && (!communicates || has_own || !scenario.errors->communication.empty());
  if (!is_known)
    report.warnings.push_back(
        "no residuals are known for " +
        (scenario.errors ? calibration.name : std::string("steps (hw_profiles/errors)")) +
        ": iteration_time_low_s and iteration_time_high_s are null");
  else if (communicates && !has_own)
    report.warnings.push_back("no calibration residuals are known for " + calibration.name +
                              ": the band takes those of all calibrated machines together");
  return is_known;
}

}  // namespace

LogRange whole_band(const BandParts& parts) {
  return root_of_squares({parts.again, parts.computing_of_iteration, parts.host_of_iteration,
                          parts.communication_of_iteration}) *
         parts.factor.in_real();
}

BandRuns expected_band_runs(const Scenario& scenario) {
  constexpr int ends = 2;
  return {.computing = scenario.errors ? ends : 0,
          .host = scenario.errors ? ends : 0,
          .messages = scenario.errors && scenario.cluster.ranks() > 1 ? ends : 0};
}

void add_band(Report& report, const Scenario& scenario, Simulation& simulation,
              const RepricedRunOptions& options) {
  warn_beyond_fitted_scale(scenario.cluster, report.warnings);
  if (!knows_errors(report, scenario))
    return;
  report.band = parts_of(scenario, simulation, options);
  const LogRange whole = whole_band(*report.band);
  report.times.low = std::min(scaled(report.iteration, to_ratio(whole.low)), report.iteration);
  report.times.high = std::max(scaled(report.iteration, to_ratio(whole.high)), report.iteration);
}

}  // namespace lockstep
