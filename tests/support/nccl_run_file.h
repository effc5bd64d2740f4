#pragma once

// A harness run over NCCL that the simulator has made: eight V100 whose constants are known.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/report/prediction.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/fit/calibration_profile.h"
#include "sim/study/harness/harness_run.h"
#include "sim/study/harness/harness_scenario.h"
#include "tests/scenario/lab.h"
#include "tests/support/benchmark_log.h"
#include "tests/support/harness_run_file.h"
#include "tests/support/scenarios.h"

namespace lockstep::testing {

// A byte that is sent passes the memory three times, one that is copied twice.
struct NcclTruth {
  double slowdown = 1.08;
  double sm_interference = 4.5;
  double copy_per_tensor_s = 5e-6;
  double copy_per_byte_s = 1 / 300e9;
  double copied_per_s = 700e9;  // bytes read and written beside which computing is timed
};

inline constexpr int parameters_of_nccl_run = 40;  // of 1 MiB each

inline Calibration calibration_of(const NcclTruth& truth) {
  const Calibration base =
      load_collective_setting({.machine = "dgx1_v100"}, shipped_profiles()).cluster.calibration;
  Calibration calibration = known_calibration(base);
  calibration.efficiency[LinkClass::nvlink] = Ratio::percent(15);  // far from the shipped profile
  calibration.compute_slowdown = Ratio::parts_per_million(std::llround(truth.slowdown * 1e6));
  calibration.sm_interference = Ratio::parts_per_million(std::llround(truth.sm_interference * 1e6));
  calibration.copy_per_tensor = Duration::picoseconds(std::llround(truth.copy_per_tensor_s * 1e12));
  calibration.copy_bandwidth = Bandwidth{std::llround(1 / truth.copy_per_byte_s)};
  return calibration;
}

inline Scenario cluster_of(const NcclTruth& truth) {
  Scenario scenario =
      load_collective_setting({.machine = "dgx1_v100", .library_version = "2.18.3"}, shipped_profiles());
  scenario.cluster.calibration = calibration_of(truth);
  return scenario;
}

inline nlohmann::json curve_of_nccl(const Scenario& cluster) {
  nlohmann::json curve = nlohmann::json::array();
  for (const CollectiveRow& row : CollectiveBench(cluster).predict(
           CollectiveOp::all_reduce, {.first = Bytes{1024}, .last = Bytes{256 << 20}}))
    curve.push_back({{"bytes", row.size.count()},
                     {"time_s", statistics(row.time.in_seconds())},
                     {"from_idle_s", statistics(row.time.in_seconds() + 10e-6)},
                     {"back_to_back_s", statistics(row.time.in_seconds())}});
  return curve;
}

// Computing takes slowdown + sm_interference x (SMs held) / (SMs) of its time alone.
inline nlohmann::json interference_of_nccl(const NcclTruth& truth, const Scenario& cluster,
                                           std::int64_t bytes) {
  const CollectiveRow row = CollectiveBench(cluster).predict(CollectiveOp::all_reduce, Bytes{bytes});
  const double held = static_cast<double>(row.channels) / static_cast<double>(cluster.cluster.gpu.sms);
  const double beside = 0.01 * (truth.slowdown + truth.sm_interference * held);
  return {{"bytes", bytes},
          {"compute_alone_s", 0.01},
          {"compute_beside_s", beside},
          {"collectives", beside / row.time.in_seconds()},
          {"collective_alone_s", row.time.in_seconds()},
          {"collective_beside_s", row.time.in_seconds()},
          {"covered", 1.0}};
}

// Copies slow computing down by as much more than all-reduces of 25 MiB as they move more bytes.
inline nlohmann::json copy_interference_of(const NcclTruth& truth, const Scenario& cluster) {
  constexpr double copied = 1 << 28;
  const Bytes bytes{25 << 20};
  const CollectiveRow row = CollectiveBench(cluster).predict(CollectiveOp::all_reduce, bytes);
  const double sent = 2 * 7.0 / 8 * static_cast<double>(bytes.count());
  const double moved_per_s = 3 * sent / row.time.in_seconds();
  return {{"bytes", copied},
          {"copy_alone_s", 2 * copied / truth.copied_per_s},
          {"copy_beside_s", 2 * copied / truth.copied_per_s},
          {"compute_alone_s", 0.01},
          {"compute_beside_s", 0.01 * (1 + (truth.slowdown - 1) * truth.copied_per_s / moved_per_s)},
          {"covered", 1.0}};
}

// Gradients of 1 MiB, one every 0.1 ms of backward.
inline void put_model(nlohmann::json& run) {
  run["model"]["parameters"] = nlohmann::json::array();
  for (int index = 0; index < parameters_of_nccl_run; ++index)
    run["model"]["parameters"].push_back({{"name", "weight" + std::to_string(index)},
                                          {"elements", 1 << 18},
                                          {"gradient_ready_s", 1e-4 * (parameters_of_nccl_run - index)}});
  run["without_communication"] = {
      {"iteration_s", statistics(0.0065)},       {"forward_s", statistics(0.002)},
      {"backward_s", statistics(0.004)},         {"optimizer_s", statistics(0.0005)},
      {"marked_backward_s", statistics(0.0041)}, {"layers", nlohmann::json::array()}};
}

// What the simulator says of the iterations on the machine of the true constants.
inline void put_iterations(nlohmann::json& file, const NcclTruth& truth) {
  const Folder folder;
  const HarnessRun run = read_harness_run(folder.write("run.json", file.dump()));
  nlohmann::ordered_json machine = *shipped_profiles().open(ProfileKind::machine, "dgx1_v100")->value;
  machine["calibration"] = profile_of(calibration_of(truth), nlohmann::ordered_json::object());
  file["iterations"] = nlohmann::json::array();
  for (const double cap : {1.0, 5.0, 25.0}) {
    MeasuredIteration setting;
    setting.bucket_cap_mb = cap;
    const nlohmann::ordered_json scenario =
        data_parallel_scenario(run, setting, {.machine = machine, .nodes = 1, .gpus_per_node = 8});
    const Report report = predict(load_value(scenario, {.store = shipped_profiles()})).report;
    file["iterations"].push_back(iteration_of(cap, report.iteration.in_seconds()));
  }
}

inline nlohmann::json nccl_run(const NcclTruth& truth = {}) {
  const Scenario cluster = cluster_of(truth);
  nlohmann::json run = harness_run({.name = "nccl",
                                    .copy_per_tensor_s = truth.copy_per_tensor_s,
                                    .copy_per_byte_s = truth.copy_per_byte_s});
  run["ranks"] = 8;
  run["nodes"] = 1;
  run["harness"]["backend"] = "cuda";
  run["harness"]["device"] = "Tesla V100-SXM2-32GB";
  run["harness"]["communication"] = "NCCL 2.18.3";
  run["machine"]["gpus_shared"] = false;
  run["network"] = {{"kind", "as_found"}, {"goodput_byte_s", nullptr}};
  run["collective_curve"] = curve_of_nccl(cluster);
  run["interference"] = {interference_of_nccl(truth, cluster, 25 << 20)};
  run["copy_interference"] = copy_interference_of(truth, cluster);
  put_model(run);
  put_iterations(run, truth);
  return run;
}

}  // namespace lockstep::testing
