#include "sim/study/bench/naive_clocks.h"

#include <cmath>
#include <vector>

#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/least_squares.h"

namespace lockstep {
namespace {

double bus_bytes(const MeasuredTable& table, Bytes size) {
  const BusFactor factor = bus_factor(table.op, table.ranks());
  return static_cast<double>(size.count()) * static_cast<double>(factor.numerator) /
         static_cast<double>(factor.denominator);
}

struct LinePoint {
  double bytes;
  double seconds;
};

std::vector<LinePoint> points_of(std::span<const MeasuredTable> tables) {
  std::vector<LinePoint> points;
  for (const MeasuredTable& table : tables)
    for (const MeasuredRow& row : table.rows)
      points.push_back({bus_bytes(table, row.size), row.time.in_seconds()});
  return points;
}

}  // namespace

NaiveClocks::NaiveClocks(std::span<const MeasuredTable> fitted, const ProfileStore& store) : store_(store) {
  const std::vector<LinePoint> points = points_of(fitted);
  std::vector<double> line{std::log(20e-6), std::log(1e-11)};
  solve({.residuals = points.size(),
         .bounds = {line.size(), {.least = -60, .most = 10}},
         .evaluate =
             [&](const double* at, double* residuals) {
               for (const LinePoint& point : points)
                 *residuals++ = std::log((std::exp(at[0]) + std::exp(at[1]) * point.bytes) / point.seconds);
             }},
        line);
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
                                                     .protocols = table.protocols,
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
