// What an iteration takes at most, as load has it before anything is built, against what is simulated.

#include "sim/load/time_bound.h"

#include <string>
#include <vector>

#include "sim/training/strategy.h"
#include "tests/support/property.h"
#include "tests/support/scenarios.h"

namespace lockstep::time_bound_test {

using Json = nlohmann::ordered_json;

// Narrow or wide, with few words or many, dense or a mixture: embeddings may outweigh all blocks.
Json drawn_model(bool has_experts) {
  Json model{{"family", "transformer"},
             {"style", has_experts ? "llama" : "gpt2"},
             {"layers", *rc::gen::element(4, 6, 8)},
             {"hidden", *rc::gen::element(64, 256, 1024)},
             {"heads", 8},
             {"vocabulary", *rc::gen::element(1'024, 50'257, 256'000)},
             {"sequence_length", *rc::gen::element(128, 1'024)},
             {"attention", *rc::gen::element<std::string>("fused", "unfused")},
             {"precision", *rc::gen::element<std::string>("fp32", "bf16", "amp_fp16")}};
  if (has_experts)
    model.update({{"experts", 8}, {"experts_per_token", 2}});
  return model;
}

std::vector<Json> layouts() {
  return {Json::object(),
          {{"tensor_parallel", 2}},
          {{"tensor_parallel", 8}, {"sequence_parallel", true}},
          {{"context_parallel", 2}, {"context_parallel_kind", "ring"}},
          {{"context_parallel", 4}, {"context_parallel_kind", "all_gather"}, {"tensor_parallel", 2}},
          {{"expert_parallel", 4}, {"expert_imbalance", 1.5}},
          {{"expert_parallel", 8},
           {"expert_tensor_parallel", 1},
           {"tensor_parallel", 4},
           {"sequence_parallel", true}},
          {{"pipeline_parallel", 4}},
          {{"pipeline_parallel", 2}, {"tensor_parallel", 2}, {"pipeline_schedule", "gpipe"}},
          {{"pipeline_parallel", 2}, {"virtual_stages", 2}},
          {{"pipeline_parallel", 2}, {"pipeline_schedule", "zb_v"}, {"tensor_parallel", 4}},
          {{"pipeline_parallel", 4}, {"pipeline_schedule", "zb_h2"}, {"placement", "pp-dp-tp-cp-ep"}}};
}

Json drawn_scenario() {
  Json training = *rc::gen::elementOf(layouts());
  training["strategy"] = *rc::gen::elementOf(strategies_in_order());
  training["micro_batch"] = *rc::gen::element(1, 4);
  training["gradient_accumulation"] = *rc::gen::element(1, 2, 8);
  training["recompute"] =
      *rc::gen::element<std::string>("none", "selective", "selective_op", "full", "one_in_2");
  training["optimizer"] = *rc::gen::element<std::string>("sgd", "adam", "lamb");
  for (const char* wait : {"broadcast_data_sync", "check_for_nan_in_loss"})
    training[wait] = *rc::gen::arbitrary<bool>();
  const bool has_experts = training.contains("expert_parallel");
  return {{"name", "bound"},
          {"cluster",
           {{"machine", *rc::gen::element<std::string>("dgx_a100_80gb", "dgx1_v100", "dgx_h100")},
            {"nodes", *rc::gen::element(1, 2)}}},
          {"model", drawn_model(has_experts)},
          {"training", training},
          {"compute",
           {{"kernels", *rc::gen::element<std::string>("eager", "fused", "compiled", "primitives")},
            {"optimizer_kernels",
             *rc::gen::element<std::string>("foreach", "fused", "for_loop", "per_tensor", "primitives")},
            {"modules", *rc::gen::element<std::string>("torch", "megatron", "megatron_core")},
            {"cross_entropy_loss_fusion", *rc::gen::arbitrary<bool>()}}}};
}

std::optional<LoadedScenario> loaded(const Json& given) {
  try {
    return scenario_from(given);
  } catch (const ConfigError&) {
    return std::nullopt;  // these do not go together
  }
}

TEST_CASE("No iteration takes longer than its bound, whatever its strategy, layout and recomputation") {
  int simulated = 0;
  check_for_all(600, "bounds of time", [&] {
    const Json given = drawn_scenario();
    const auto scenario = loaded(given);
    if (!scenario)
      return;
    ++simulated;
    const Report report = summarise(*scenario, simulate(*scenario));
    if (report.iteration.in_seconds() > longest_iteration(*scenario))
      RC_FAIL(given.dump());
  });
  CHECK(simulated > 100);
}

// 256 micro-batches of 32 layers over rings: half a million steps, each a few kernels and a message.
TEST_CASE("The clock holds a ring of 64 ranks, whose host issues every kernel") {
  CHECK(loaded({{"name", "long rings"},
                {"cluster", {{"machine", "dgx_h100"}, {"nodes", 8}}},
                {"model", {{"name", "mixtral_8x7b"}, {"sequence_length", 4096}, {"precision", "bf16"}}},
                {"training",
                 {{"strategy", "zero1"},
                  {"framework", "megatron"},
                  {"context_parallel", 64},
                  {"expert_parallel", 8},
                  {"micro_batch", 1},
                  {"global_batch", 256}}},
                {"compute", {{"kernels", "fused"}}}}));
}

}  // namespace lockstep::time_bound_test
