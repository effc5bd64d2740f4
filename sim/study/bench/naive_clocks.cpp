#include "sim/study/bench/naive_clocks.h"

#include <ceres/ceres.h>

#include <cmath>

#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/collective_table.h"

namespace lockstep {
namespace {

double bus_bytes(const MeasuredTable& table, Bytes size) {
  const BusFactor factor = bus_factor(table.op, table.ranks());
  return static_cast<double>(size.count()) * static_cast<double>(factor.numerator) /
         static_cast<double>(factor.denominator);
}

struct LineError {
  double bytes;
  double seconds;
  template <class T>
  bool operator()(const T* line, T* residual) const {
    residual[0] = ceres::log((ceres::exp(line[0]) + ceres::exp(line[1]) * bytes) / seconds);
    return true;
  }
};

}  // namespace

NaiveClocks::NaiveClocks(std::span<const MeasuredTable> fitted, const ProfileStore& store) : store_(store) {
  double line[2] = {std::log(20e-6), std::log(1e-11)};
  ceres::Problem problem;
  for (const MeasuredTable& table : fitted)
    for (const MeasuredRow& row : table.rows)
      problem.AddResidualBlock(new ceres::AutoDiffCostFunction<LineError, 1, 2>(
                                   new LineError{bus_bytes(table, row.size), row.time.in_seconds()}),
                               nullptr, line);
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  if (!fitted.empty())
    ceres::Solve(options, &problem, &summary);
  alpha_s_ = std::exp(line[0]);
  beta_s_ = std::exp(line[1]);
}

double NaiveClocks::line_s(const MeasuredTable& table, Bytes size) const {
  return alpha_s_ + beta_s_ * bus_bytes(table, size);
}

double NaiveClocks::tuner_s(const MeasuredTable& table, Bytes size) const {
  const Scenario scenario = load_collective_setting({.machine = table.machine,
                                                     .nodes = table.nodes,
                                                     .gpus_per_node = table.gpus_per_node,
                                                     .algorithm = table.algorithm,
                                                     .library_version = table.library_version},
                                                    store_);
  const auto cluster = build_cluster(scenario);
  const auto candidates = weigh_as_nccl({.world = cluster->world,
                                         .op = table.op,
                                         .bytes = size,
                                         .version_code = scenario.communication.library_version > 0
                                                             ? scenario.communication.library_version
                                                             : newest_nccl,
                                         .algorithm = table.algorithm,
                                         .protocol = table.protocol});
  return candidates.empty() ? 0 : candidates.front().expected.in_seconds();
}

}  // namespace lockstep
