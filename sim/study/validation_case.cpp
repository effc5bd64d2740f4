#include "sim/study/validation_case.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace lockstep {
namespace {

double quantile(std::vector<double> sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ErrorSummary summarise_errors(const std::vector<double>& signed_errors) {
  std::vector<double> absolute;
  for (const double error : signed_errors) absolute.push_back(std::abs(error));
  std::sort(absolute.begin(), absolute.end());
  return {.cases = signed_errors.size(),
          .mean_absolute = mean(absolute),
          .median_absolute = quantile(absolute, 0.5),
          .p90_absolute = quantile(absolute, 0.9),
          .bias = mean(signed_errors)};
}

BandSummary summarise_bands(const std::vector<const ValidationCase*>& cases) {
  BandSummary summary;
  std::vector<double> half_widths;
  for (const ValidationCase* entry : cases) {
    if (!entry->low_s || !entry->high_s)
      continue;
    ++summary.cases;
    summary.held += *entry->low_s <= entry->measured_s && entry->measured_s <= *entry->high_s ? 1 : 0;
    half_widths.push_back(50 * std::log(*entry->high_s / *entry->low_s));
  }
  std::sort(half_widths.begin(), half_widths.end());
  if (!half_widths.empty())
    summary.median_half_width = quantile(half_widths, 0.5);
  return summary;
}

template <class Prediction>
double mean_error(const std::vector<const ValidationCase*>& cases, Prediction prediction) {
  std::vector<double> errors;
  for (const ValidationCase* entry : cases)
    errors.push_back(std::abs(prediction(*entry) / entry->measured_s - 1) * 100);
  return mean(errors);
}

GroupSummary summarise_group(const std::vector<const ValidationCase*>& cases) {
  GroupSummary summary;
  summary.group = cases.front()->group;
  summary.split = cases.front()->split;
  std::vector<double> errors;
  for (const ValidationCase* entry : cases) errors.push_back(entry->error_percent());
  summary.ours = summarise_errors(errors);
  summary.band = summarise_bands(cases);
  summary.has_naive = cases.front()->has_naive();
  if (!summary.has_naive)
    return summary;
  summary.no_communication =
      mean_error(cases, [](const ValidationCase& entry) { return entry.naive.no_communication; });
  summary.no_overlap = mean_error(cases, [](const ValidationCase& entry) { return entry.naive.no_overlap; });
  summary.perfect_overlap =
      mean_error(cases, [](const ValidationCase& entry) { return entry.naive.perfect_overlap; });
  return summary;
}

}  // namespace

double GroupSummary::best_naive() const {
  return std::min({no_communication, no_overlap, perfect_overlap});
}

std::vector<GroupSummary> summarise_groups(const std::vector<ValidationCase>& cases) {
  std::map<std::pair<std::string, std::string>, std::vector<const ValidationCase*>> grouped;
  for (const ValidationCase& entry : cases)
    if (entry.caution.empty())
      grouped[{entry.group, entry.split}].push_back(&entry);
  std::vector<GroupSummary> groups;
  for (const auto& [key, members] : grouped) groups.push_back(summarise_group(members));
  return groups;
}

}  // namespace lockstep
