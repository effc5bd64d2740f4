// Computing beside all-reduces of two ranks over 100 MB/s: every message of them is half the buffer, and a byte
// takes 10 ns on the wire.

#include "sim/study/interference_bench.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/study/collective_table.h"
#include "sim/study/core_use.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr double wire_s = 10e-9;  // a byte
constexpr double mebibyte = 1 << 20;

struct Core {
  double per_byte_s = 0;
  double share = 0.5;
  double wait_s = 0;
};

Scenario gloo_pair() {
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

Calibration using_core(const Scenario& scenario, const Core& core) {
  Calibration calibration = scenario.cluster.calibration;
  calibration.core_time_per_byte_ps = std::llround(core.per_byte_s * 1e12);
  return with_core_use(calibration, {.share = core.share, .wait_s = core.wait_s});
}

struct Paces {
  double slowdown;    // of computing
  double per_byte_s;  // of an all-reduce
};

Paces paces_of(const Core& core, double bytes = mebibyte) {
  const Scenario scenario = gloo_pair();
  const Duration second = Duration::seconds(1);
  const InterferenceRow row = InterferenceBench(scenario).predict(
      {.bytes = Bytes{std::llround(bytes)}, .compute = second}, using_core(scenario, core));
  return {.slowdown = row.compute.in_seconds(), .per_byte_s = row.collective.in_seconds() / bytes};
}

TEST_CASE("all-reduces that take no core leave computing alone and go at the wire's pace") {
  const Paces found = paces_of({});
  CHECK(found.slowdown == doctest::Approx(1));
  CHECK(found.per_byte_s == doctest::Approx(wire_s).epsilon(0.001));
}

// At the wire's pace they take 3 ns of every 10.
TEST_CASE("computing loses the core time of the bytes that move") {
  const Paces found = paces_of({.per_byte_s = 3e-9});
  CHECK(found.slowdown == doctest::Approx(1 / (1 - 0.3)).epsilon(0.001));
  CHECK(found.per_byte_s == doctest::Approx(wire_s).epsilon(0.001));
}

// A quarter against three, twice: two in five parts. A byte of 8 ns then takes 20 ns.
TEST_CASE("where all want more of the core than there is, each in flight has its share") {
  const Paces found = paces_of({.per_byte_s = 8e-9, .share = 0.25});
  CHECK(found.per_byte_s == doctest::Approx(8e-9 / 0.4).epsilon(0.001));
  CHECK(found.slowdown == doctest::Approx(1 / (1 - 0.4)).epsilon(0.001));
}

// A message of half a mebibyte takes c = 8 ns a byte of the core, at a share of 0.4 so c / 0.4. With a wait as
// long as that its share is 0.2, one part to four: two in flight have two of six.
TEST_CASE("a wait before each step takes from short messages what it would cost them") {
  const double moving_s = mebibyte / 2 * 8e-9 / 0.4;
  const Core core{.per_byte_s = 8e-9, .share = 0.4, .wait_s = moving_s};
  CHECK(paces_of(core).per_byte_s == doctest::Approx(8e-9 * 3).epsilon(0.01));
  // A message 64 times as long hardly notices: 0.4 against 0.6 twice is four parts in seven.
  CHECK(paces_of(core, 64 * mebibyte).per_byte_s == doctest::Approx(8e-9 * 7 / 4).epsilon(0.02));
}

TEST_CASE("nobody waits for a core that computes nothing") {
  Scenario scenario = gloo_pair();
  const auto time = [&](double wait_s) {
    scenario.cluster.calibration = using_core(scenario, {.per_byte_s = 8e-9, .wait_s = wait_s});
    return CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{1 << 20}).time;
  };
  CHECK(time(0.010) == time(0));
}

InterferencePoint point_of(const Core& core, double bytes) {
  const Paces paces = paces_of(core, bytes);
  return {.bytes = Bytes{std::llround(bytes)},
          .compute_alone_s = 1,
          .compute_beside_s = paces.slowdown,
          .collectives = paces.slowdown / (bytes * paces.per_byte_s),
          .collective_alone_s = bytes * wire_s,
          .collective_beside_s = bytes * paces.per_byte_s};
}

TEST_CASE("the share and the wait that a benchmark was made with are found again") {
  const Core core{.per_byte_s = 7e-9, .share = 0.45, .wait_s = 0.003};
  const std::vector<InterferencePoint> points{point_of(core, mebibyte), point_of(core, 4 * mebibyte),
                                              point_of(core, 16 * mebibyte)};
  const Scenario scenario = gloo_pair();
  const Calibration calibration = using_core(scenario, {.per_byte_s = core.per_byte_s});
  const CoreUse found = fit_core_use(InterferenceBench(scenario), points, calibration, {.share = 0.6});
  CHECK(found.share == doctest::Approx(core.share).epsilon(0.02));
  CHECK(found.wait_s == doctest::Approx(core.wait_s).epsilon(0.05));
}

TEST_CASE("one size of all-reduce tells the share alone") {
  const Core core{.per_byte_s = 8e-9, .share = 0.3};
  const std::vector<InterferencePoint> points{point_of(core, mebibyte)};
  const Scenario scenario = gloo_pair();
  const Calibration calibration = using_core(scenario, {.per_byte_s = core.per_byte_s});
  const CoreUse found = fit_core_use(InterferenceBench(scenario), points, calibration, {.share = 0.6});
  CHECK(found.share == doctest::Approx(core.share).epsilon(0.01));
  CHECK(found.wait_s == 0);
}

}  // namespace
}  // namespace lockstep
