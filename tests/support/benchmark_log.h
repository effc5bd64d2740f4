#pragma once

// What nccl-tests would print on a cluster whose constants are known: predicted tables as its text.

#include <fmt/format.h>

#include <string>

#include "sim/study/bench/collective_table.h"

namespace lockstep {

struct BenchmarkRun {
  std::string machine = "dgx1_v100";
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string test = "all_reduce_perf";
  std::string library_version = "2.18.3";
  SizeRange sizes = {.first = Bytes{8}, .last = Bytes{256 << 20}};
};

inline std::string device_lines(const BenchmarkRun& run) {
  std::string text = "# Using devices\n";
  for (std::int64_t rank = 0; rank < run.nodes * run.gpus_per_node; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on   worker-{} device {:2} [0000:18:00] GPU\n", rank,
                        1000 + rank, rank / run.gpus_per_node, rank % run.gpus_per_node);
  return text;
}

// Times are printed to six digits, so that the text adds no error of its own.
inline std::string row_line(const CollectiveRow& row) {
  const double time_us = row.time.in_seconds() * 1e6;
  return fmt::format("{:12} {:12} float sum -1 {:.6g} {:.4f} {:.4f} 0\n", row.size.count(),
                     row.size.count() / 4, time_us, static_cast<double>(row.algbw.count()) / 1e9,
                     static_cast<double>(row.busbw.count()) / 1e9);
}

// With these constants the cluster takes the run's times.
inline std::string benchmark_log(const BenchmarkRun& run, const Calibration& truth,
                                 const ProfileStore& store) {
  Scenario scenario = load_collective_setting({.machine = run.machine,
                                               .nodes = run.nodes,
                                               .gpus_per_node = run.gpus_per_node,
                                               .library_version = run.library_version},
                                              store);
  scenario.cluster.calibration = truth;
  std::string text = fmt::format("./build/{} -b 8\nNCCL version {}+cuda12.1\n{}", run.test,
                                 run.library_version, device_lines(run));
  text += "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n";
  text += "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n";
  for (const CollectiveRow& row : CollectiveBench(scenario).predict(run.op, run.sizes)) text += row_line(row);
  return text;
}

// As a V100 machine might be: every kind of figure, none of them a usual value.
inline Calibration known_calibration(const Calibration& base) {
  Calibration truth = base;
  truth.collective_launch = Duration::nanoseconds(5200);
  truth.channel_start = Duration::nanoseconds(600);
  truth.shared_channel_start = Duration::nanoseconds(90);
  truth.own_copy_channel_bandwidth = Bandwidth{35'000'000'000};
  truth.host_launch = Duration::zero();
  truth.efficiency = {{LinkClass::nvlink, Ratio::percent(82)}, {LinkClass::network, Ratio::percent(86)}};
  truth.algorithms.clear();
  truth.peer = {};
  truth.communication_residuals.clear();
  const auto steps = [](std::int64_t in_node_ns, std::int64_t between_ns) {
    return std::map<LinkClass, Duration>{{LinkClass::nvlink, Duration::nanoseconds(in_node_ns)},
                                         {LinkClass::network, Duration::nanoseconds(between_ns)}};
  };
  const auto fills = [](Ratio in_node, Ratio between) {
    return std::map<LinkClass, Ratio>{{LinkClass::nvlink, in_node}, {LinkClass::network, between}};
  };
  truth.protocols.assign(3, {});
  truth.protocols[0].name = "ll";
  truth.protocols[0].payload = Ratio::percent(50);
  truth.protocols[0].fill = fills(Ratio::percent(40), Ratio::percent(30));
  truth.protocols[0].step = steps(1100, 5000);
  truth.protocols[1].name = "ll128";
  truth.protocols[1].payload = Ratio::parts_per_million(937'500);
  truth.protocols[1].fill = fills(Ratio::percent(88), Ratio::percent(80));
  truth.protocols[1].launch = Duration::nanoseconds(2500);
  truth.protocols[1].step = steps(1900, 8000);
  truth.protocols[2].name = "simple";
  truth.protocols[2].launch = Duration::nanoseconds(4000);
  truth.protocols[2].step = steps(3600, 14000);
  return truth;
}

}  // namespace lockstep
