#include "sim/study/fit/error_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/weighted_quantile.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

using Votes = std::vector<std::pair<double, double>>;  // what was missed, and how much it counts

constexpr double covered = 0.8;
// A measured step that has grown by less than so many doublings is as it was measured.
constexpr double least_doublings = 0.3;
// Where computing, or the host, is a smaller part of the iteration than this, a miss says little of it.
constexpr double least_part = 0.5;
// The misses of all kinds count as so many more of each.
constexpr double votes_of_all_kinds = 5;

LogRange range_of(const Votes& misses) {
  return {std::min(weighted_quantile(misses, (1 - covered) / 2), 0.0),
          std::max(weighted_quantile(misses, (1 + covered) / 2), 0.0)};
}

Ratio in_ten_thousandths(double ratio) {
  return Ratio::parts_per_million(100) * std::llround(ratio * 1e4);
}

ErrorRange rounded(const LogRange& range) {
  return {in_ten_thousandths(std::exp(range.low) - 1), in_ten_thousandths(std::exp(range.high) - 1)};
}

bool tells_of(const LogRange& part) {
  return std::min(part.low, part.high) >= least_part;
}

bool tells_of_computing(const StepMiss& miss) {
  return tells_of(miss.per_computing);
}

// What a part of the iteration must have missed for it.
double missed_by(const LogRange& part, const StepMiss& miss) {
  return miss.missed / (miss.missed > 0 ? part.high : part.low);
}

double missed_by_computing(const StepMiss& miss) {
  return missed_by(miss.per_computing, miss);
}

bool is_as_measured(const StepMiss& miss) {
  return miss.conditions.is_measured && miss.conditions.transferred < least_doublings;
}

// Of one doubling. `times`: as many of its ranges as those of `misses` that `counts` are expected to miss by.
template <class Counts, class Times>
ErrorRange range_by(std::span<const StepMiss> misses, const Counts& counts, const Times& times) {
  Votes each;
  for (const StepMiss& miss : misses)
    if (tells_of_computing(miss) && counts(miss))
      each.emplace_back(missed_by_computing(miss) / times(miss), 1);
  return rounded(range_of(each));
}

// Of iterations as they were measured on few ranks: whatever misses there misses everywhere.
ErrorRange range_again(std::span<const StepMiss> misses) {
  Votes each;
  for (const StepMiss& miss : misses)
    if (is_as_measured(miss) && miss.conditions.in_node == 0 && miss.conditions.between_nodes <= 1)
      each.emplace_back(miss.missed, 1);
  return rounded(range_of(each));
}

std::map<std::string, ErrorRange> unanchored_ranges(std::span<const StepMiss> misses) {
  std::map<std::string, Votes> by_kind;
  Votes all;
  for (const StepMiss& miss : misses)
    if (!miss.conditions.is_measured && tells_of_computing(miss)) {
      by_kind[miss.conditions.kind].emplace_back(missed_by_computing(miss), 1);
      all.emplace_back(missed_by_computing(miss), 1);
    }
  const LogRange of_all = range_of(all);
  std::map<std::string, ErrorRange> ranges;
  for (const auto& [kind, own] : by_kind) {
    const auto votes = static_cast<double>(own.size());
    const double weight = votes / (votes + votes_of_all_kinds);
    const LogRange of_kind = range_of(own);
    ranges[kind] = rounded({weight * of_kind.low + (1 - weight) * of_all.low,
                            weight * of_kind.high + (1 - weight) * of_all.high});
  }
  return ranges;
}

ErrorRange host_range(std::span<const StepMiss> misses) {
  Votes each;
  for (const StepMiss& miss : misses)
    if (tells_of(miss.per_host))
      each.emplace_back(missed_by(miss.per_host, miss), 1);
  return rounded(range_of(each));
}

LogRange of_iteration(const LogRange& range, const LogRange& part) {
  return {range.low * part.low, range.high * part.high};
}

}  // namespace

LogRange range_of(const StepMiss& miss, const ErrorModel& errors) {
  std::vector<LogRange> ranges;
  for (const ErrorSource& source : sources_of(miss.conditions, errors)) ranges.push_back(source.range);
  return root_of_squares({log_range(errors.measured),
                          of_iteration(root_of_squares(ranges), miss.per_computing),
                          of_iteration(log_range(errors.host), miss.per_host), miss.communication});
}

double ranges_away(const StepMiss& miss, const ErrorModel& errors) {
  const LogRange range = range_of(miss, errors);
  const double end = miss.missed > 0 ? range.high : -range.low;
  constexpr double nothing = 1e-9;
  const double away = std::abs(miss.missed);
  return away < nothing ? 0 : away / std::max(end, nothing);
}

namespace {

// All of the model but its factor.
ErrorModel fit_ranges(std::span<const StepMiss> misses) {
  ErrorModel errors;
  errors.name = "steps";
  errors.measured = range_again(misses);
  errors.in_node = range_by(
      misses, [](const StepMiss& miss) { return is_as_measured(miss) && miss.conditions.in_node > 0; },
      [](const StepMiss& miss) { return independent_times(miss.conditions.in_node); });
  errors.between_nodes = range_by(
      misses,
      [](const StepMiss& miss) {
        return is_as_measured(miss) && miss.conditions.in_node == 0 && miss.conditions.between_nodes > 0;
      },
      [](const StepMiss& miss) { return independent_times(miss.conditions.between_nodes); });
  errors.transferred = range_by(
      misses,
      [](const StepMiss& miss) {
        return miss.conditions.is_measured && miss.conditions.transferred >= least_doublings;
      },
      [](const StepMiss& miss) { return miss.conditions.transferred; });
  errors.unanchored = unanchored_ranges(misses);
  errors.host = host_range(misses);
  return errors;
}

std::set<std::string> groups_of(std::span<const StepMiss> misses) {
  std::set<std::string> groups;
  for (const StepMiss& miss : misses) groups.insert(miss.group);
  return groups;
}

std::vector<StepMiss> without(const std::string& group, std::span<const StepMiss> misses) {
  std::vector<StepMiss> others;
  std::copy_if(misses.begin(), misses.end(), std::back_inserter(others),
               [&](const StepMiss& miss) { return miss.group != group; });
  return others;
}

// Each group lies so far from the ranges of the others; one that stands alone, from its own.
double factor_of(std::span<const StepMiss> misses) {
  const std::set<std::string> groups = groups_of(misses);
  Votes away;
  for (const std::string& group : groups) {
    const ErrorModel others =
        fit_ranges(groups.size() > 1 ? without(group, misses) : std::vector(misses.begin(), misses.end()));
    for (const StepMiss& miss : misses)
      if (miss.group == group)
        away.emplace_back(ranges_away(miss, others), 1);
  }
  return std::clamp(weighted_quantile(away, covered), 0.01, 100.0);
}

}  // namespace

ErrorModel fit_errors(std::span<const StepMiss> misses, std::vector<ResidualBand> communication) {
  ErrorModel errors = fit_ranges(misses);
  errors.communication = std::move(communication);
  errors.factor = in_ten_thousandths(factor_of(misses));
  return errors;
}

std::map<std::string, ErrorModel> fit_errors_without_each(std::span<const StepMiss> misses,
                                                          const std::vector<ResidualBand>& communication) {
  const std::set<std::string> groups = groups_of(misses);
  const std::vector<std::string> names(groups.begin(), groups.end());
  std::vector<ErrorModel> fitted(names.size());
  run_in_parallel(0, names.size(),
                  [&](std::size_t i) { fitted[i] = fit_errors(without(names[i], misses), communication); });
  std::map<std::string, ErrorModel> models;
  for (std::size_t i = 0; i < names.size(); ++i) models[names[i]] = std::move(fitted[i]);
  return models;
}

}  // namespace lockstep
