#include "sim/study/fit/communication_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/table_predictor.h"
#include "sim/study/least_squares.h"

namespace lockstep {

// A row and what the simulator is asked of it.
struct AskedPoint {
  const MeasuredTable* table;
  MeasuredRow measured;
  std::vector<std::size_t> queries;  // one, or one for each release
  std::size_t group;
  double launches;
  double weight;
};
namespace {

// An error of so much counts fully; one far beyond it is of another mode of the system and counts little more
// than one at the knee (Cauchy's loss). From wide to narrow, so that nothing good is given up too early.
constexpr std::array<double, 2> knees{0.25, 0.08};
// To tell which release it was, a few iterations are enough.
constexpr int iterations_a_release = 6;
constexpr int iterations = 20;
constexpr int iterations_again = 6;
// The weight of a cell: as many points as an nccl-tests table has.
constexpr double points_a_cell = 25;
const double usual_host_launch_us = usual_host_launch.in_seconds() * 1e6;
constexpr double host_launch_spread = 0.5;
// Logarithms are shifted so that a relative step of the solver is an absolute one.
constexpr double shift = 10;
// Of a logarithm, for slopes that are taken once: far enough not to see the rounding to picoseconds.
constexpr double slope_step = 0.01;

double robust(double residual) {
  const double rooted = std::sqrt(std::log1p(residual * residual));
  return residual < 0 ? -rooted : rooted;
}

// How many kernels one process starts for a call of the benchmark.
double launches_a_call(const MeasuredTable& table) {
  return (table.single_process ? static_cast<double>(table.gpus_per_node) : 1) *
         (is_point_to_point(table.op) ? 2 : 1);
}

// Releases that choose differently: what a table that does not name its release may have been made with.
constexpr std::array<std::int64_t, 8> releases{newest_nccl, 22'300, 22'100, 21'800,
                                               21'400,      21'200, 20'800, 20'700};

// The newest of them that is not newer.
std::size_t release_index(std::int64_t version_code) {
  const auto found = std::find_if(releases.begin(), releases.end(),
                                  [&](std::int64_t release) { return release <= version_code; });
  return std::min(static_cast<std::size_t>(found - releases.begin()), releases.size() - 1);
}

// An older release is believed only where it leaves this much less unexplained: several choose alike, and who names none is
// more likely to run a new one.
constexpr double clearly_less = 0.9;

// Of these, the ones tried for a whole machine before each group is asked on its own.
constexpr std::array<std::size_t, 5> tried_first{0, 2, 3, 5, 7};

// By group: index into `releases`.
using Releases = std::vector<std::size_t>;

// From the newest release to the oldest.
std::size_t first_clearly_least(const std::vector<double>& costs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < costs.size(); ++i)
    if (costs[i] < clearly_less * costs[best])
      best = i;
  return best;
}

struct Search {
  const ConstantsPrior& prior;
  std::vector<double> solution;
  Releases release;
};

}  // namespace

struct TableSet::State {
  explicit State(const ProfileStore& store) : predictor(store) {}

  std::vector<MeasuredTable> tables;
  TablePredictor predictor;
  std::vector<AskedPoint> points;
  std::vector<std::string> groups;
  std::vector<const CommunicationConstant*> constants;
  std::vector<LinkClass> in_node;
  std::size_t queries = 0;
  Calibration blank;
  std::int64_t compute_capability = 0;

  bool may_have_run(std::size_t release) const { return knows_chip(releases[release], compute_capability); }

  std::vector<std::size_t> queries_of(const MeasuredTable& table, Bytes size) {
    std::vector<std::size_t> result;
    if (const auto known = parse_nccl_version(table.library_version))
      result.push_back(predictor.add(table, size, *known));
    else
      for (const std::int64_t release : releases) result.push_back(predictor.add(table, size, release));
    queries = std::max(queries, result.back() + 1);
    return result;
  }

  std::size_t group_index(const std::string& group) {
    const auto found = std::find(groups.begin(), groups.end(), group);
    if (found != groups.end())
      return static_cast<std::size_t>(found - groups.begin());
    groups.push_back(group);
    return groups.size() - 1;
  }

  Calibration calibration_at(const double* solution) const {
    Calibration calibration = blank;
    for (std::size_t i = 0; i < constants.size(); ++i)
      constants[i]->put(calibration, in_node, constants[i]->usual * std::exp(solution[i] - shift));
    return calibration;
  }

  double host_launch_us(const double* solution, std::size_t group) const {
    return usual_host_launch_us * std::exp(solution[constants.size() + group] - shift);
  }

  // For each group that does not name its release, the newest but for those that explain its points clearly better.
  Releases best_releases(const double* solution, double knee) const {
    std::vector<std::vector<double>> cost(groups.size(), std::vector<double>(releases.size()));
    for (std::size_t candidate = 0; candidate < releases.size(); ++candidate) {
      if (!may_have_run(candidate)) {
        for (std::vector<double>& of_group : cost)
          of_group[candidate] = std::numeric_limits<double>::infinity();
        continue;
      }
      const Releases all(groups.size(), candidate);
      const std::vector<CollectiveRow> rows = predict(calibration_at(solution), all);
      for (const AskedPoint& point : points) {
        const double residual = residual_of(point, rows[query_of(point, all)].time, solution, knee);
        cost[point.group][candidate] += residual * residual;
      }
    }
    Releases best;
    for (const std::vector<double>& of_group : cost) best.push_back(first_clearly_least(of_group));
    return best;
  }

  double minimise(Search& search, double knee, int most_iterations) const {
    const auto residuals = [&](const double* values, double* residual) {
      residual = point_residuals(values, search.release, knee, residual);
      prior_residuals(values, search.prior, residual);
    };
    return solve({.residuals = points.size() + unknowns(),
                  .bounds = bounds(),
                  .relative_step = 2e-4,
                  .tolerance = 1e-4,
                  .most_iterations = most_iterations,
                  .evaluate = residuals},
                 search.solution);
  }

  std::vector<double> solution_of(const Eigen::VectorXd& logarithms) const {
    std::vector<double> solution(unknowns(), shift);
    for (std::size_t i = 0; i < constants.size(); ++i)
      solution[i] += logarithms[static_cast<Eigen::Index>(i)];
    return solution;
  }

  // At the prior's mean, but for constants that no point would feel there.
  Eigen::VectorXd where_felt(Eigen::VectorXd logarithms) const {
    for (std::size_t i = 0; i < constants.size(); ++i)
      if (constants[i]->felt_from > 0) {
        double& logarithm = logarithms[static_cast<Eigen::Index>(i)];
        logarithm = std::max(logarithm, std::log(constants[i]->felt_from / constants[i]->usual));
      }
    return logarithms;
  }

  Search search_from_prior(const ConstantsPrior& prior) const {
    Search search{prior, solution_of(where_felt(prior.mean)), Releases(groups.size(), 0)};
    if (has_unnamed_release())
      take_best_release_for_all(search);
    for (const double knee : knees) {
      minimise(search, knee, iterations);
      search.release = best_releases(search.solution.data(), knee);
    }
    return search;
  }

  void take_best_release_for_all(Search& search) const {
    const std::vector<double> start = search.solution;
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t candidate : tried_first) {
      if (!may_have_run(candidate))
        continue;
      Search trial{search.prior, start, Releases(groups.size(), candidate)};
      const double cost = minimise(trial, knees.front(), iterations_a_release);
      if (cost >= clearly_less * least)
        continue;
      least = cost;
      search.solution = std::move(trial.solution);
      search.release = std::move(trial.release);
    }
  }

  Search search_from(const CommunicationFit& start, const ConstantsPrior& prior) const {
    Search search{prior, known_solution(start), known_releases(start)};
    for (const double knee : knees) minimise(search, knee, iterations_again);
    return search;
  }

  // Where `fit` has no word on a group, its host is usual and its release the newest.
  std::vector<double> known_solution(const CommunicationFit& fit) const {
    std::vector<double> solution = solution_of(fit.logarithms);
    for (std::size_t group = 0; group < groups.size(); ++group)
      if (const auto known = fit.host_launch_us.find(groups[group]); known != fit.host_launch_us.end())
        solution[constants.size() + group] += std::log(known->second / usual_host_launch_us);
    return solution;
  }

  Releases known_releases(const CommunicationFit& fit) const {
    Releases releases_by_group(groups.size(), 0);
    for (std::size_t group = 0; group < groups.size(); ++group)
      if (const auto known = fit.release.find(groups[group]); known != fit.release.end())
        releases_by_group[group] = release_index(known->second);
    return releases_by_group;
  }

  bool has_unnamed_release() const {
    return std::any_of(points.begin(), points.end(),
                       [](const AskedPoint& point) { return point.queries.size() > 1; });
  }

  std::size_t unknowns() const { return constants.size() + groups.size(); }

  // Five times the spread of what own tables may put far away, e^4 times the usual of all else.
  std::vector<ParameterBounds> bounds() const {
    constexpr double reach = 4;
    std::vector<ParameterBounds> all(unknowns(), {.least = shift - reach, .most = shift + reach});
    for (std::size_t i = 0; i < constants.size(); ++i)
      if (constants[i]->own_spread > 2 * constants[i]->spread)
        all[i].least = shift - (reach + 1) * constants[i]->own_spread;
    return all;
  }

  std::size_t query_of(const AskedPoint& point, const Releases& release) const {
    return point.queries.size() == 1 ? point.queries.front() : point.queries[release[point.group]];
  }

  std::vector<CollectiveRow> predict(const Calibration& calibration, const Releases& release) const {
    std::vector<bool> wanted(queries);
    for (const AskedPoint& point : points) wanted[query_of(point, release)] = true;
    return predictor.predict(calibration, wanted);
  }

  double residual_of(const AskedPoint& point, Duration device_time, const double* solution,
                     double knee) const {
    const double host = host_launch_us(solution, point.group) * 1e-6 * point.launches;
    const double predicted = std::max(device_time.in_seconds(), host);
    return point.weight * robust(std::log(predicted / point.measured.time.in_seconds()) / knee);
  }

  double* point_residuals(const double* solution, const Releases& release, double knee,
                          double* residual) const {
    const std::vector<CollectiveRow> rows = predict(calibration_at(solution), release);
    for (const AskedPoint& point : points)
      *residual++ = residual_of(point, rows[query_of(point, release)].time, solution, knee);
    return residual;
  }

  void prior_residuals(const double* solution, const ConstantsPrior& prior, double* residual) const {
    const auto count = static_cast<Eigen::Index>(constants.size());
    const Eigen::VectorXd away =
        Eigen::Map<const Eigen::VectorXd>(solution, count).array() - shift - prior.mean.array();
    Eigen::Map<Eigen::VectorXd>(residual, count) = prior.root * away;
    residual += count;
    for (std::size_t i = constants.size(); i < unknowns(); ++i)
      *residual++ = (solution[i] - shift) / host_launch_spread;
  }

  // A row a point, a column an unknown, by central differences.
  Eigen::MatrixXd jacobian(std::vector<double> solution, const Releases& release) const {
    const auto rows = static_cast<Eigen::Index>(points.size());
    Eigen::MatrixXd slopes(rows, static_cast<Eigen::Index>(unknowns()));
    Eigen::VectorXd above(rows), below(rows);
    for (std::size_t i = 0; i < unknowns(); ++i) {
      const double here = solution[i];
      solution[i] = here + slope_step;
      point_residuals(solution.data(), release, knees.back(), above.data());
      solution[i] = here - slope_step;
      point_residuals(solution.data(), release, knees.back(), below.data());
      solution[i] = here;
      slopes.col(static_cast<Eigen::Index>(i)) = (above - below) / (2 * slope_step);
    }
    return slopes;
  }
};

ConstantsPrior usual_prior(std::span<const CommunicationConstant* const> constants) {
  const auto count = static_cast<Eigen::Index>(constants.size());
  ConstantsPrior prior{.mean = Eigen::VectorXd::Zero(count), .root = Eigen::MatrixXd::Zero(count, count)};
  for (Eigen::Index i = 0; i < count; ++i)
    prior.root(i, i) = 1 / constants[static_cast<std::size_t>(i)]->spread;
  return prior;
}

TableSet::TableSet(std::span<const MeasuredTable> tables, const ProfileStore& store)
    : state_(std::make_unique<State>(store)) {
  State& state = *state_;
  state.tables.assign(tables.begin(), tables.end());
  std::map<std::string, double> points_in_cell;
  for (const MeasuredTable& table : state.tables)
    points_in_cell[table.cell()] += static_cast<double>(table.rows.size());
  for (const MeasuredTable& table : state.tables)
    for (const MeasuredRow& row : table.rows)
      state.points.push_back({.table = &table,
                              .measured = row,
                              .queries = state.queries_of(table, row.size),
                              .group = state.group_index(table.group),
                              .launches = launches_a_call(table),
                              .weight = std::sqrt(points_a_cell / points_in_cell[table.cell()])});
  if (state.points.empty())
    return;
  const ClusterSpec& cluster = state.predictor.first_scenario().cluster;
  state.constants = constants_of(cluster.machine);
  state.in_node = classes_in_node(cluster.machine);
  state.blank = blank_communication(cluster.calibration);
  state.compute_capability = cluster.gpu.compute_capability;
}

TableSet::~TableSet() = default;
TableSet::TableSet(TableSet&&) noexcept = default;

std::size_t TableSet::size() const {
  return state_->points.size();
}

const std::vector<const CommunicationConstant*>& TableSet::constants() const {
  return state_->constants;
}

CommunicationFit TableSet::fit(const ConstantsPrior& prior, const CommunicationFit* start) const {
  const State& state = *state_;
  const Search search = start == nullptr ? state.search_from_prior(prior) : state.search_from(*start, prior);
  CommunicationFit fit{.calibration = state.calibration_at(search.solution.data()),
                       .points = state.points.size()};
  const auto count = static_cast<Eigen::Index>(state.constants.size());
  fit.logarithms = Eigen::Map<const Eigen::VectorXd>(search.solution.data(), count).array() - shift;
  double sum = 0;
  for (std::size_t group = 0; group < state.groups.size(); ++group) {
    fit.release[state.groups[group]] = releases[search.release[group]];
    fit.host_launch_us[state.groups[group]] = state.host_launch_us(search.solution.data(), group);
    sum += search.solution[state.constants.size() + group] - shift;
  }
  const double mean = sum / static_cast<double>(std::max<std::size_t>(state.groups.size(), 1));
  fit.calibration.host_launch =
      Duration::picoseconds(std::llround(usual_host_launch_us * std::exp(mean) * 1e6));
  return fit;
}

CommunicationFit TableSet::at(const Eigen::VectorXd& logarithms) const {
  CommunicationFit fit{.calibration = state_->calibration_at(state_->solution_of(logarithms).data()),
                       .logarithms = logarithms};
  fit.calibration.host_launch = usual_host_launch;
  return fit;
}

// Schur's complement: what is left of the information once each group's host has moved to where it fits best.
Eigen::MatrixXd TableSet::information(const CommunicationFit& fit) const {
  const State& state = *state_;
  const Eigen::MatrixXd slopes = state.jacobian(state.known_solution(fit), state.known_releases(fit));
  const Eigen::MatrixXd all = slopes.transpose() * slopes;
  const auto constants = static_cast<Eigen::Index>(state.constants.size());
  const Eigen::Index groups = all.rows() - constants;
  Eigen::MatrixXd hosts = all.bottomRightCorner(groups, groups);
  hosts.diagonal().array() += 1 / (host_launch_spread * host_launch_spread);
  const Eigen::MatrixXd between = all.topRightCorner(constants, groups);
  return all.topLeftCorner(constants, constants) - between * hosts.ldlt().solve(between.transpose());
}

std::vector<FittedPoint> TableSet::predict(const CommunicationFit& fit) const {
  Calibration device_only = fit.calibration;
  device_only.host_launch = Duration::zero();
  Releases release;
  for (const std::string& group : state_->groups) {
    const auto known = fit.release.find(group);
    const std::int64_t code = known == fit.release.end() ? newest_nccl : known->second;
    release.push_back(release_index(code));
  }
  const std::vector<CollectiveRow> rows = state_->predict(device_only, release);
  std::vector<FittedPoint> result;
  for (const AskedPoint& point : state_->points) {
    const auto known = fit.host_launch_us.find(point.table->group);
    const double launch =
        known != fit.host_launch_us.end() ? known->second : fit.calibration.host_launch.in_seconds() * 1e6;
    const CollectiveRow& row = rows[state_->query_of(point, release)];
    result.push_back({.table = point.table,
                      .measured = point.measured,
                      .predicted_s = std::max(row.time.in_seconds(), launch * 1e-6 * point.launches),
                      .algorithm = row.algorithm,
                      .protocol = row.protocol});
  }
  return result;
}

}  // namespace lockstep
