#include "sim/report/timeline_lanes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "sim/report/report.h"
#include "tests/scenario/lab.h"

namespace lockstep::timeline_lanes_test {

const std::string scenarios = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/";

Simulation simulate_shipped(const std::string& name, Overrides overrides = {}) {
  return simulate(load({.path = scenarios + name, .overrides = std::move(overrides)}));
}

std::vector<DrawnLane> lanes_of(const Simulation& simulation) {
  return timeline_lanes(simulation, critical_representative(simulation.steady));
}

std::vector<std::string> names_of(const std::vector<DrawnLane>& lanes) {
  std::vector<std::string> names;
  for (const DrawnLane& lane : lanes) names.push_back(lane.name);
  return names;
}

// Of the last iteration, in which spans may lie in part.
double seconds_within(const Simulation& simulation, const DrawnLane& lane) {
  const RankView view(simulation.steady, critical_representative(simulation.steady));
  const Time start = view.start_of(view.iterations());
  const Time end = view.end_of(view.iterations());
  double seconds = 0;
  for (const Span& span : lane.spans)
    if (span.end > start && span.start < end)
      seconds += (std::min(span.end, end) - std::max(span.start, start)).in_seconds();
  return seconds;
}

TEST_CASE("workers and storage are busy in each iteration as long as loading one batch takes") {
  for (const std::string workers : {"8", "16"}) {
    CAPTURE(workers);
    const Simulation simulation =
        simulate_shipped("input_bound_resnet50.json", {{"input.workers", workers}, {"input.cores", "128"}});
    const std::vector<DrawnLane> lanes = lanes_of(simulation);
    double busy = 0;
    int loaders = 0;
    for (const DrawnLane& lane : lanes)
      if (lane.name.starts_with("loader") || lane.name == "storage") {
        busy += seconds_within(simulation, lane);
        ++loaders;
      }
    CHECK(loaders <= std::stoi(workers) + 1);  // some may rest for an iteration
    CHECK(loaders > 8);
    const InputWork& input = *simulation.job.input;
    CHECK(busy == doctest::Approx((input.reading + input.preparing).in_seconds()).epsilon(1e-3));
  }
}

TEST_CASE("what a GPU copies to its host and back has a lane for each direction") {
  const std::vector<std::string> names = names_of(lanes_of(simulate_shipped("ps_sync_resnet50_grpc.json")));
  CHECK(std::count(names.begin(), names.end(), "copies") == 1);
  CHECK(std::count(names.begin(), names.end(), "copies 2") == 1);
  CHECK(std::count(names.begin(), names.end(), "network") == 1);
}

// Batches are copied on a stream of their own, which no strategy's copies wait for.
TEST_CASE("a loader's copies beside a parameter server's have a lane of their own") {
  const Simulation simulation =
      simulate_shipped("ps_sync_resnet50_grpc.json",
                       {{"input", R"({"workers": 8, "sample_time": "6 ms", "tensor_bytes": "602112 B",
                                      "copy": "overlapped"})"}});
  const std::vector<std::string> names = names_of(lanes_of(simulation));
  for (const char* lane : {"copies", "copies 2", "copies 3"})
    CHECK(std::count(names.begin(), names.end(), lane) == 1);
  for (const Lane& lane : simulation.steady.plan.lanes)
    if (lane.kind == LaneKind::copy)
      CHECK((lane.discipline == Discipline::when_ready) == (lane.index != batch_copy_lane));
}

TEST_CASE("a rank that does nothing but compute has one lane") {
  const std::vector<std::string> names = names_of(lanes_of(
      simulate_shipped("single_gpu_resnet50.json", {{"compute.single_gpu_iteration", "\"103.6 ms\""}})));
  CHECK(fmt::format("{}", fmt::join(names, " ")) == "compute");
}

}  // namespace lockstep::timeline_lanes_test
