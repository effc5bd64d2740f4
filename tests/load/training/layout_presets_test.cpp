// Each framework's defaults of a layout against what its source states, and what it has none of.

#include "sim/load/training/layout_presets.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/base/error.h"
#include "sim/base/registry.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "tests/support/cut_transformer.h"
#include "tests/support/scenarios.h"

namespace lockstep::layout_presets_test {

using Json = nlohmann::ordered_json;

Json cut_model(const Json& training) {
  Json all{
      {"micro_batch", 1}, {"gradient_accumulation", 4}, {"tensor_parallel", 2}, {"pipeline_parallel", 2}};
  all.update(training);
  return cut_transformer("dgx_a100_80gb", 2, all);
}

LoadedScenario loaded(const Json& training) {
  return scenario_from(cut_model(training));
}

std::string problem_of(const Json& training) {
  try {
    loaded(training);
  } catch (const ConfigError& error) {
    return error.problems.front();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// megatron/core/parallel_state.py: order tp-cp-ep-dp-pp; model_parallel_config.py: sequence_parallel false,
// tp_comm_overlap false; training/arguments.py: make_vocab_size_divisible_by 128, cp_comm_type p2p.
TEST_CASE("megatron cuts as Megatron Core does") {
  const Layout layout = loaded({{"framework", "megatron"}, {"strategy", "zero1"}}).training.layout;
  CHECK(text_of(layout.placement) == "tp-cp-ep-dp-pp");
  CHECK(layout.schedule == "1f1b");
  CHECK_FALSE(layout.degrees.sequence_parallel);
  CHECK_FALSE(layout.degrees.keeps_gathered_inputs);
  CHECK(layout.degrees.tensor_overlap == TensorOverlap::backward);
  CHECK(layout.degrees.context_kind == ContextKind::ring);
  CHECK(layout.degrees.vocabulary_multiple == 128);
}

// nemo/collections/llm/recipes: grad_reduce_in_fp32, overlap_grad_reduce and overlap_param_gather true.
TEST_CASE("nemo overlaps what Megatron Core alone does not") {
  const TrainingSpec nemo = loaded({{"framework", "nemo"}}).training;
  const TrainingSpec megatron = loaded({{"framework", "megatron"}, {"strategy", "zero1"}}).training;
  CHECK(nemo.strategy == "zero1");
  CHECK(nemo.zero.overlap_comm);
  CHECK(nemo.zero.overlap_param_gather);
  CHECK(nemo.zero.communication_data_type == Precision::fp32);
  CHECK_FALSE(megatron.zero.overlap_comm);
  CHECK_FALSE(megatron.zero.overlap_param_gather);
}

// torchtitan: apply_tp divides the sequence; apply_fsdp: fully_shard, bf16 parameters, fp32 reduction, whole
// between passes of a pipeline; job_config.py: 1F1B, asynchronous tensor parallelism off, keys gathered.
TEST_CASE("torchtitan divides sequences, reduces in fp32 and keeps units whole in a pipeline") {
  const TrainingSpec cut = loaded({{"framework", "torchtitan"}}).training;
  CHECK(cut.strategy == "fsdp");
  CHECK(cut.sharded.version == 2);
  CHECK(cut.sharded.reshard_group == 1);
  CHECK(cut.sharded.no_sync);
  CHECK(cut.sharded.param_dtype == Precision::bf16);
  CHECK(cut.sharded.reduce_dtype == Precision::fp32);
  CHECK(cut.layout.degrees.sequence_parallel);
  CHECK(cut.layout.degrees.keeps_gathered_inputs);
  CHECK(cut.layout.degrees.tensor_overlap == TensorOverlap::none);
  CHECK(cut.layout.degrees.vocabulary_multiple == 1);
  CHECK(cut.layout.degrees.context_kind == ContextKind::rotate_all_gather);
  const TrainingSpec plain = loaded({{"framework", "torchtitan"}, {"pipeline_parallel", 1}}).training;
  CHECK(plain.sharded.reshard_group == plain.sharded.shard_group);
  CHECK_FALSE(plain.sharded.no_sync);
}

// colossalai/booster/plugin/hybrid_parallel_plugin.py: mesh of dp, pp, tp, sp; make_vocab_size_divisible_by 64.
TEST_CASE("colossalai puts stages of a copy nearer than copies") {
  const Layout layout = loaded({{"framework", "colossalai"}, {"strategy", "zero1"}}).training.layout;
  CHECK(text_of(layout.placement) == "cp-tp-pp-ep-dp");
  CHECK(layout.degrees.vocabulary_multiple == 64);
  CHECK(layout.degrees.context_kind == ContextKind::ulysses);
}

TEST_CASE("What is stated stands over a framework's default, and every default tells its source") {
  const LoadedScenario stated = loaded(
      {{"framework", "torchtitan"}, {"sequence_parallel", false}, {"tensor_parallel_overlap", "pieces"}});
  CHECK_FALSE(stated.training.layout.degrees.sequence_parallel);
  CHECK(stated.training.layout.degrees.tensor_overlap == TensorOverlap::pieces);
  for (const char* framework : {"megatron", "nemo", "deepspeed", "colossalai"}) {
    const LoadedScenario scenario = loaded({{"framework", framework}, {"strategy", "zero1"}});
    for (const char* key : {"placement", "pipeline_schedule", "sequence_parallel", "tensor_parallel_overlap",
                            "vocabulary_multiple", "keeps_gathered_inputs"}) {
      INFO(framework, " ", key);
      CHECK(
          contains(scenario.provenance.at(std::string("/training/") + key).get<std::string>(), "default ("));
    }
  }
}

TEST_CASE("What a framework that is named does not have is refused with what it has") {
  CHECK(
      contains(problem_of({{"framework", "megatron"}, {"strategy", "zero1"}, {"pipeline_schedule", "zb_h1"}}),
               "megatron 0.13 does not have; valid with it: 1f1b, interleaved"));
  CHECK(contains(problem_of({{"framework", "torchtitan"}, {"pipeline_schedule", "zb_h2"}}),
                 "valid with it: 1f1b, gpipe, interleaved, zb_h1, zb_v"));
  CHECK(
      contains(problem_of({{"framework", "deepspeed"}, {"strategy", "zero2"}}), "valid with it: ddp, zero1"));
  CHECK(
      contains(problem_of({{"framework", "torchtitan"}, {"strategy", "ddp"}}), "valid with it: fsdp, hsdp"));
  CHECK(contains(problem_of({{"framework", "torchtitan"}, {"tensor_parallel_overlap", "backward"}}),
                 "valid with it: none, pieces"));
  const Json ring{{"framework", "deepspeed"},
                  {"strategy", "zero1"},
                  {"context_parallel", 2},
                  {"context_parallel_kind", "ring"}};
  CHECK(contains(problem_of(ring), "valid with it: ulysses"));
  CHECK(contains(problem_of({{"framework", "megatron"},
                             {"framework_version", "0.4"},
                             {"strategy", "zero1"},
                             {"context_parallel", 2}}),
                 "no context parallelism"));
}

TEST_CASE("A framework that nobody named refuses nothing") {
  CHECK(problem_of({{"strategy", "zero2"}, {"pipeline_schedule", "zb_h1"}}) == "");
  CHECK(problem_of({{"strategy", "zero1"}, {"pipeline_schedule", "zb_h2"}}) == "");
}

// Named, it would refuse the schedule.
TEST_CASE("A framework that nobody named and that lacks the schedule stays unnamed when all is written out") {
  for (const auto& [schedule, pipeline] : Registry<PipelineSchedule>::all()) {
    Json training{
        {"strategy", "zero1"}, {"pipeline_schedule", schedule}, {"virtual_stages", pipeline.chunks.least}};
    if (schedule == "combined_1f1b")
      continue;  // of experts
    INFO(schedule);
    const LoadedScenario first = loaded(training);
    const LoadedScenario again = load({.text = first.resolved.dump()});
    CHECK(again.resolved == first.resolved);
    CHECK(first.resolved["training"].contains("framework") == (schedule == "1f1b"));
  }
}

}  // namespace lockstep::layout_presets_test
