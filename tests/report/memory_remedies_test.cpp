#include "sim/report/memory_remedies.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/report/report.h"
#include "tests/support/scenarios.h"

namespace lockstep::memory_remedies_test {

using Json = nlohmann::ordered_json;

Json stated_on_a100(const std::string& model, std::int64_t batch, const Json& training) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}}},
          {"model", {{"name", model}, {"batch_per_gpu", batch}, {"precision", "bf16"}}},
          {"training", training}};
}

LoadedScenario on_a100(const std::string& model, std::int64_t batch, const Json& training) {
  return scenario_from(stated_on_a100(model, batch, training));
}

std::vector<MemoryRemedy> remedies_of(const Json& stated) {
  return find_memory_remedies(scenario_from(stated), [&](const Overrides& changes) {
    return scenario_from(stated, {.overrides = changes});
  });
}

const MemoryRemedy* find(const std::vector<MemoryRemedy>& remedies, const std::string& change) {
  const auto found = std::find_if(remedies.begin(), remedies.end(), [&](const MemoryRemedy& remedy) {
    return describe(remedy).starts_with(change);
  });
  return found == remedies.end() ? nullptr : &*found;
}

Bytes peak_with(const Scenario& scenario) {
  return summarise(scenario, simulate(scenario)).memory.peak.total();
}

// GPT-2 XL with DDP: 1.56e9 parameters, 2 + 2 + 2 (buckets) + 8 bytes each, 22 GiB; at 16 sequences of 1024
// tokens the activations alone are more than what is left.
TEST_CASE("a remedy's total is what the changed scenario takes") {
  const Json training{{"strategy", "ddp"}, {"optimizer", "adamw"}};
  const LoadedScenario scenario = on_a100("gpt2_xl", 16, training);
  REQUIRE(peak_with(scenario) > scenario.cluster.gpu.memory);
  const std::vector<MemoryRemedy> remedies = remedies_of(stated_on_a100("gpt2_xl", 16, training));
  const MemoryRemedy* full = find(remedies, "training.recompute=full");
  REQUIRE(full != nullptr);
  CHECK(
      full->total.count() ==
      peak_with(on_a100("gpt2_xl", 16, {{"strategy", "ddp"}, {"optimizer", "adamw"}, {"recompute", "full"}}))
          .count());
  const MemoryRemedy* halved = find(remedies, "model.batch_per_gpu=8 training.gradient_accumulation=2");
  REQUIRE(halved != nullptr);
  CHECK(halved->total.count() ==
        peak_with(on_a100("gpt2_xl", 8,
                          {{"strategy", "ddp"}, {"optimizer", "adamw"}, {"gradient_accumulation", 2}}))
            .count());
  const MemoryRemedy* zero2 = find(remedies, "training.strategy=zero2");
  REQUIRE(zero2 != nullptr);
  CHECK(zero2->total.count() ==
        peak_with(on_a100("gpt2_xl", 16, {{"strategy", "zero2"}, {"optimizer", "adamw"}})).count());
}

TEST_CASE("remedies are tried in order: recompute, partition, halve") {
  const std::vector<MemoryRemedy> remedies =
      remedies_of(stated_on_a100("gpt2_xl", 16, {{"strategy", "ddp"}, {"optimizer", "adamw"}}));
  std::size_t place = 0;
  for (const char* change : {"training.recompute=selective", "training.recompute=full",
                             "training.strategy=zero1", "training.strategy=zero2", "training.strategy=zero3",
                             "training.strategy=fsdp", "model.batch_per_gpu=8"}) {
    REQUIRE(place < remedies.size());
    CHECK(describe(remedies[place++]).starts_with(change));
  }
}

TEST_CASE("what a strategy already does is no remedy for it") {
  const std::vector<MemoryRemedy> remedies = remedies_of(
      stated_on_a100("llama2_13b", 8, {{"strategy", "zero3"}, {"optimizer", "adamw"}, {"recompute", "full"}}));
  CHECK(find(remedies, "training.strategy") == nullptr);
  CHECK(find(remedies, "training.recompute") == nullptr);
}

// 405e9 parameters in bf16 with Adam: 16 bytes each, 6.5 TB, are too much for 8 GPUs of 80 GiB in any layout,
// and not too much for enough of them: all their memory together is at least that.
TEST_CASE("a model that is too large for the cluster is told how many nodes would hold it") {
  const std::vector<MemoryRemedy> remedies = remedies_of(Json(
      {{"cluster", {{"machine", "dgx_h100"}}},
       {"model",
        {{"name", "llama3_405b"}, {"batch_per_gpu", 1}, {"precision", "bf16"}, {"sequence_length", 1024}}},
       {"training", {{"strategy", "ddp"}, {"optimizer", "adamw"}}}}));
  REQUIRE(!remedies.empty());
  const MemoryRemedy& last = remedies.back();
  CHECK(describe(last).find("cluster.nodes=") != std::string::npos);
  CHECK(last.fits);
  for (const MemoryRemedy& remedy : remedies) CHECK((&remedy == &last || !remedy.fits));
  CHECK(last.changes.back().first == "cluster.nodes");
  const std::int64_t nodes = std::stoll(last.changes.back().second);
  CHECK(nodes * 8 * last.total.count() >= 16 * 405'000'000'000);
}

// One block of 12 x 42,000^2 = 21e9 parameters: 42 GB in bf16 where it is gathered, and a GPU has 40 GiB (43 GB)
// of which activations and its part of the states take more than one.
TEST_CASE("a single layer that is too large fits in no layout, and the numbers say so") {
  const Json one_block{{"family", "transformer"}, {"layers", 1},       {"hidden", 42'000},
                       {"heads", 420},            {"ffn", 168'000},    {"vocabulary", 1000},
                       {"sequence_length", 128},  {"batch_per_gpu", 1}, {"precision", "bf16"}};
  const Json stated{{"cluster", {{"machine", "dgx_a100_40gb"}}},
                    {"model", one_block},
                    {"training", {{"strategy", "fsdp"}, {"optimizer", "adamw"}}}};
  const LoadedScenario scenario = scenario_from(stated);
  const std::vector<MemoryRemedy> remedies = remedies_of(stated);
  REQUIRE_FALSE(remedies.empty());
  for (const MemoryRemedy& remedy : remedies) CHECK_FALSE(remedy.fits);
  CHECK(describe_hopelessness(remedies, scenario.cluster.gpu.memory).find("fits in no layout") !=
        std::string::npos);
}

// The same model on GPUs of 40 GiB: the root unit, three of its blocks and a block's gradients do not fit
// however many ranks there are.
TEST_CASE("what no number of ranks divides is named where it is too much") {
  const std::vector<MemoryRemedy> remedies =
      remedies_of(stated_on_a100("llama3_405b", 1, {{"strategy", "ddp"}, {"optimizer", "adamw"}}));
  REQUIRE(!remedies.empty());
  CHECK(remedies.back().is_at_any_scale);
  CHECK_FALSE(remedies.back().fits);
}

TEST_CASE("where a remedy helps there is no word of hopelessness") {
  CHECK(describe_hopelessness({{.changes = {}, .total = Bytes{5}, .fits = true}}, Bytes{6}) == "");
  CHECK(describe_hopelessness({{.changes = {}, .total = Bytes{7}, .fits = false}}, Bytes{6}) != "");
}

}  // namespace lockstep::memory_remedies_test
