#include "sim/study/fit/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "sim/base/weighted_quantile.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/naive_clocks.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

using Tables = std::vector<MeasuredTable>;

constexpr std::int64_t most_small_nodes = 2;

struct Fold {
  std::string profile;
  Tables fitted;
  Tables held_out;
  const ConstantsPrior* prior;
  const CommunicationFit* start;
};

std::string part_of(const MeasuredTable& table, LeaveOut leave_out) {
  return leave_out == LeaveOut::cell ? table.cell() : table.group;
}

std::vector<Fold> folds_of(const Tables& tables, LeaveOut leave_out, const ConstantsPrior& prior,
                           const CommunicationFit& start) {
  std::set<std::string> parts;
  for (const MeasuredTable& table : tables) parts.insert(part_of(table, leave_out));
  std::vector<Fold> folds;
  for (const std::string& part : parts) {
    Fold fold{
        .profile = tables.front().profile, .fitted = {}, .held_out = {}, .prior = &prior, .start = &start};
    for (const MeasuredTable& table : tables)
      (part_of(table, leave_out) == part ? fold.held_out : fold.fitted).push_back(table);
    if (!fold.fitted.empty())
      folds.push_back(std::move(fold));
  }
  return folds;
}

// What `fit` makes of tables that it has not seen; the lines were fitted on `seen`.
std::vector<HeldOutPoint> predict_unseen(const CommunicationFit& fit, const Tables& unseen,
                                         const Tables& seen, const ProfileStore& store) {
  const NaiveClocks naive(seen, store);
  const TableSet set(unseen, store);
  std::vector<HeldOutPoint> points;
  for (const FittedPoint& point : set.predict(fit)) {
    points.push_back(as_held_out(point));
    points.back().line_s = naive.line_s(*point.table, point.measured.size);
    points.back().tuner_s = naive.tuner_s(*point.table, point.measured.size);
  }
  return points;
}

// The rest is fitted, then asked for the tables it has not seen.
std::vector<HeldOutPoint> predict_fold(const Fold& fold, const ProfileStore& store) {
  const CommunicationFit fit = TableSet(fold.fitted, store).fit(*fold.prior, fold.start);
  return predict_unseen(fit, fold.held_out, fold.fitted, store);
}

std::vector<HeldOutPoint> predict_folds(const std::vector<Fold>& folds, const ProfileStore& store) {
  std::vector<std::vector<HeldOutPoint>> predicted(folds.size());
  run_in_parallel(0, folds.size(), [&](std::size_t i) { predicted[i] = predict_fold(folds[i], store); });
  std::vector<HeldOutPoint> points;
  for (std::vector<HeldOutPoint>& fold : predicted)
    points.insert(points.end(), std::make_move_iterator(fold.begin()), std::make_move_iterator(fold.end()));
  return points;
}

bool is_asked(const std::string& profile, std::span<const std::string> profiles) {
  return profiles.empty() || std::find(profiles.begin(), profiles.end(), profile) != profiles.end();
}

std::vector<HeldOutPoint> leave_out_of_members(const PartFit& parts, LeaveOut leave_out,
                                               const ProfileStore& store,
                                               std::span<const std::string> profiles) {
  std::vector<Fold> folds;
  std::vector<std::unique_ptr<ConstantsPrior>> priors;
  for (const PartMember& member : parts.members())
    if (is_asked(member.profile, profiles)) {
      priors.push_back(std::make_unique<ConstantsPrior>(parts.prior_without(member.machine, member)));
      for (Fold& fold : folds_of(member.tables, leave_out, *priors.back(), member.fit))
        folds.push_back(std::move(fold));
    }
  return predict_folds(folds, store);
}

std::vector<HeldOutPoint> leave_out_scales(std::span<const MeasuredTable> tables, const ProfileStore& store,
                                           std::span<const std::string> profiles) {
  Tables small;
  std::map<std::string, Tables> large;
  for (const MeasuredTable& table : tables)
    (table.nodes > most_small_nodes ? large[table.profile] : small).push_back(table);
  PartFit parts(small, store);
  parts.solve(rounds_of_parts);
  std::vector<HeldOutPoint> points;
  for (const PartMember& member : parts.members()) {
    const auto unseen = large.find(member.profile);
    if (unseen == large.end() || !is_asked(member.profile, profiles))
      continue;
    const std::vector<HeldOutPoint> of_member =
        predict_unseen(member.fit, unseen->second, member.tables, store);
    points.insert(points.end(), of_member.begin(), of_member.end());
  }
  return points;
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

HeldOutPoint as_held_out(const FittedPoint& point) {
  return {.profile = point.table->profile,
          .cell = point.table->cell(),
          .table = point.table->id,
          .size_class = size_class(point.measured.size),
          .measured = point.measured,
          .predicted_s = point.predicted_s,
          .algorithm = point.algorithm,
          .protocol = point.protocol};
}

std::vector<HeldOutPoint> leave_out_machines(const PartFit& parts, std::span<const std::string> profiles) {
  std::vector<HeldOutPoint> points;
  for (const PartMember& member : parts.members()) {
    if (!is_asked(member.profile, profiles))
      continue;
    CommunicationFit composed = member.set.at(parts.prior_without(member.machine, member).mean);
    composed.release = member.fit.release;
    for (const FittedPoint& point : member.set.predict(composed)) points.push_back(as_held_out(point));
  }
  return points;
}

std::vector<HeldOutPoint> cross_validate(std::span<const MeasuredTable> tables, LeaveOut leave_out,
                                         const ProfileStore& store, std::span<const std::string> profiles) {
  if (leave_out == LeaveOut::scale)
    return leave_out_scales(tables, store, profiles);
  PartFit parts(tables, store);
  parts.solve(rounds_of_parts);
  return leave_out == LeaveOut::machine ? leave_out_machines(parts, profiles)
                                        : leave_out_of_members(parts, leave_out, store, profiles);
}

std::vector<HeldOutPoint> leave_out_cells(const std::vector<MeasuredTable>& tables,
                                          const ConstantsPrior& prior, const CommunicationFit& fit,
                                          const ProfileStore& store) {
  return predict_folds(folds_of(tables, LeaveOut::cell, prior, fit), store);
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
