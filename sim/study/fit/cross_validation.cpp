#include "sim/study/fit/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/weighted_quantile.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/naive_clocks.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

using Tables = std::vector<MeasuredTable>;

struct Fold {
  std::string profile;
  Tables fitted;
  Tables held_out;
};

std::map<std::string, Tables> by_profile(std::span<const MeasuredTable> tables) {
  std::map<std::string, Tables> result;
  for (const MeasuredTable& table : tables) result[table.profile].push_back(table);
  return result;
}

std::string part_of(const MeasuredTable& table, LeaveOut leave_out) {
  switch (leave_out) {
    case LeaveOut::cell:
      return table.cell();
    case LeaveOut::group:
      return table.group;
    case LeaveOut::scale:
      return table.nodes > 2 ? "large" : "";
  }
  return "";
}

std::vector<Fold> folds_of(const std::string& profile, const Tables& tables, LeaveOut leave_out) {
  std::set<std::string> parts;
  for (const MeasuredTable& table : tables) parts.insert(part_of(table, leave_out));
  parts.erase("");
  std::vector<Fold> folds;
  for (const std::string& part : parts) {
    Fold fold{.profile = profile, .fitted = {}, .held_out = {}};
    for (const MeasuredTable& table : tables)
      (part_of(table, leave_out) == part ? fold.held_out : fold.fitted).push_back(table);
    if (!fold.fitted.empty())
      folds.push_back(std::move(fold));
  }
  return folds;
}

// The rest is fitted, then asked for the tables it has not seen.
std::vector<HeldOutPoint> predict_fold(const Fold& fold, const CommunicationFit& start,
                                       const ProfileStore& store) {
  const CommunicationFit fit = TableSet(fold.fitted, store).fit(&start);
  const NaiveClocks naive(fold.fitted, store);
  const TableSet held_out(fold.held_out, store);
  std::vector<HeldOutPoint> points;
  for (const FittedPoint& point : held_out.predict(fit))
    points.push_back({.profile = fold.profile,
                      .cell = point.table->cell(),
                      .table = point.table->id,
                      .size_class = size_class(point.measured.size),
                      .measured = point.measured,
                      .predicted_s = point.predicted_s,
                      .line_s = naive.line_s(*point.table, point.measured.size),
                      .tuner_s = naive.tuner_s(*point.table, point.measured.size),
                      .algorithm = point.algorithm,
                      .protocol = point.protocol});
  return points;
}

// Where the folds of each profile start from: a fit to all its tables. A fold's own tables then decide.
std::map<std::string, CommunicationFit> fit_all(const std::map<std::string, Tables>& profiles,
                                                const std::vector<Fold>& folds, const ProfileStore& store) {
  std::map<std::string, CommunicationFit> fits;
  for (const Fold& fold : folds) fits[fold.profile];
  std::vector<std::pair<const std::string, CommunicationFit>*> slots;
  for (auto& slot : fits) slots.push_back(&slot);
  run_in_parallel(0, slots.size(), [&](std::size_t i) {
    slots[i]->second = TableSet(profiles.at(slots[i]->first), store).fit();
  });
  return fits;
}

double predicted_by(const HeldOutPoint& point, Predictor predictor) {
  switch (predictor) {
    case Predictor::ours:
      return point.predicted_s;
    case Predictor::line:
      return point.line_s;
    case Predictor::tuner:
      return point.tuner_s;
  }
  return 0;
}

}  // namespace

std::vector<HeldOutPoint> cross_validate(std::span<const MeasuredTable> tables, LeaveOut leave_out,
                                         const ProfileStore& store) {
  std::vector<Fold> folds;
  const std::map<std::string, Tables> profiles = by_profile(tables);
  for (const auto& [profile, of_profile] : profiles)
    for (Fold& fold : folds_of(profile, of_profile, leave_out)) folds.push_back(std::move(fold));
  const std::map<std::string, CommunicationFit> starts = fit_all(profiles, folds, store);
  std::vector<std::vector<HeldOutPoint>> predicted(folds.size());
  run_in_parallel(0, folds.size(), [&](std::size_t i) {
    predicted[i] = predict_fold(folds[i], starts.at(folds[i].profile), store);
  });
  std::vector<HeldOutPoint> points;
  for (std::vector<HeldOutPoint>& fold : predicted)
    points.insert(points.end(), std::make_move_iterator(fold.begin()), std::make_move_iterator(fold.end()));
  return points;
}

ErrorQuantiles summarise_errors(std::span<const HeldOutPoint> points, SizeClass size_class,
                                Predictor predictor) {
  std::map<std::string, std::vector<double>> by_cell;
  for (const HeldOutPoint& point : points)
    if (point.size_class == size_class && predicted_by(point, predictor) > 0)
      by_cell[point.profile + ": " + point.cell].push_back(
          std::abs(predicted_by(point, predictor) / point.measured.time.in_seconds() - 1));
  ErrorQuantiles quantiles{.cells = by_cell.size()};
  std::vector<std::pair<double, double>> votes;
  for (const auto& [cell, errors] : by_cell)
    for (const double error : errors) votes.emplace_back(error, 1 / static_cast<double>(errors.size()));
  quantiles.points = votes.size();
  quantiles.median = weighted_quantile(votes, 0.5);
  quantiles.p90 = weighted_quantile(votes, 0.9);
  return quantiles;
}

}  // namespace lockstep
