// Each framework's defaults against the numbers that its own source or documentation states.

#include "sim/load/training/framework_presets.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/load/training/family_options.h"
#include "sim/training/strategy.h"
#include "tests/support/scenarios.h"

namespace lockstep::framework_presets_test {

constexpr std::int64_t mebi = 1024 * 1024;
constexpr TrainingFacts two_nodes{.nodes = 2, .gpus_per_node = 8, .precision = Precision::bf16};

struct Filled {
  TrainingSpec spec;
  OptionNotes notes;
};

Filled fill(std::string framework, std::string strategy, const TrainingFacts& facts = two_nodes,
            std::string version = "") {
  Filled filled;
  filled.spec.strategy = std::move(strategy);
  filled.spec.framework = std::move(framework);
  filled.spec.framework_version =
      version.empty() ? std::string(find_preset(filled.spec.framework)->default_version) : version;
  filled.notes = apply_preset(filled.spec, facts);
  return filled;
}

// pytorch/pytorch, torch/nn/parallel/distributed.py: bucket_cap_mb None means 25, gradient_as_bucket_view,
// static_graph and find_unused_parameters False, broadcast_buffers True; c10d: first bucket 1 MiB;
// powerSGD_hook: start_powerSGD_iter 1000.
TEST_CASE("pytorch_ddp has DistributedDataParallel's defaults") {
  const DdpOptions ddp = fill("pytorch_ddp", "ddp").spec.ddp;
  CHECK(ddp.bucket_cap == Bytes{25 * mebi});
  CHECK(ddp.first_bucket == Bytes{mebi});
  CHECK_FALSE(ddp.gradient_as_bucket_view);
  CHECK_FALSE(ddp.static_graph);
  CHECK_FALSE(ddp.find_unused_parameters);
  CHECK(ddp.broadcast_buffers);
  CHECK(ddp.powersgd_start_iteration == 1000);
}

// torch/distributed/algorithms/model_averaging/averagers.py: the example has period=4; parameters only.
TEST_CASE("pytorch_ddp averages every fourth step in local SGD, parameters only") {
  const Filled local = fill("pytorch_ddp", "local_sgd");
  CHECK(local.spec.local_sgd.local_steps == 4);
  CHECK_FALSE(local.spec.local_sgd.average_momentum);
}

// torch/nn/parallel/data_parallel.py: outputs are gathered on device 0.
TEST_CASE("pytorch_dp gathers outputs on the first GPU") {
  CHECK(fill("pytorch_dp", "dp").spec.data_parallel.gather_outputs);
}

// torch/distributed/fsdp/fully_sharded_data_parallel.py: BACKWARD_PRE, forward_prefetch False,
// limit_all_gathers True (False in 1.13), FULL_SHARD; MixedPrecision: reduce_dtype None is param_dtype.
TEST_CASE("pytorch_fsdp has FullyShardedDataParallel's defaults") {
  const ShardedOptions fsdp = fill("pytorch_fsdp", "fsdp").spec.sharded;
  CHECK(fsdp.version == 1);
  CHECK(fsdp.backward_prefetch == BackwardPrefetch::pre);
  CHECK_FALSE(fsdp.forward_prefetch);
  CHECK(fsdp.limit_all_gathers);
  CHECK(fsdp.shard_group == 2 * 8);
  CHECK(fsdp.reshard_group == fsdp.shard_group);
  CHECK(fsdp.param_dtype == Precision::bf16);
  CHECK(fsdp.reduce_dtype == fsdp.param_dtype);
  CHECK_FALSE(fill("pytorch_fsdp", "fsdp", two_nodes, "1.13").spec.sharded.limit_all_gathers);
}

// Sharding over the GPUs of a node, replicas between nodes: HYBRID_SHARD in the same file.
TEST_CASE("pytorch_fsdp shards within a node under hsdp") {
  CHECK(fill("pytorch_fsdp", "hsdp").spec.sharded.shard_group == 8);
}

// DeepSpeed, deepspeed/runtime/zero/config.py: reduce_bucket_size and allgather_bucket_size 5e8 elements,
// overlap_comm true for stage 3 only, contiguous_gradients and reduce_scatter true,
// stage3: prefetch 5e7, persistence 1e5, max_live 1e9, max_reuse 1e9.
TEST_CASE("deepspeed has the defaults of its zero_optimization") {
  for (const char* stage : {"zero1", "zero2", "zero3"}) {
    const ZeroOptions zero = fill("deepspeed", stage).spec.zero;
    CHECK(zero.reduce_bucket_size == 500'000'000);
    CHECK(zero.allgather_bucket_size == 500'000'000);
    CHECK(zero.overlap_comm == (std::string(stage) == "zero3"));
    CHECK(zero.contiguous_gradients);
    CHECK(zero.reduce_scatter);
    CHECK(zero.use_multi_rank_bucket_allreduce);
    CHECK(zero.stage3_prefetch_bucket_size == 50'000'000);
    CHECK(zero.stage3_param_persistence_threshold == 100'000);
    CHECK(zero.stage3_max_live_parameters == 1'000'000'000);
    CHECK(zero.stage3_max_reuse_distance == 1'000'000'000);
  }
}

// horovod/common/operations.cc: 128 MiB, 1 ms, cache on, hierarchical_allreduce off; its change log, 0.21.0:
// "default cycle time from 5ms to 1ms and fusion threshold from 64MB to 128MB" (pull request 2468).
TEST_CASE("horovod has its environment's defaults, by release") {
  const HorovodOptions now = fill("horovod", "horovod").spec.horovod;
  CHECK(now.fusion_threshold == Bytes{128 * mebi});
  CHECK(now.cycle_time == Duration::milliseconds(1));
  CHECK(now.response_cache);
  CHECK_FALSE(now.hierarchical_allreduce);
  CHECK_FALSE(now.autotune);
  const HorovodOptions before = fill("horovod", "horovod", two_nodes, "0.20").spec.horovod;
  CHECK(before.fusion_threshold == Bytes{64 * mebi});
  CHECK(before.cycle_time == Duration::milliseconds(5));
  CHECK(before.response_cache);
  CHECK_FALSE(fill("horovod", "horovod", two_nodes, "0.11").spec.horovod.response_cache);
}

// byteps/common/global.cc and docs/env.md: BYTEPS_PARTITION_BYTES 4096000, BYTEPS_SERVER_ENGINE_THREAD 4,
// priority by layer; gradients reduced by NCCL inside a node first; README: as many servers as workers.
TEST_CASE("byteps has its environment's defaults") {
  const ParameterServerOptions byteps = fill("byteps", "ps_sync").spec.parameter_server;
  CHECK(byteps.servers.partition == Bytes{4'096'000});
  CHECK(byteps.servers.placement == ShardPlacement::partitioned);
  CHECK(byteps.servers.threads == 4);
  CHECK(byteps.servers.count == 2);
  CHECK(byteps.servers.transport == ServerTransport::direct);
  CHECK(byteps.servers.handler_bandwidth == Bandwidth{258'000'000});
  CHECK(byteps.scheduling == ServerScheduling::priority);
  CHECK(byteps.local_reduce == LocalReduce::nccl);
}

// tensorflow/python/distribute/cross_device_ops.py: NcclAllReduce(num_packs=1).
TEST_CASE("tensorflow_mirrored reduces all gradients as one pack") {
  const DdpOptions mirrored = fill("tensorflow_mirrored", "ddp").spec.ddp;
  CHECK(mirrored.bucket_cap == mirrored.first_bucket);
  CHECK(mirrored.bucket_cap.count() > 1e12);  // above the gradients of any model
  CHECK_FALSE(mirrored.broadcast_buffers);
}

// tensorflow/python/distribute/cross_device_utils.py, group_by_size: "All values are grouped into one pack if
// bytes_per_pack is zero", which CommunicationOptions has by default.
TEST_CASE("tensorflow_multiworker reduces all gradients as one pack unless it is told the size of a pack") {
  const DdpOptions multiworker = fill("tensorflow_multiworker", "ddp").spec.ddp;
  CHECK(multiworker.bucket_cap.count() > 1e12);
  CHECK(multiworker.first_bucket == multiworker.bucket_cap);
}

// tf_cnn_benchmarks/variable_mgr.py: VariableMgrDistributedFetchFromPS places greedily by bytes, pulls once a
// worker process and averages its towers; VariableMgrLocalFetchFromPS (one machine) does neither.
TEST_CASE("tensorflow_ps does what tf_cnn_benchmarks does, by whether there is more than one machine") {
  const ParameterServerOptions spread = fill("tensorflow_ps", "ps_sync").spec.parameter_server;
  CHECK(spread.servers.placement == ShardPlacement::greedy);
  CHECK(spread.servers.on == ServerPlace::cpu);
  CHECK(spread.servers.transport == ServerTransport::grpc);
  CHECK(spread.pull_once_per_node);
  CHECK(spread.local_reduce == LocalReduce::host);
  CHECK(spread.scheduling == ServerScheduling::none);
  const ParameterServerOptions local =
      fill("tensorflow_ps", "ps_sync", {.nodes = 1, .gpus_per_node = 8}).spec.parameter_server;
  CHECK(local.servers.count == 1);
  CHECK(local.servers.transport == ServerTransport::direct);
  CHECK_FALSE(local.pull_once_per_node);
  CHECK(local.local_reduce == LocalReduce::none);
  CHECK(fill("tensorflow_ps", "ps_async").spec.parameter_server.servers.update == UpdateLock::lock_free);
}

// Megatron-LM, megatron/core/distributed: bucket_size max(40000000, 1000000 * dp) when overlapping, else
// unlimited; overlap_grad_reduce and overlap_param_gather False.
TEST_CASE("megatron makes one bucket unless reduction overlaps") {
  const ZeroOptions plain = fill("megatron", "zero1").spec.zero;
  CHECK_FALSE(plain.use_multi_rank_bucket_allreduce);
  CHECK_FALSE(plain.overlap_comm);
  CHECK_FALSE(plain.overlap_param_gather);
  CHECK(plain.reduce_bucket_size >= 1'000'000'000'000);
  TrainingFacts overlapping = two_nodes;
  overlapping.overlap = true;
  CHECK(fill("megatron", "zero1", overlapping).spec.zero.reduce_bucket_size == 40'000'000);
  overlapping.nodes = 64;
  CHECK(fill("megatron", "zero1", overlapping).spec.zero.reduce_bucket_size == 1'000'000 * 64 * 8);
  // bf16 gradients: two bytes each.
  CHECK(fill("megatron", "ddp", overlapping).spec.ddp.bucket_cap == Bytes{2 * 1'000'000 * 64 * 8});
}

// Its distributed optimizer asserts that gradients' reduction overlaps where gathers of weights do.
TEST_CASE(
    "whatever says that megatron's reduction overlaps makes its buckets, and no word of communication is "
    "needed") {
  const auto load = [](const char* key, bool value) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(R"({"cluster": {"machine": "dgx_a100_80gb"},
      "model": {"name": "gpt2", "batch_per_gpu": 4, "precision": "bf16"},
      "training": {"framework": "megatron", "strategy": "zero1"}})");
    if (*key != '\0')
      json["training"][key] = value;
    return scenario_from(json);
  };
  const auto is_late = [](const Scenario& scenario) {
    const ZeroOptions& zero = scenario.training.zero;
    CHECK(zero.overlap_comm == (zero.reduce_bucket_size < 1'000'000'000));
    CHECK(scenario.communication.overlap == zero.overlap_comm);
    return !zero.overlap_comm;
  };
  CHECK(is_late(load("", false)));
  CHECK(is_late(load("overlap_comm", false)));
  CHECK(is_late(load("overlap_param_gather", false)));
  CHECK_FALSE(is_late(load("overlap_comm", true)));
  CHECK_FALSE(is_late(load("overlap_param_gather", true)));
}

// ColossalAI, booster/plugin: LowLevelZeroPlugin(reduce_bucket_size_in_m=12, overlap_communication=True);
// GeminiPlugin(min_chunk_size_m=32, shard_param_frac=1).
TEST_CASE("colossalai has the buckets of its plugins") {
  for (const char* stage : {"zero1", "zero2"}) {
    const ZeroOptions low_level = fill("colossalai", stage).spec.zero;
    CHECK(low_level.reduce_scatter == (std::string(stage) == "zero2"));
    CHECK_FALSE(low_level.use_multi_rank_bucket_allreduce);
    CHECK(low_level.reduce_bucket_size == 12 * mebi);
    CHECK(low_level.overlap_comm);
  }
  const ZeroOptions gemini = fill("colossalai", "zero3").spec.zero;
  CHECK(gemini.chunk_size == 32 * mebi);
  CHECK(gemini.stage3_param_persistence_threshold == 0);
}

// transformers/trainer.py: ddp_find_unused_parameters None is "not model.is_gradient_checkpointing",
// ddp_bucket_cap_mb and ddp_broadcast_buffers None leave DistributedDataParallel's own; optim adamw_torch;
// max_grad_norm 1.0.
TEST_CASE("hf_trainer looks for unused parameters, takes AdamW and clips gradients") {
  const TrainingSpec trainer = fill("hf_trainer", "ddp").spec;
  CHECK(trainer.ddp.find_unused_parameters);
  CHECK(trainer.ddp.bucket_cap == Bytes{25 * mebi});
  CHECK(trainer.ddp.first_bucket == Bytes{mebi});
  CHECK(trainer.ddp.broadcast_buffers);
  CHECK(trainer.optimizer == Optimizer::adamw);
  CHECK(trainer.gradient_accumulation == 1);
  CHECK(trainer.gradient_clipping);
  CHECK(fill("hf_trainer", "fsdp").spec.gradient_clipping);
  TrainingSpec checkpointed;
  checkpointed.strategy = "ddp";
  checkpointed.framework = "hf_trainer";
  checkpointed.recompute = {.kind = RecomputeKind::full};
  apply_preset(checkpointed, two_nodes);
  CHECK_FALSE(checkpointed.ddp.find_unused_parameters);
}

TEST_CASE("hf_trainer gives ZeRO and FSDP the defaults of DeepSpeed and PyTorch") {
  CHECK(fill("hf_trainer", "zero2").spec.zero.reduce_bucket_size ==
        fill("deepspeed", "zero2").spec.zero.reduce_bucket_size);
  CHECK(fill("hf_trainer", "hsdp").spec.sharded.shard_group ==
        fill("pytorch_fsdp", "hsdp").spec.sharded.shard_group);
}

TEST_CASE("sharded optimizers keep fp32 copies of half-precision weights, and only of those") {
  CHECK(fill("deepspeed", "zero1").spec.master_weights);
  TrainingFacts facts = two_nodes;
  facts.precision = Precision::amp_bf16;  // fp32 weights, cast when they are used
  CHECK_FALSE(fill("deepspeed", "zero1", facts).spec.master_weights);
  CHECK_FALSE(fill("deepspeed", "ddp").spec.master_weights);
}

TEST_CASE("every option of every strategy of every framework says where its default comes from") {
  for (const FrameworkPreset& preset : framework_presets()) {
    for (const std::string_view strategy : preset.strategies) {
      const Filled filled = fill(std::string(preset.name), std::string(strategy));
      nlohmann::ordered_json written;
      write_family_options(filled.spec, written);
      const nlohmann::ordered_json leaves = written.flatten();
      for (const auto& [pointer, value] : leaves.items()) {
        CAPTURE(preset.name);
        CAPTURE(strategy);
        CAPTURE(pointer);
        REQUIRE(filled.notes.contains(pointer.substr(1)));
        CHECK(filled.notes.find(pointer.substr(1))->second.starts_with("default ("));
      }
    }
  }
}

TEST_CASE("every strategy but single has a framework of its own, and what none names goes with all") {
  for (const std::string& strategy : strategies_in_order()) {
    CAPTURE(strategy);
    CHECK(has_strategy(*find_preset(usual_framework(strategy)), strategy));
  }
  CHECK(usual_framework("fsdp") == "pytorch_fsdp");
  CHECK(usual_framework("zero2") == "deepspeed");
  CHECK(usual_framework("ps_async") == "tensorflow_ps");
  for (const FrameworkPreset& preset : framework_presets()) {
    CHECK(has_strategy(preset, "single"));
    CHECK(has_strategy(preset, "of_nobody"));
    CHECK(has_strategy(preset, "horovod") == (preset.name == "horovod"));
  }
}

TEST_CASE("versions compare by their numbers, not by their text") {
  CHECK(*parse_version("1.13.1") < *parse_version("2.0"));
  CHECK(*parse_version("2.10") > *parse_version("2.9"));
  CHECK(parse_version("2.1.0a0") == parse_version("2.1"));
  for (const char* text : {"", "2", "two", "2.", ".8", "-1.0"}) {
    CHECK_FALSE(parse_version(text));
  }
}

}  // namespace lockstep::framework_presets_test
