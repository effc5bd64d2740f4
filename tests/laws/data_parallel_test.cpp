// What must hold of nn.DataParallel.
//
// S: the bytes of all gradients, as many as of all weights; n: GPUs.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "sim/base/error.h"
#include "sim/training/memory.h"
#include "tests/support/scenarios.h"

namespace lockstep::data_parallel_test {

using Json = nlohmann::ordered_json;

Json resnet50(std::int64_t gpus, std::int64_t batch, const std::string& strategy = "dp") {
  return {{"cluster", {{"machine", "dgx1_v100"}, {"gpus_per_node", gpus}}},
          {"model", {{"name", "resnet50"}, {"batch_per_gpu", batch}, {"precision", "fp32"}}},
          {"training", {{"strategy", strategy}, {"optimizer", "adam"}}}};
}

struct Seen {
  Report report;
  Job job;
  Run run;
};

Seen run(const Json& given) {
  const Scenario scenario = scenario_from(given);
  const Simulation simulation = simulate(scenario);
  return {summarise(scenario, simulation), simulation.job, simulation.steady};
}

// Weights go once round the ring from GPU 0, gradients once back to it.
TEST_CASE("nn.DataParallel moves weights and gradients once, 2 S, on any number of GPUs") {
  for (const std::int64_t gpus : {2, 4, 8}) {
    const Seen seen = run(resnet50(gpus, 16));
    CHECK(seen.report.communication.bytes_per_gpu.count() == 2 * gradient_bytes(seen.job).count());
  }
  CHECK(run(resnet50(1, 16)).report.communication.bytes_per_gpu.count() == 0);
}

TEST_CASE("nn.DataParallel on one GPU is the module itself") {
  CHECK(run(resnet50(1, 16)).report.iteration.picoseconds() ==
        run(resnet50(1, 16, "single")).report.iteration.picoseconds());
  CHECK_FALSE(run(resnet50(1, 16)).report.imbalance);
}

std::int64_t most_activations(const Seen& seen, std::size_t rank) {
  Bytes most;
  for (const MemoryMoment& moment : track_memory(seen.run, seen.report.memory.standing, rank))
    most = std::max(most, moment.use.activations);
  return most.count();
}

// All hold weights, gradients and their own activations. Where GPU 0 gathers the outputs, it holds those of all GPUs,
// as many gradients of them, and what their loss keeps, all of it while every other activation is still there. In the
// end it also holds the optimizer's states and the sum of the gradients: S, of which an allocator loses 5 %.
TEST_CASE("nn.DataParallel's GPU 0 holds the optimizer, the sum of gradients and all outputs") {
  const std::int64_t gpus = 4;
  for (const bool gathers : {true, false}) {
    Json given = resnet50(gpus, 16);
    given["training"]["gather_outputs"] = gathers;
    const Seen seen = run(given);
    std::int64_t outputs = 2 * seen.job.output_bytes.count();
    for (const LayerWork& layer : seen.job.layers) outputs += layer.is_loss ? layer.activations.count() : 0;
    REQUIRE(seen.job.output_bytes == Bytes{16 * 1000 * 4});
    CHECK(most_activations(seen, 0) - most_activations(seen, 1) == (gathers ? gpus * outputs : 0));
    REQUIRE(seen.report.imbalance);
    const std::int64_t more =
        seen.report.imbalance->memory.count() - seen.report.imbalance->others_memory.count();
    const std::int64_t kept = state_bytes(seen.job).count() + gradient_bytes(seen.job).count();
    CHECK(std::abs(more - kept - kept / 20) <= 1);
    CHECK(seen.report.memory.peak.total() == seen.report.imbalance->memory);
  }
}

TEST_CASE("nn.DataParallel's GPU 0 computes longer than the others") {
  const Seen seen = run(resnet50(8, 32));
  REQUIRE(seen.report.imbalance);
  CHECK(seen.report.imbalance->busy > seen.report.imbalance->others_busy);
}

// The interpreter runs forward's operators of all n copies one after another, those of the loss apart, which
// runs outside of the copies: no step is shorter than n x operators x the time of one. And waiting for the
// interpreter adds no more than its work to a step in which it needs no time.
TEST_CASE("nn.DataParallel's forward passes through one interpreter") {
  const std::int64_t gpus = 4;
  std::int64_t operators = 0;
  const auto iteration = [&](const char* operator_time) {
    Json given = resnet50(gpus, 16);
    given["training"]["operator_time"] = operator_time;
    const Seen seen = run(given);
    operators = 0;
    for (const LayerWork& layer : seen.job.layers) operators += layer.is_loss ? 0 : layer.forward.launches;
    return seen.report.iteration;
  };
  const Duration free = iteration("0 us");
  const Duration usual = iteration("20 us");
  const Duration slow = iteration("5 ms");
  CHECK(free <= usual);
  CHECK(usual <= slow);
  CHECK(slow >= Duration::milliseconds(5) * operators * gpus);
  CHECK(slow <= Duration::milliseconds(5) * operators * gpus + free);
}

// Nothing overlaps, so GPUs wait for messages only while there are some; the rest of their waiting is for the
// interpreter.
TEST_CASE("nn.DataParallel's GPUs wait for the interpreter as well as for messages") {
  const Report report = run(resnet50(4, 2)).report;
  CHECK(report.breakdown.host_overhead > Duration::zero());
  CHECK(report.breakdown.exposed_communication <= report.communication.total);
}

// What is handed round does not depend on the batch, so it is the small batch that loses.
TEST_CASE("nn.DataParallel is slower than one GPU on a small batch and faster on a large one") {
  for (const std::int64_t batch : {2, 64}) {
    Json four = resnet50(4, batch);
    Json one = resnet50(1, 4 * batch, "single");
    four["model"]["precision"] = one["model"]["precision"] = "amp_fp16";
    const Duration together = run(four).report.iteration;
    const Duration alone = run(one).report.iteration;
    INFO(batch, " images a GPU: ", together.picoseconds(), " ps against ", alone.picoseconds());
    CHECK((together > alone) == (batch == 2));
  }
}

TEST_CASE("nn.DataParallel is never faster than DistributedDataParallel") {
  for (const std::int64_t gpus : {2, 8})
    for (const std::int64_t batch : {4, 64})
      CHECK(run(resnet50(gpus, batch)).report.iteration > run(resnet50(gpus, batch, "ddp")).report.iteration);
}

TEST_CASE("Every micro-batch of nn.DataParallel hands out the model again") {
  Json given = resnet50(4, 16);
  given["training"]["gradient_accumulation"] = 3;
  const Seen seen = run(given);
  CHECK(seen.report.communication.bytes_per_gpu.count() == 3 * 2 * gradient_bytes(seen.job).count());
}

TEST_CASE("nn.DataParallel on two nodes is refused and DDP named") {
  Json given = resnet50(8, 16);
  given["cluster"]["nodes"] = 2;
  CHECK_THROWS_WITH_AS(scenario_from(given), doctest::Contains("valid here: ddp"), ConfigError);
}

}  // namespace lockstep::data_parallel_test
