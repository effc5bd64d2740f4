// What a file states changes its result, or it is told that it does not, and why.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/registry.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/training/strategy.h"
#include "tests/support/scenarios.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::unused_keys_test {

using Json = nlohmann::ordered_json;

Json base(const std::string& strategy) {
  Json json = Json::parse(R"({"cluster": {"machine": "dgx_a100_40gb", "nodes": 2},
                              "model": {"name": "resnet50", "batch_per_gpu": 64, "precision": "amp_fp16"}})");
  json["training"]["strategy"] = strategy;
  if (strategy == "dp" || strategy == "single")
    json["cluster"]["nodes"] = 1;
  if (strategy == "single")
    json["cluster"]["gpus_per_node"] = 1;
  return json;
}

struct Answer {
  Json result;  // but for what it was asked
  Json warnings;
  Json resolved;
};

Answer answer(const Json& given, const Overrides& overrides) {
  const LoadedScenario scenario = scenario_from(given, {.overrides = overrides});
  Json result = to_json(predict(scenario).report, scenario);
  Json warnings = result.value("warnings", Json::array());
  for (const char* asked : {"scenario", "provenance", "warnings", "changes"}) result.erase(asked);
  return {std::move(result), std::move(warnings), scenario.resolved};
}

const Overrides stated{{"communication.timeout", "\"1 us\""},
                       {"communication.overlap", "false"},
                       {"communication.collectives_in_flight", "3"},
                       {"communication.algorithm", "\"tree\""},
                       {"communication.protocol", "\"ll\""},
                       {"communication.channels", "2"},
                       {"compute.slowdown_during_communication", "1.5"},
                       {"compute.memory_format", "\"channels_last\""},
                       {"compute.fp8_recipe", "\"delayed\""},
                       {"compute.rotary_embedding", "\"complex\""},
                       {"compute.autocast", "true"},
                       {"compute.attention_backend", "\"flash_attention_1\""},
                       {"compute.gradient_accumulation_fusion", "true"},
                       {"compute.moe_grouped_gemm", "false"},
                       {"compute.moe_router_fusion", "false"},
                       {"compute.moe_permute_fusion", "false"},
                       {"training.pipeline_schedule", "\"gpipe\""},
                       {"training.batch_p2p_sync", "true"},
                       {"training.accumulate_allreduce_grads_in_fp32", "true"},
                       {"training.sequence_parallel", "true"},
                       {"training.tensor_parallel_overlap", "\"none\""},
                       {"training.keeps_gathered_inputs", "true"},
                       {"training.vocabulary_multiple", "32"},
                       {"training.context_parallel_kind", "\"ulysses\""},
                       {"training.expert_imbalance", "1.5"},
                       {"training.moe_token_dispatcher", "\"allgather\""},
                       {"training.placement", "\"dp-tp-cp-ep-pp\""}};

bool tells_of(const Json& warnings, const std::string& key) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const Json& line) {
    return line.get<std::string>().starts_with(key + " changes nothing: ");
  });
}

TEST_CASE(
    "What is stated beside a strategy changes its result, or is told to change nothing, and never both") {
  for (const auto& [strategy, entry] : Registry<Strategy>::all()) {
    const Json given = base(strategy);
    const Answer usual = answer(given, {});
    for (const auto& change : stated) {
      INFO(strategy, ", ", change.first);
      const Answer changed = answer(given, {change});
      if (changed.resolved == usual.resolved && changed.warnings == usual.warnings)
        continue;  // it is the usual value
      const bool is_same = changed.result == usual.result;
      // A library that cannot do what is asked for says so by itself.
      const bool is_told = tells_of(changed.warnings, change.first) ||
                           (is_same && changed.warnings.size() > usual.warnings.size());
      CHECK(is_same == is_told);
    }
  }
}

TEST_CASE("DistributedDataParallel's options are told to change nothing on one GPU, and change nothing") {
  const Answer usual = answer(base("single"), {});
  for (const auto& [key, value] : Overrides{{"training.bucket_cap_mb", "1"},
                                            {"training.first_bucket_mb", "5"},
                                            {"training.broadcast_buffers", "false"},
                                            {"training.gradient_as_bucket_view", "true"},
                                            {"training.find_unused_parameters", "true"},
                                            {"training.static_graph", "true"},
                                            {"training.compression", "\"fp16\""}}) {
    INFO(key);
    const Answer changed = answer(base("single"), {{key, value}});
    CHECK(changed.result == usual.result);
    CHECK(changed.warnings == Json{key + " changes nothing: one GPU sends nothing"});
  }
}

TEST_CASE("Of a measured step what its transfer tells is not told to change nothing") {
  Json given = base("ddp");
  given["compute"]["single_gpu_iteration"] = "30 ms";
  for (const auto& change : stated) {
    INFO(change.first);
    const Answer changed = answer(given, {change});
    const bool is_same = changed.result == answer(given, {}).result;
    CHECK((is_same || !tells_of(changed.warnings, change.first)));
  }
}

TEST_CASE("A scenario with every default written out is told of no key that changes nothing") {
  for (const std::string& file : shipped_scenarios()) {
    INFO(file);
    const LoadedScenario scenario = load({.path = file});
    const LoadedScenario again =
        load_value(scenario.resolved, {.store = shipped_profiles(), .file_name = file, .folder = ""});
    for (const LoadedScenario* loaded : {&scenario, &again})
      for (const std::string& warning : loaded->warnings)
        CHECK(warning.find("changes nothing") == std::string::npos);
  }
}

TEST_CASE("A key of a layout is told to change nothing where its dimension is one rank wide, by its name") {
  const Json given = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 1},
      "model": {"name": "llama2_7b", "precision": "bf16"},
      "training": {"strategy": "ddp", "micro_batch": 1, "tensor_parallel": 2, "sequence_parallel": true, "pipeline_parallel": 2,
                   "gradient_accumulation": 4, "pipeline_schedule": "gpipe", "expert_imbalance": 1.5}})");
  CHECK(scenario_from(given).warnings ==
        std::vector<std::string>{"training.expert_imbalance changes nothing: training.expert_parallel is 1"});
}

TEST_CASE("Padded experts compute as many tokens whatever comes, and what pads them is no use of the GPU") {
  const auto predicted = [](double capacity, double imbalance) {
    return predict(scenario_from(
        {{"cluster", {{"machine", "dgx_a100_80gb"}, {"nodes", 1}}},
         {"model",
          {{"name", "mixtral_8x7b"}, {"precision", "bf16"}, {"layers", 4}, {"capacity_factor", capacity}}},
         {"training",
          {{"strategy", "zero1"},
           {"micro_batch", 1},
           {"expert_parallel", 8},
           {"expert_imbalance", imbalance}}}}));
  };
  const Prediction even = predicted(1, 1);
  const Prediction uneven = predicted(1, 2);
  CHECK(uneven.report.iteration == even.report.iteration);
  const std::vector<std::string>& warnings = uneven.report.warnings;
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& line) {
    return line.starts_with("training.expert_imbalance changes nothing: model.capacity_factor pads");
  }));
  const Prediction padded = predicted(2, 1);
  const double slower = padded.report.iteration.in_seconds() / even.report.iteration.in_seconds();
  CHECK(slower > 1.1);
  CHECK(*padded.report.throughput.mfu * slower == doctest::Approx(*even.report.throughput.mfu).epsilon(1e-6));
}

TEST_CASE(
    "What is gathered, and what balances experts, is told to change nothing where nothing is or a kernel "
    "does") {
  const Json dense = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 1},
      "model": {"name": "llama2_7b", "precision": "bf16"},
      "training": {"strategy": "ddp", "micro_batch": 1, "tensor_parallel": 2, "keeps_gathered_inputs": true}})");
  CHECK(scenario_from(dense).warnings ==
        std::vector<std::string>{
            "training.keeps_gathered_inputs changes nothing: training.sequence_parallel is false: "
            "nothing is gathered"});
  Json mixture = Json::parse(R"({"cluster": {"machine": "dgx_h100", "nodes": 1},
      "model": {"name": "mixtral_8x7b", "precision": "bf16", "moe_router_load_balancing_type": "sinkhorn"},
      "training": {"strategy": "zero1", "micro_batch": 1, "expert_parallel": 8}})");
  for (const bool fuses : {true, false}) {
    mixture["compute"]["moe_router_fusion"] = fuses;
    const std::vector<std::string> warnings = scenario_from(mixture).warnings;
    CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& line) {
            return line.starts_with("model.moe_router_load_balancing_type changes nothing: ");
          }) == fuses);
  }
}

}  // namespace lockstep::unused_keys_test
