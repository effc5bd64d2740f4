#pragma once

// Two ranks over 100 MB/s with a core each, whose all-reduces take what a test says of it. Every message of
// an all-reduce is half the buffer, and a byte takes 10 ns on the wire.

#include <cmath>
#include <vector>

#include "sim/study/bench/interference_bench.h"
#include "sim/study/fit/core_use.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::testing {

inline constexpr double wire_s = 10e-9;  // a byte
inline constexpr double mebibyte = 1 << 20;

struct Core {
  double per_byte_s = 0;
  double share = 0.5;
  double wait_s = 0;
};

inline Scenario gloo_pair() {
  const nlohmann::ordered_json calibration{
      {"name", "mine"},
      {"source", "ours"},
      {"link_efficiency", {{"network", 1}}},
      {"protocols", {{{"name", "tcp"}, {"step", {{"network", "0 us"}}}}}}};
  nlohmann::ordered_json machine{{"name", "pair"}, {"source", "ours"}, {"gpu", "cpu"}, {"gpus", 1}};
  machine["gpu_links"]["kind"] = "none";
  machine["library"] = "gloo";
  machine["nics"] = {{"count", 1}, {"link", {{"bandwidth", "100 MB/s"}, {"latency", "0 us"}}}};
  machine["calibration"] = calibration;
  nlohmann::ordered_json scenario{{"name", "pair"}};
  scenario["cluster"] = {{"machine", machine}, {"nodes", 2}};
  scenario["model"]["layers"] = nlohmann::ordered_json::array(
      {{{"parameters", {1}}, {"forward_time", "1 us"}, {"backward_time", "1 us"}}});
  return load_value(scenario, {.store = shipped_profiles()});
}

inline Calibration using_core(const Scenario& scenario, const Core& core) {
  Calibration calibration = scenario.cluster.calibration;
  calibration.core_time_per_byte_ps = std::llround(core.per_byte_s * 1e12);
  return with_core_use(calibration, {.share = core.share, .wait_s = core.wait_s});
}

struct Paces {
  double slowdown;    // of computing
  double per_byte_s;  // of an all-reduce
};

inline Paces paces_of(const Core& core, double bytes = mebibyte) {
  const Scenario scenario = gloo_pair();
  const Duration second = Duration::seconds(1);
  const InterferenceRow row = InterferenceBench(scenario).predict(
      {.bytes = Bytes{std::llround(bytes)}, .compute = second}, using_core(scenario, core));
  return {.slowdown = row.compute.in_seconds(), .per_byte_s = row.collective.in_seconds() / bytes};
}

}  // namespace lockstep::testing
