// What a rank sends in an iteration is what is published of its strategy.
//
// S: the bytes of all gradients; W: of all weights; n: ranks. ddp and horovod 2(n-1)/n S (Patarasuk and Yuan 2009); zero1
// and zero2 (n-1)/n (S + W), the same where both have one type, but (n-1)/n (2 S + W) where gradients are all-reduced
// as in DeepSpeed and in ColossalAI's stage 1; zero3 and fsdp (n-1)/n (2 W + S), three
// halves of it (Rajbhandari et al. 2020, section 7), but for FSDP's root unit, which is not gathered again
// for backward; hsdp with s ranks to a copy 3 (s-1)/s S within it and 2 (n/s-1)/(n/s) of S/s between the copies
// (Zhao et al. 2023, section 3.2.2); local SGD what ddp sends, once in k steps.

#include <doctest/doctest.h>

#include "sim/training/units.h"
#include "tests/support/scenarios.h"

namespace lockstep::volume_test {

using Json = nlohmann::ordered_json;

Json gpt2(const std::string& strategy, std::int64_t nodes, std::int64_t gpus) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", nodes}, {"gpus_per_node", gpus}}},
          {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}},
          {"training", {{"strategy", strategy}}}};
}

struct Measured {
  std::int64_t sent;
  std::int64_t gradients;  // bytes
  std::int64_t root;       // bytes of the root unit
  std::int64_t tensors;
};

Measured measure(const Json& given) {
  const Scenario scenario = scenario_from(given);
  const Simulation simulation = simulate(scenario);
  const Job& job = simulation.job;
  return {.sent = summarise(scenario, simulation).communication.bytes_per_gpu.count(),
          .gradients = gradient_bytes(job).count(),
          .root = find_units(job, {}).units.front().elements * weight_bytes(job),
          .tensors = static_cast<std::int64_t>(job.gradients.size())};
}

struct Volume {
  std::int64_t whole;     // so often S
  std::int64_t root = 0;  // less so often the root unit
  std::int64_t per = 1;   // once in so many iterations
};

// But for a rounding of each message and its padding to n equal parts.
void check_volume(const Json& given, std::int64_t ranks, const Volume& volume) {
  const Measured measured = measure(given);
  const std::int64_t bytes = volume.whole * measured.gradients - volume.root * measured.root;
  const std::int64_t published = bytes * (ranks - 1) / ranks / volume.per;
  const std::int64_t messages = volume.whole * measured.tensors;
  INFO(given["training"].dump(), " on ", ranks, " ranks: ", measured.sent, " against ", published);
  CHECK(measured.sent >= published - messages);
  CHECK(measured.sent <= published + messages * 2 * ranks);
}

TEST_CASE("DDP, Horovod, ZeRO and FSDP send what is published of them") {
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, std::pair{1, 2}, std::pair{1, 8}, std::pair{2, 8}}) {
    const std::int64_t ranks = nodes * gpus;
    check_volume(gpt2("ddp", nodes, gpus), ranks, {.whole = 2});
    check_volume(gpt2("horovod", nodes, gpus), ranks, {.whole = 2});
    check_volume(gpt2("zero1", nodes, gpus), ranks, {.whole = 3});
    check_volume(gpt2("zero2", nodes, gpus), ranks, {.whole = 3});
    check_volume(gpt2("fsdp", nodes, gpus), ranks, {.whole = 3, .root = 1});
    Json zero3 = gpt2("zero3", nodes, gpus);
    // GPT-2 is smaller than the distance at which DeepSpeed keeps weights for their next use.
    zero3["training"]["stage3_max_reuse_distance"] = 0;
    zero3["training"]["stage3_param_persistence_threshold"] = 0;
    check_volume(zero3, ranks, {.whole = 3});
  }
}

TEST_CASE("ZeRO sends what its framework does with gradients") {
  const auto check = [](const char* strategy, const Json& training, const Volume& volume) {
    Json given = gpt2(strategy, 2, 8);
    given["training"].update(training);
    check_volume(given, 16, volume);
  };
  for (const char* strategy : {"zero1", "zero2"}) {
    check(strategy, {{"framework", "deepspeed"}, {"use_multi_rank_bucket_allreduce", false}}, {.whole = 2});
    check(strategy, {{"framework", "deepspeed"}, {"reduce_scatter", false}}, {.whole = 3});
    check(strategy, {{"framework", "hf_trainer"}}, {.whole = 3});
  }
  check("zero1", {{"framework", "colossalai"}}, {.whole = 3});
  check("zero2", {{"framework", "colossalai"}}, {.whole = 2});
  check("zero1", {{"framework", "megatron"}, {"communication_data_type", "bf16"}}, {.whole = 2});
}

// The root unit stays gathered from forward to backward and is not gathered twice.
TEST_CASE("FSDP gathers the root once, and without resharding every unit once") {
  Json kept = gpt2("fsdp", 1, 8);
  kept["training"]["reshard_after_forward"] = false;
  check_volume(kept, 8, {.whole = 2});
}

// The root's gather is left out of one of the three: W_root.
TEST_CASE("Hybrid sharding sends whole weights within its groups and shards between them") {
  for (const auto& [nodes, gpus] : {std::pair{1, 8}, std::pair{2, 8}, std::pair{4, 4}}) {
    const std::int64_t ranks = nodes * gpus;
    for (std::int64_t shard = 1; shard <= ranks; shard *= 2) {
      Json given = gpt2("hsdp", nodes, gpus);
      given["training"]["shard_group"] = shard;
      const Measured measured = measure(given);
      const std::int64_t copies = ranks / shard;
      const std::int64_t within = (3 * measured.gradients - measured.root) * (shard - 1) / shard;
      const std::int64_t between = 2 * measured.gradients / shard * (copies - 1) / copies;
      const std::int64_t messages = 4 * measured.tensors;
      INFO(shard, " of ", ranks, ": ", measured.sent, " against ", within + between);
      CHECK(measured.sent >= within + between - messages);
      CHECK(measured.sent <= within + between + messages * 2 * ranks);
    }
  }
}

// fully_shard: what is spread over g ranks after forward is gathered again from these, (g-1)/g S instead of
// (n-1)/n S.
TEST_CASE("Resharding to some ranks gathers from these in backward") {
  for (const std::int64_t group : {2, 4, 8}) {
    Json given = gpt2("fsdp", 2, 8);
    given["training"]["fsdp_version"] = 2;
    given["training"]["reshard_after_forward"] = group;
    const Measured measured = measure(given);
    const std::int64_t all = 2 * measured.gradients * 15 / 16;
    const std::int64_t again = (measured.gradients - measured.root) * (group - 1) / group;
    INFO(group, ": ", measured.sent, " against ", all + again);
    CHECK(measured.sent >= all + again - 3 * measured.tensors);
    CHECK(measured.sent <= all + again + 3 * measured.tensors * 32);
  }
}

TEST_CASE("Accumulating micro-batches multiplies what must be sent each time") {
  const std::vector<std::pair<std::string, Volume>> strategies{{"ddp", {.whole = 2}},
                                                               {"zero1", {.whole = 3}},
                                                               {"zero2", {.whole = 9}},
                                                               {"fsdp", {.whole = 12, .root = 4}}};
  for (const auto& [strategy, volume] : strategies) {
    Json given = gpt2(strategy, 1, 8);
    given["training"]["gradient_accumulation"] = 4;
    check_volume(given, 8, volume);
  }
}

TEST_CASE("Local SGD sends 1/k of what DDP sends") {
  for (const std::int64_t steps : {1, 2, 5}) {
    Json given = gpt2("local_sgd", 1, 8);
    given["training"]["local_steps"] = steps;
    check_volume(given, 8, {.whole = 2, .per = steps});
  }
}

}  // namespace lockstep::volume_test
