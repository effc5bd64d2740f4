#include "sim/study/fit/communication_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/table_predictor.h"
#include "sim/study/fit/fit_constants.h"
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
// The host starts a kernel in about this long (CUDA launch guides: 4 to 6 us).
constexpr double usual_host_launch_us = 4.5;
constexpr double host_launch_spread = 0.5;
// Logarithms are shifted so that a relative step of the solver is an absolute one.
constexpr double shift = 10;

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
constexpr std::array<std::int64_t, 7> releases{newest_nccl, 22'300, 22'100, 21'800, 21'400, 21'200, 20'800};

// The newest of them that is not newer.
std::size_t release_index(std::int64_t version_code) {
  const auto found = std::find_if(releases.begin(), releases.end(),
                                  [&](std::int64_t release) { return release <= version_code; });
  return std::min(static_cast<std::size_t>(found - releases.begin()), releases.size() - 1);
}

// Of these, the ones tried for a whole machine before each group is asked on its own.
constexpr std::array<std::size_t, 4> tried_first{0, 2, 3, 5};

// By group: index into `releases`.
using Releases = std::vector<std::size_t>;

struct Search {
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
  std::vector<FitConstant> constants;
  std::size_t queries = 0;
  Calibration blank;

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
      constants[i].put(calibration, constants[i].usual * std::exp(solution[i] - shift));
    return calibration;
  }

  double host_launch_us(const double* solution, std::size_t group) const {
    return usual_host_launch_us * std::exp(solution[constants.size() + group] - shift);
  }

  // For each group that does not name its release, the one whose choices explain its points best.
  Releases best_releases(const double* solution, double knee) const {
    std::vector<std::vector<double>> cost(groups.size(), std::vector<double>(releases.size()));
    for (std::size_t candidate = 0; candidate < releases.size(); ++candidate) {
      const Releases all(groups.size(), candidate);
      const std::vector<CollectiveRow> rows = predict(calibration_at(solution), all);
      for (const AskedPoint& point : points) {
        const double residual = residual_of(point, rows[query_of(point, all)].time, solution, knee);
        cost[point.group][candidate] += residual * residual;
      }
    }
    Releases best;
    for (const std::vector<double>& of_group : cost)
      best.push_back(
          static_cast<std::size_t>(std::min_element(of_group.begin(), of_group.end()) - of_group.begin()));
    return best;
  }

  double minimise(Search& search, double knee, int most_iterations) const {
    const auto residuals = [&](const double* values, double* residual) {
      this->residuals(values, search.release, knee, residual);
    };
    return solve({.residuals = points.size() + unknowns(),
                  .bounds = {search.solution.size(), {.least = shift - 4, .most = shift + 4}},
                  .relative_step = 2e-4,
                  .tolerance = 1e-4,
                  .most_iterations = most_iterations,
                  .evaluate = residuals},
                 search.solution);
  }

  Search search_from_usual() const {
    Search search{std::vector<double>(unknowns(), shift), Releases(groups.size(), 0)};
    if (has_unnamed_release())
      search = best_release_for_all(search);
    for (const double knee : knees) {
      minimise(search, knee, iterations);
      search.release = best_releases(search.solution.data(), knee);
    }
    return search;
  }

  Search best_release_for_all(const Search& usual) const {
    double least = std::numeric_limits<double>::infinity();
    Search best = usual;
    for (const std::size_t candidate : tried_first) {
      Search search{usual.solution, Releases(groups.size(), candidate)};
      const double cost = minimise(search, knees.front(), iterations_a_release);
      if (cost < least) {
        least = cost;
        best = std::move(search);
      }
    }
    return best;
  }

  Search search_from(const CommunicationFit& start) const {
    Search search{std::vector<double>(unknowns(), shift), Releases(groups.size(), 0)};
    for (std::size_t i = 0; i < constants.size(); ++i)
      if (const auto known = start.solution.find(constants[i].name); known != start.solution.end())
        search.solution[i] = known->second;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if (const auto known = start.host_launch_us.find(groups[group]); known != start.host_launch_us.end())
        search.solution[constants.size() + group] = shift + std::log(known->second / usual_host_launch_us);
      if (const auto known = start.release.find(groups[group]); known != start.release.end())
        search.release[group] = release_index(known->second);
    }
    for (const double knee : knees) minimise(search, knee, iterations_again);
    return search;
  }

  bool has_unnamed_release() const {
    return std::any_of(points.begin(), points.end(),
                       [](const AskedPoint& point) { return point.queries.size() > 1; });
  }

  std::size_t unknowns() const { return constants.size() + groups.size(); }

  std::size_t query_of(const AskedPoint& point, const Releases& release) const {
    return point.queries.size() == 1 ? point.queries.front() : point.queries[release[point.group]];
  }

  std::vector<CollectiveRow> predict(const Calibration& calibration, const Releases& release) const {
    std::vector<bool> wanted(queries);
    for (const AskedPoint& point : points) wanted[query_of(point, release)] = true;
    return predictor.predict(calibration, wanted);
  }

  double residual_of(const AskedPoint& point, Duration device_time, const double* solution, double knee) const {
    const double host = host_launch_us(solution, point.group) * 1e-6 * point.launches;
    const double predicted = std::max(device_time.in_seconds(), host);
    return point.weight * robust(std::log(predicted / point.measured.time.in_seconds()) / knee);
  }

  void residuals(const double* solution, const Releases& release, double knee, double* residual) const {
    const std::vector<CollectiveRow> rows = predict(calibration_at(solution), release);
    for (const AskedPoint& point : points)
      *residual++ = residual_of(point, rows[query_of(point, release)].time, solution, knee);
    for (std::size_t i = 0; i < unknowns(); ++i) {
      const double spread = i < constants.size() ? constants[i].spread : host_launch_spread;
      *residual++ = (solution[i] - shift) / spread;
    }
  }
};

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
  state.constants = fit_constants(state.tables, cluster.machine);
  state.blank = blank_communication(cluster.calibration);
}

TableSet::~TableSet() = default;
TableSet::TableSet(TableSet&&) noexcept = default;

std::size_t TableSet::size() const {
  return state_->points.size();
}

CommunicationFit TableSet::fit(const CommunicationFit* start) const {
  const State& state = *state_;
  Search search = start == nullptr ? state.search_from_usual() : state.search_from(*start);
  CommunicationFit fit{.calibration = state.calibration_at(search.solution.data()),
                       .constants = state.constants.size(),
                       .points = state.points.size()};
  for (std::size_t i = 0; i < state.constants.size(); ++i)
    fit.solution[state.constants[i].name] = search.solution[i];
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
