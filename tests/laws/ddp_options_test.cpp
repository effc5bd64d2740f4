// Every option of DDP changes the result, or the case says why it must not.

#include <doctest/doctest.h>

#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep::ddp_options_test {

using Json = nlohmann::ordered_json;

// ResNet-50 on two nodes: several buckets, buffers, communication that compute does not quite hide, and a host that
// GPUs do not wait for.
Json base() {
  const Json machine = {{"based_on", "dgx_a100_40gb"}, {"host", {{"operator_time", "15 us"}}}};
  return {{"cluster", {{"machine", machine}, {"nodes", 2}}},
          {"model", {{"name", "resnet50"}, {"batch_per_gpu", 32}, {"precision", "amp_fp16"}}},
          {"training", {{"strategy", "ddp"}}}};
}

Report report_of(const Overrides& overrides, Fidelity fidelity = Fidelity::flow) {
  const Scenario scenario = scenario_from(base(), {.overrides = overrides, .fidelity = fidelity});
  return summarise(scenario, simulate(scenario));
}

bool changes(const std::string& path, const std::string& value, const Overrides& others = {}) {
  Overrides changed = others;
  changed.emplace_back(path, value);
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
    if (first_difference(report_of(others, fidelity), report_of(changed, fidelity)).empty())
      return false;
  return true;
}

TEST_CASE("bucket_cap_mb decides the buckets") {
  CHECK(changes("training.bucket_cap_mb", "50"));
  CHECK(report_of({{"training.bucket_cap_mb", "5"}}).communication.buckets.size() >
        report_of({{"training.bucket_cap_mb", "50"}}).communication.buckets.size());
}

// The first gradient of ResNet-50 is 7.82 MiB: a first limit above it takes in more tensors.
TEST_CASE("first_bucket_mb decides the first bucket") {
  CHECK(changes("training.first_bucket_mb", "10"));
  CHECK(report_of({{"training.first_bucket_mb", "10"}}).communication.buckets.front().bytes >
        report_of({}).communication.buckets.front().bytes);
}

TEST_CASE("gradient_as_bucket_view takes the copies back away") {
  CHECK(changes("training.gradient_as_bucket_view", "true"));
  CHECK(report_of({}).breakdown.gradient_copy >
        report_of({{"training.gradient_as_bucket_view", "true"}}).breakdown.gradient_copy);
}

// Without a rebuild the buckets keep registration order: the 1 MiB one is launched last, not first.
TEST_CASE("find_unused_parameters keeps the buckets of construction") {
  CHECK(changes("training.find_unused_parameters", "true"));
  const auto kept = report_of({{"training.find_unused_parameters", "true"}}).communication.buckets;
  CHECK(kept.back().bytes < kept.front().bytes);
}

// An int32 for each of ResNet-50's 161 parameters; it is no gradient and no bucket.
TEST_CASE("find_unused_parameters sums a bitmap of the parameters, unless the graph is static") {
  const auto bitmaps = [](const Overrides& overrides) {
    const Scenario scenario = scenario_from(base(), {.overrides = overrides});
    std::vector<std::int64_t> found;
    const Simulation simulation = simulate(scenario);
    for (const Communication& sent : simulation.steady.iterations.back().communications)
      if (sent.name == "unused bitmap")
        found.push_back(sent.bytes.count());
    return found;
  };
  CHECK(bitmaps({{"training.find_unused_parameters", "true"}}) == std::vector<std::int64_t>{4 * 161});
  CHECK(bitmaps({}).empty());
  CHECK(bitmaps({{"training.find_unused_parameters", "true"}, {"training.static_graph", "true"}}).empty());
}

// DistributedDataParallel sends the weights when it is constructed.
TEST_CASE("Before iteration 1 the model is broadcast from rank 0, and never again") {
  const Scenario scenario = scenario_from(base());
  const Simulation simulation = simulate(scenario);
  const auto sent_whole = [&](const Run& run) {
    Bytes sent;
    for (const IterationOps& iteration : run.iterations)
      for (const Communication& communication : iteration.communications)
        if (communication.name == "broadcast weights")
          sent += communication.bytes;
    return sent;
  };
  CHECK(sent_whole(simulation.first).count() == gradient_bytes(simulation.job).count());
  CHECK(sent_whole(simulation.steady).count() == 0);
}

TEST_CASE("broadcast_buffers sends the batch norms' statistics before forward") {
  CHECK(changes("training.broadcast_buffers", "false"));
  CHECK(report_of({{"training.broadcast_buffers", "false"}}).iteration < report_of({}).iteration);
}

TEST_CASE("gradient_accumulation adds micro-batches that are not reduced") {
  CHECK(changes("training.gradient_accumulation", "2"));
  const Report once = report_of({});
  const Report twice = report_of({{"training.gradient_accumulation", "2"}});
  CHECK(twice.communication.buckets.size() == once.communication.buckets.size());
  CHECK(twice.throughput.samples_per_iteration == once.throughput.samples_per_iteration * 2);
  CHECK(twice.iteration < once.iteration * 2);
}

TEST_CASE("The optimizer moves its states") {
  CHECK(changes("training.optimizer", "adam"));
  const auto time_of = [](const char* optimizer, const char* kernels) {
    return report_of({{"training.optimizer", optimizer}, {"compute.kernels", kernels}}).breakdown.optimizer;
  };
  Duration before = Duration::picoseconds(-1);
  for (const char* optimizer : {"none", "sgd", "momentum", "adam", "lamb"}) {
    const Duration time = time_of(optimizer, "fused");
    INFO(optimizer);
    CHECK(time > before);
    before = time;
  }
  // Operation by operation the states pass through memory more often.
  for (const char* optimizer : {"momentum", "adam"})
    CHECK(time_of(optimizer, "eager") > time_of(optimizer, "fused"));
}

TEST_CASE("adam and adamw take the same time: they read and write the same states") {
  CHECK(first_difference(report_of({{"training.optimizer", "adam"}}),
                         report_of({{"training.optimizer", "adamw"}})) == "");
}

// fp32 gradients under AMP: half the bytes on the wire.
TEST_CASE("compression halves what is sent") {
  CHECK(changes("training.compression", "fp16"));
  CHECK(report_of({{"training.compression", "fp16"}}).communication.total <
        report_of({}).communication.total);
}

TEST_CASE("powersgd_start_iteration decides whether the first iteration is compressed already") {
  CHECK(report_of({{"training.compression", "powersgd_1"}}).times.first !=
        report_of({{"training.compression", "powersgd_1"}, {"training.powersgd_start_iteration", "0"}})
            .times.first);
}

TEST_CASE("fp16 and bf16 compression take the same time: both are two bytes") {
  CHECK(first_difference(report_of({{"training.compression", "fp16"}}),
                         report_of({{"training.compression", "bf16"}})) == "");
}

TEST_CASE("Without overlap all buckets wait for the end of backward") {
  CHECK(changes("communication.overlap", "false"));
  const Report apart = report_of({{"communication.overlap", "false"}});
  CHECK(apart.communication.overlapped < report_of({}).communication.overlapped);
}

TEST_CASE("collectives_in_flight lets buckets share the network") {
  const Overrides slow{{"training.bucket_cap_mb", "1"}};
  CHECK(changes("communication.collectives_in_flight", "2", slow));
}

TEST_CASE("slowdown_during_communication stretches the kernels beside a collective") {
  CHECK(changes("compute.slowdown_during_communication", "1.7"));
}

TEST_CASE("scale multiplies compute") {
  CHECK(changes("compute.scale", "2"));
}

TEST_CASE("The precision of gradients is that of the parameters") {
  CHECK(changes("model.precision", "fp16"));
}

TEST_CASE("A forced protocol is the one that is used") {
  const Scenario scenario = scenario_from(base());
  for (const ProtocolCost& protocol : scenario.cluster.calibration.protocols)
    for (const BucketReport& bucket :
         report_of({{"communication.protocol", protocol.name}}).communication.buckets)
      CHECK(bucket.protocol == protocol.name);
}

// A static graph changes what DDP learns in the first iteration; without unused parameters the steady buckets
// are the same rebuilt ones.
TEST_CASE("static_graph alone changes no steady iteration: buckets are rebuilt either way") {
  CHECK(report_of({{"training.static_graph", "true"}}).iteration == report_of({}).iteration);
}

// reducer.cpp, should_rebuild_buckets: (static_graph or not find_unused_parameters) and not yet rebuilt.
TEST_CASE("With static_graph, find_unused_parameters keeps no buckets of construction") {
  const Report both =
      report_of({{"training.static_graph", "true"}, {"training.find_unused_parameters", "true"}});
  const Report neither = report_of({});
  REQUIRE(both.communication.buckets.size() == neither.communication.buckets.size());
  for (std::size_t bucket = 0; bucket < both.communication.buckets.size(); ++bucket)
    CHECK(both.communication.buckets[bucket].bytes.count() ==
          neither.communication.buckets[bucket].bytes.count());
}

// torch's clip_grad_norm_ multiplies whatever the norm is: gradients are read twice and written once. Megatron-LM
// reads them for the norm and multiplies those alone whose norm is too large.
TEST_CASE("Clipping passes over the gradients three times in PyTorch, once in Megatron-LM") {
  const auto clipping = [](const char* framework) {
    const Overrides plain{{"training.framework", framework},
                          {"model", R"({"name": "gpt2_xl", "batch_per_gpu": 1, "precision": "fp32"})"},
                          {"training.gradient_clipping", "false"}};
    Overrides clipped = plain;
    clipped.back().second = "true";
    return (report_of(clipped).breakdown.optimizer - report_of(plain).breakdown.optimizer).in_seconds();
  };
  CHECK(clipping("pytorch_ddp") == doctest::Approx(3 * clipping("megatron")).epsilon(0.02));
}

// The recorded order: nothing overlaps in iteration 1, because all gradients are one bucket.
TEST_CASE("The first iteration is slower than the others: all gradients are one bucket") {
  const Report report = report_of({});
  CHECK(report.times.first > report.iteration);
}

}  // namespace lockstep::ddp_options_test
