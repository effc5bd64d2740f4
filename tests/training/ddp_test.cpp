// DistributedDataParallel's step, moment by moment (two_hosts.h has the numbers).

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/two_hosts.h"

namespace lockstep::training_ddp_test {

using Json = nlohmann::ordered_json;

Report report_of(const Scenario& scenario) {
  return summarise(scenario, simulate(scenario));
}

Report report_with(const Json& training) {
  return report_of(scenario_from(two_hosts(training)));
}

// Milliseconds of each bucket.
using Moments = std::vector<std::int64_t>;

template <class Moment>
Moments moments(const Report& report, Moment BucketReport::*of) {
  Moments found;
  for (const BucketReport& bucket : report.communication.buckets)
    found.push_back(in_milliseconds(bucket.*of));
  return found;
}

// A gradient each, in the order of backward; the first leaves at once, the others wait for the wire.
TEST_CASE("a bucket is reduced when its last gradient is there and the bucket before it has arrived") {
  const Report report = report_with(Json::object());
  CHECK(moments(report, &BucketReport::ready) == Moments{50, 70, 90});
  CHECK(moments(report, &BucketReport::start) == Moments{50, 90, 130});
  CHECK(moments(report, &BucketReport::end) == Moments{90, 130, 170});
  CHECK(in_milliseconds(report.iteration) == 170);
}

// The caps are 3 and 7 MiB, and 4 MB are 3.8 MiB: c alone, then b and a.
TEST_CASE("the first bucket has a cap of its own") {
  const Report report = report_with({{"bucket_cap_mb", 7}});
  CHECK(moments(report, &BucketReport::ready) == Moments{50, 90});
  CHECK(moments(report, &BucketReport::end) == Moments{90, 170});
  CHECK(report.communication.buckets[0].parameters == 1);
  CHECK(report.communication.buckets[1].parameters == 2);
  CHECK(report.communication.buckets[1].bytes == Bytes{8'000'000});
}

std::vector<std::string> names_of(const IterationOps& iteration) {
  std::vector<std::string> names;
  for (const Communication& entry : iteration.communications) names.emplace_back(entry.name);
  return names;
}

// Nothing overlaps in it: 120 ms of weights, which are concatenated before and copied to their places after, 90 of
// computing, 120 of gradients, each of them copied into its bucket.
TEST_CASE("iteration 1 sends the model and then all gradients as one bucket, at the end of backward") {
  Scenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.cluster.calibration.copy_per_tensor = Duration::milliseconds(1);
  scenario.cluster.calibration.copy_bandwidth = Bandwidth{4'000'000'000};
  const Simulation simulation = simulate(scenario);
  const IterationOps& first = simulation.first.iterations.front();
  CHECK(names_of(first) == std::vector<std::string>{"broadcast weights", "bucket 0"});
  CHECK(first.communications[0].op == CollectiveOp::broadcast);
  CHECK(first.communications[0].payload == Payload::other);
  CHECK(first.communications[0].bytes == Bytes{12'000'000});
  CHECK(first.communications[1].tensors == 3);
  CHECK(first.communications[1].bytes == Bytes{12'000'000});
  // One copy of 12 MB at 4 GB/s, which takes 1 ms to start; then, twice, of three tensors.
  CHECK(summarise(scenario, simulation).times.first ==
        Duration::milliseconds(1 + 3 + 120 + 3 + 3 + 90 + 3 + 3 + 120));
  CHECK(names_of(simulation.steady.iterations.front()) ==
        std::vector<std::string>{"bucket 0", "bucket 1", "bucket 2"});
}

// 160 MB each: two pass 250 MiB (262 MB), and a piece is closed once it has.
TEST_CASE("the model is sent in pieces of 250 MiB") {
  Json given = two_hosts(Json::object());
  for (Json& layer : given["model"]["layers"]) layer["parameters"] = {40'000'000};
  const Simulation simulation = simulate(scenario_from(given));
  const Communications& sent = simulation.first.iterations.front().communications;
  CHECK(names_of(simulation.first.iterations.front()) ==
        std::vector<std::string>{"broadcast weights", "broadcast weights", "bucket 0"});
  CHECK(sent[0].bytes == Bytes{320'000'000});
  CHECK(sent[1].bytes == Bytes{160'000'000});
}

TEST_CASE("only the last micro-batch is reduced") {
  const Report report = report_with({{"gradient_accumulation", 3}});
  CHECK(moments(report, &BucketReport::ready) == Moments{2 * 90 + 50, 2 * 90 + 70, 2 * 90 + 90});
  CHECK(in_milliseconds(report.iteration) == 2 * 90 + 170);
}

// One tensor takes 1 ms to start and 1 ms to move. Copied in behind its backward, each is there 2 ms later than the
// one before; after backward (30 + 60 + 6) the last bucket is on the wire until 52 + 120, and is copied back.
TEST_CASE("without views every gradient is copied into its bucket and back") {
  Scenario scenario = scenario_from(two_hosts({{"gradient_as_bucket_view", false}}));
  scenario.cluster.calibration.copy_per_tensor = Duration::milliseconds(1);
  scenario.cluster.calibration.copy_bandwidth = Bandwidth{4'000'000'000};
  const Report report = report_of(scenario);
  CHECK(moments(report, &BucketReport::ready) == Moments{52, 74, 96});
  CHECK(report.breakdown.gradient_copy == Duration::milliseconds(3 * 2 + 3 * 2));
  CHECK(report.iteration == Duration::milliseconds(52 + 3 * 40 + 2));
}

// The views are new tensors in every iteration: what is copied in as without them is not copied back.
TEST_CASE("with views every gradient is copied into its bucket, and none back") {
  Scenario scenario = scenario_from(two_hosts({{"gradient_as_bucket_view", true}}));
  scenario.cluster.calibration.copy_per_tensor = Duration::milliseconds(1);
  scenario.cluster.calibration.copy_bandwidth = Bandwidth{4'000'000'000};
  const Report report = report_of(scenario);
  CHECK(moments(report, &BucketReport::ready) == Moments{52, 74, 96});
  CHECK(report.breakdown.gradient_copy == Duration::milliseconds(3 * 2));
  CHECK(report.iteration == Duration::milliseconds(52 + 3 * 40));
}

// Copied in, 2 ms; the hook's two passes over a bucket, 2 ms to start and 1 ms a 4 MB; back is one. Half the bytes,
// 20 ms, are on the wire: at 55, 80 and 105. The two that came during backward are cast back at 105 and 107, the
// third at 125.
TEST_CASE("a cast halves the wire's time, and is paid for on either side") {
  Scenario scenario = scenario_from(two_hosts({{"compression", "fp16"}}));
  scenario.cluster.calibration.copy_per_tensor = Duration::milliseconds(1);
  scenario.cluster.calibration.copy_bandwidth = Bandwidth{4'000'000'000};
  const Report report = report_of(scenario);
  CHECK(moments(report, &BucketReport::start) == Moments{55, 80, 105});
  CHECK(moments(report, &BucketReport::end) == Moments{75, 100, 125});
  CHECK(report.communication.buckets[0].bytes == Bytes{4'000'000});
  CHECK(report.communication.bytes_per_gpu == Bytes{6'000'000});
  CHECK(report.breakdown.gradient_copy == Duration::milliseconds(3 * (2 + 3 + 2)));
  CHECK(report.iteration == Duration::milliseconds(125 + 2));
}

TEST_CASE("gradients of two bytes are not cast to smaller ones") {
  Json given = two_hosts({{"compression", "fp16"}});
  given["model"]["precision"] = "fp16";
  CHECK(report_of(scenario_from(given)).communication.bytes_per_gpu == Bytes{3 * 2'000'000});
}

// 5 ms of the host before each, on the way of the kernels behind it.
TEST_CASE("launching a bucket takes the host's time from backward") {
  Scenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.cluster.calibration.host_per_bucket = Duration::milliseconds(5);
  CHECK(moments(report_of(scenario), &BucketReport::start) == Moments{55, 95, 135});
  CHECK(report_of(scenario).breakdown.host_overhead == Duration::milliseconds(15));
}

// Then the launches follow each other, and the first bucket begins when backward and its launch are over.
TEST_CASE("without overlap all buckets are launched once backward is over") {
  Json given = two_hosts(Json::object());
  given["communication"]["overlap"] = false;
  Scenario scenario = scenario_from(given);
  scenario.cluster.calibration.host_per_bucket = Duration::milliseconds(5);
  const Report report = report_of(scenario);
  CHECK(moments(report, &BucketReport::start) == Moments{95, 135, 175});
  CHECK(in_milliseconds(report.iteration) == 95 + 3 * 40);

  const Report free_launches = report_of(scenario_from(given));
  CHECK(moments(free_launches, &BucketReport::start) == Moments{90, 130, 170});
  CHECK(in_milliseconds(free_launches.iteration) == 90 + 3 * 40);
}

// Registered as a, b; a is there 7 ms into backward and b 24.
Json measured(const Json& training) {
  Json given = two_hosts(training);
  given["model"] = Json::parse(
      R"({"measured": {"forward": "10 ms", "backward": "25 ms", "optimizer": "2 ms", "parameters": [
      {"name": "a", "elements": 1000000, "gradient_ready": "7 ms"},
      {"name": "b", "elements": 1000000, "gradient_ready": "24 ms"}]}})");
  return given;
}

TEST_CASE("buckets follow the order in which gradients were ready in iteration 1") {
  const Report report = report_of(scenario_from(measured(Json::object())));
  CHECK(moments(report, &BucketReport::ready) == Moments{17, 34});
  CHECK(moments(report, &BucketReport::start) == Moments{17, 57});
}

// Those of construction are made from the last parameter to the first: b is the first, and a, long there, waits
// for it. What was used is known once both are on their way; 8 bytes of it come last.
TEST_CASE("who looks for unused parameters keeps the buckets of construction, unless the graph is static") {
  const Scenario scenario = scenario_from(measured({{"find_unused_parameters", true}}));
  const Simulation simulation = simulate(scenario);
  const Report report = summarise(scenario, simulation);
  CHECK(moments(report, &BucketReport::ready) == Moments{34, 17});
  CHECK(moments(report, &BucketReport::start) == Moments{34, 74});
  CHECK(names_of(simulation.steady.iterations.back()) ==
        std::vector<std::string>{"bucket 0", "bucket 1", "unused bitmap"});
  const Communication& bitmap = simulation.steady.iterations.back().communications.back();
  CHECK(bitmap.bytes == Bytes{2 * 4});
  CHECK(bitmap.payload == Payload::other);
  const Report fixed =
      report_of(scenario_from(measured({{"find_unused_parameters", true}, {"static_graph", true}})));
  CHECK(moments(fixed, &BucketReport::ready) == Moments{17, 34});
}

TEST_CASE("buffers go out before each forward, if they are to and there are any") {
  const auto first_of = [](bool broadcasts) {
    const Scenario scenario =
        scenario_from({{"cluster", {{"machine", "abci_v"}, {"nodes", 1}}},
                       {"model", {{"name", "resnet18"}, {"batch_per_gpu", 1}}},
                       {"training", {{"strategy", "ddp"}, {"broadcast_buffers", broadcasts}}}});
    return names_of(simulate(scenario).steady.iterations.back()).front();
  };
  CHECK(first_of(true) == "broadcast buffers");
  CHECK(first_of(false) == "bucket 0");
}

// Two tensors of floats, 8 MB, concatenated in 1 + 2 ms; one of counters, 4 MB, which lies as it is sent. Both are on
// their way at 3 and arrive at 83 and 123; copied back in 2 + 2 ms and in 1 + 1. A step without buffers takes 172.
TEST_CASE(
    "buffers of each type are broadcast in one message, and all are sent before the first is waited for") {
  Scenario scenario = scenario_from(two_hosts(Json::object()));
  scenario.cluster.calibration.copy_per_tensor = Duration::milliseconds(1);
  scenario.cluster.calibration.copy_bandwidth = Bandwidth{4'000'000'000};
  scenario.model.model.buffers = {{.name = "mean", .elements = 1'000'000},
                                  {.name = "batches", .elements = 500'000, .element_bytes = 8},
                                  {.name = "variance", .elements = 1'000'000}};
  const Simulation simulation = simulate(scenario);
  const Communications& sent = simulation.steady.iterations.back().communications;
  CHECK(
      names_of(simulation.steady.iterations.back()) ==
      std::vector<std::string>{"broadcast buffers", "broadcast buffers", "bucket 0", "bucket 1", "bucket 2"});
  CHECK(sent[0].bytes == Bytes{8'000'000});
  CHECK(sent[1].bytes == Bytes{4'000'000});
  CHECK(summarise(scenario, simulation).iteration == Duration::milliseconds(123 + 2 + 172));
}

TEST_CASE("buckets are a second copy of all gradients, unless gradients are views of them") {
  const auto held = [](bool are_views) {
    const Scenario scenario = scenario_from(two_hosts({{"gradient_as_bucket_view", are_views}}));
    return strategy_named("ddp").memory(simulate(scenario).job, 2).buffers;
  };
  CHECK(held(false) == Bytes{12'000'000});
  CHECK(held(true) == Bytes{0});
}

}  // namespace lockstep::training_ddp_test
