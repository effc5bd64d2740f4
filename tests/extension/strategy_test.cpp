// A strategy is one file: this one defines two, and the whole program takes them without another edit.

#include <doctest/doctest.h>

#include "sim/report/memory_remedies.h"
#include "sim/report/report_json.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"
#include "tests/support/origins.h"
#include "tests/support/scenarios.h"

namespace lockstep::strategy_test {

using Json = nlohmann::ordered_json;

// ---- as it would stand in sim/training ----

// Every rank's weights are averaged after its step, whole, so many times over.
std::int64_t& rounds_of(TrainingSpec& training) {
  return training.local_sgd.local_steps;  // a place that nobody else uses here
}

class Rumour : public Synchroniser {
 public:
  using Synchroniser::Synchroniser;

  void update() override {
    Synchroniser::update();
    const Bytes weights = gradient_bytes(job_);
    const auto tensors = static_cast<std::uint32_t>(job_.gradients.size());
    for (std::int64_t round = 0; round < job_.training.local_sgd.local_steps; ++round)
      write_wait(context_, "wait for the rumour",
                 write_collective(context_, {.name = "rumour", .bytes = weights, .tensors = tensors},
                                  write_mark(context_)));
  }
};

OptionList rumour_options(TrainingSpec& training) {
  return {{"rumour_rounds", CountOption{rounds_of(training), 1, 1'000'000'000'000}}};
}

std::vector<OptionProblem> rumour_problems(const TrainingSpec&, const ClusterShape& shape) {
  if (shape.ranks() > 1)
    return {};
  return {{"strategy", "found \"rumour\" with nobody to tell; valid here: single"}};
}

TrafficBound rumour_bound(const TrafficInput& input) {
  const auto rounds = static_cast<double>(input.training.local_sgd.local_steps);
  return {.collectives = rounds, .volume = 2 * rounds};
}

const Registration<Strategy> rumour{
    "rumour",
    {.synchroniser = make_synchroniser<Rumour>,
     .description = "weights averaged whole after every step",
     .accepts = {.options = rumour_options,
                 .compressions = {CompressionKind::none, CompressionKind::fp16},
                 .problems = rumour_problems,
                 .batches = "arrive by word of mouth"},
     .sends = {.at_most = rumour_bound}}};

// The same, on GPUs that hold nothing whole.
MemoryShares shares_of_secret(const Job&, std::int64_t ranks) {
  return {.weights = ranks, .gradients = ranks, .states = ranks};
}

const Registration<Strategy> secret{"secret",
                                    {.synchroniser = make_synchroniser<Rumour>,
                                     .description = "a rumour of which each rank knows a part",
                                     .accepts = {.options = rumour_options},
                                     .sends = {.at_most = rumour_bound},
                                     .memory = shares_of_secret,
                                     .partition = Partition::every_weight}};

// ---- what the program makes of it ----

Json resnet50(const std::string& strategy, std::int64_t rounds) {
  Json given;
  given["cluster"] = {{"machine", "dgx_a100_40gb"}};
  given["model"] = {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "fp32"}};
  given["training"] = {{"strategy", strategy}, {"rumour_rounds", rounds}};
  return given;
}

std::string problems_of(const Json& given) {
  try {
    scenario_from(given);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Report report_of(const LoadedScenario& scenario) {
  return summarise(scenario, simulate(scenario));
}

TEST_CASE("its options are read, written and explained, and no other strategy's stand among them") {
  const LoadedScenario scenario = scenario_from(resnet50("rumour", 3));
  const Json& training = scenario.resolved["training"];
  CHECK(training["strategy"] == "rumour");
  CHECK(training["rumour_rounds"] == 3);
  CHECK_FALSE(training.contains("bucket_cap_mb"));
  CHECK_FALSE(training.contains("gradient_clipping"));
  CHECK(origin_at(scenario, "/training/rumour_rounds") == "given");
  CHECK(scenario_from(scenario.resolved).resolved == scenario.resolved);
}

TEST_CASE("what it does not take is refused in its name, and what is its own in the others'") {
  Json given = resnet50("rumour", 1);
  given["training"]["bucket_cap_mb"] = 25;
  CHECK(contains(problems_of(given), "belongs to ddp; this is rumour, which has rumour_rounds"));
  given = resnet50("ddp", 1);
  CHECK(contains(problems_of(given), "belongs to rumour, secret; this is ddp"));
  given = resnet50("rumour", 1);
  given["training"]["compression"] = "topk_1";
  CHECK(contains(problems_of(given), "which rumour does not take; valid: none, fp16"));
  given = resnet50("rumour", 1);
  given["cluster"]["gpus_per_node"] = 1;
  CHECK(contains(problems_of(given), "/training/strategy: found \"rumour\" with nobody to tell"));
  given = resnet50("rumour", 1);
  given["input"] = {{"workers", 2}, {"sample_time", "1 ms"}};
  CHECK(contains(problems_of(given), "with strategy rumour, whose batches arrive by word of mouth"));
}

// 1e12 all-reduces of 100 MB are more than 53 days at any speed; DDP's bound would be a few buckets.
TEST_CASE("its own bound of what it sends is what the clock is held against") {
  CHECK(contains(problems_of(resnet50("rumour", 1'000'000'000'000)), "(53 days)"));
  CHECK(problems_of(resnet50("rumour", 10)).empty());
}

TEST_CASE("its own collectives are simulated and reported: so many rounds of the whole model") {
  const LoadedScenario scenario = scenario_from(resnet50("rumour", 3));
  const Report report = report_of(scenario);
  const Json json = to_json(report, scenario);
  const Bytes weights{4 * parameter_count(scenario.model.model)};
  REQUIRE(json["communication"]["buckets"].size() == 3);
  for (const Json& bucket : json["communication"]["buckets"]) CHECK(bucket["bytes"] == weights.count());
  CHECK(json["scenario"]["training"]["strategy"] == "rumour");
  CHECK(report.breakdown.exposed_communication > Duration::zero());
  CHECK(report.iteration > report_of(scenario_from(resnet50("rumour", 2))).iteration);
}

// 1.56e9 parameters with Adam in fp32 take 16 bytes each, 25 GB, and activations beside.
TEST_CASE("where it does not fit, what divides more is proposed, its own relative among it") {
  Json given = resnet50("rumour", 1);
  given["model"] = {{"name", "gpt2_xl"}, {"batch_per_gpu", 16}, {"precision", "fp32"}};
  given["training"]["optimizer"] = "adamw";
  const std::vector<MemoryRemedy> remedies = find_memory_remedies(
      scenario_from(given),
      [&](const Overrides& changes) { return scenario_from(given, {.overrides = changes}); });
  std::string all;
  for (const MemoryRemedy& remedy : remedies) all += describe(remedy) + "\n";
  CHECK(contains(all, "training.strategy=zero1"));
  CHECK(contains(all, "training.strategy=secret"));
  CHECK_FALSE(contains(all, "training.strategy=rumour"));
}

}  // namespace lockstep::strategy_test
