#include "sim/load/training/framework_presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/training/strategy.h"

namespace lockstep {

struct PresetInput {
  TrainingSpec& spec;
  const TrainingFacts& facts;
  Version version;        // of the framework
  Version torch_version;  // of the PyTorch below it
  OptionNotes notes = {};

  template <class Field, class Value>
  void set(std::string key, Field& field, const Value& value, std::string_view why) {
    field = value;
    notes[std::move(key)] = fmt::format("default ({})", why);
  }
};

namespace {

using Input = PresetInput;

constexpr Bytes no_cap{1'000'000 * mebi};             // almost a TiB: one bucket for any model
constexpr std::int64_t no_limit = 1'000'000'000'000;  // elements
constexpr Version newest_torch{2, 8};
// DistributedDataParallel's bucket_cap_mb defaults to None from here on: a cap that is set caps every bucket
// (pytorch/pytorch pull request 121640).
constexpr Version first_with_optional_cap{2, 4};

constexpr std::string_view ddp_source = "torch.nn.parallel.DistributedDataParallel";
constexpr std::string_view fsdp_source = "torch.distributed.fsdp.FullyShardedDataParallel";
constexpr std::string_view zero_source = "DeepSpeed, deepspeed/runtime/zero/config.py";
constexpr std::string_view horovod_source = "Horovod, horovod/common/operations.cc";

// ---- torch.nn.parallel ----

std::string_view first_bucket_note(Version torch) {
  return torch >= first_with_optional_cap ? "PyTorch 2.4 and later: 1 MiB, because the cap is not set"
                                          : "PyTorch before 2.4: 1 MiB whatever the cap";
}

void set_torch_ddp(Input& input) {
  DdpOptions& ddp = input.spec.ddp;
  input.set("bucket_cap_mb", ddp.bucket_cap, Bytes{25 * mebi}, "DistributedDataParallel: 25 MiB");
  input.set("first_bucket_mb", ddp.first_bucket, Bytes{mebi}, first_bucket_note(input.torch_version));
  input.set("gradient_as_bucket_view", ddp.gradient_as_bucket_view, false, ddp_source);
  input.set("static_graph", ddp.static_graph, false, ddp_source);
  input.set("find_unused_parameters", ddp.find_unused_parameters, false, ddp_source);
  input.set("broadcast_buffers", ddp.broadcast_buffers, true, ddp_source);
  input.set("powersgd_start_iteration", ddp.powersgd_start_iteration, 1000,
            "torch's powerSGD_hook: start_powerSGD_iter 1000");
}

// One average every 4 steps is the example of torch's own documentation: the class has no default.
void set_torch_local_sgd(Input& input) {
  LocalSgdOptions& local = input.spec.local_sgd;
  input.set("local_steps", local.local_steps, 4,
            "the period in the example of torch's PeriodicModelAverager, which has no default");
  input.set("average_momentum", local.average_momentum, false,
            "torch's PeriodicModelAverager averages parameters only");
}

void set_torch_dp(Input& input) {
  DataParallelOptions& options = input.spec.data_parallel;
  input.set("gather_outputs", options.gather_outputs, true, "torch.nn.DataParallel");
  input.set("operator_time", options.operator_time, Duration::microseconds(20),
            "a PyTorch operator costs about 20 us of CPU time on a V100 host (profiler guides)");
}

// ---- torch.distributed.fsdp ----

void set_element_types(Input& input) {
  ShardedOptions& sharded = input.spec.sharded;
  const Precision type = half_or_full(input.facts.precision);
  input.set("param_dtype", sharded.param_dtype, type,
            "our choice: MixedPrecision(param_dtype) is the type of model.precision");
  input.set("reduce_dtype", sharded.reduce_dtype, type,
            "FullyShardedDataParallel, MixedPrecision: param_dtype");
}

void set_groups(Input& input) {
  ShardedOptions& sharded = input.spec.sharded;
  const bool is_hybrid = input.spec.strategy == "hsdp";
  input.set("shard_group", sharded.shard_group, is_hybrid ? input.facts.gpus_per_node : input.facts.ranks(),
            "HYBRID_SHARD: the GPUs of a node");
  input.set("reshard_after_forward", sharded.reshard_group, sharded.shard_group, "FULL_SHARD: true");
}

void set_torch_fsdp(Input& input) {
  ShardedOptions& sharded = input.spec.sharded;
  constexpr Version first_with_limit{2, 0};
  input.set("fsdp_version", sharded.version, 1, fsdp_source);
  set_groups(input);
  input.set("backward_prefetch", sharded.backward_prefetch, BackwardPrefetch::pre,
            "FullyShardedDataParallel: BACKWARD_PRE");
  input.set("forward_prefetch", sharded.forward_prefetch, false, fsdp_source);
  const bool is_limited = input.torch_version >= first_with_limit;
  input.set("limit_all_gathers", sharded.limit_all_gathers, is_limited,
            is_limited ? "FullyShardedDataParallel since PyTorch 2.0: at most 2 at a time"
                       : "FullyShardedDataParallel before PyTorch 2.0");
  input.set("auto_wrap", sharded.auto_wrap, AutoWrap{},
            "our choice: a unit for each block; torch itself makes the whole model one unit, which overlaps "
            "nothing");
  set_element_types(input);
  input.set("no_sync", sharded.no_sync, false,
            "a plain training loop, without FullyShardedDataParallel.no_sync");
}

// ---- DeepSpeed ----

void set_zero_groups(Input& input) {
  ZeroOptions& zero = input.spec.zero;
  input.set("reduce_bucket_size", zero.reduce_bucket_size, 500'000'000, zero_source);
  input.set("allgather_bucket_size", zero.allgather_bucket_size, 500'000'000, zero_source);
  input.set("overlap_comm", zero.overlap_comm, input.spec.strategy == "zero3",
            "DeepSpeed, deepspeed/runtime/zero/config.py: true for stage 3 only");
  input.set("overlap_param_gather", zero.overlap_param_gather, false,
            "DeepSpeed gathers right after the optimizer's step");
  input.set("reduce_scatter", zero.reduce_scatter, true, zero_source);
  input.set("use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce, true,
            "DeepSpeed, deepspeed/runtime/zero/config.py: buckets are all-reduced, each rank keeps its part");
  input.set("contiguous_gradients", zero.contiguous_gradients, true, zero_source);
  input.set("communication_data_type", zero.communication_data_type, type_of_weights(input.facts.precision),
            "DeepSpeed: the type of the weights");
}

void set_zero3(Input& input) {
  ZeroOptions& zero = input.spec.zero;
  input.set("stage3_prefetch_bucket_size", zero.stage3_prefetch_bucket_size, 50'000'000, zero_source);
  input.set("stage3_param_persistence_threshold", zero.stage3_param_persistence_threshold, 100'000,
            zero_source);
  input.set("stage3_max_live_parameters", zero.stage3_max_live_parameters, 1'000'000'000, zero_source);
  input.set("stage3_max_reuse_distance", zero.stage3_max_reuse_distance, 1'000'000'000, zero_source);
  input.set("chunk_size", zero.chunk_size, 0, "DeepSpeed gathers module by module");
}

// Stage 0 reduces all gradients after backward, in one go.
void set_deepspeed_ddp(Input& input) {
  DdpOptions& ddp = input.spec.ddp;
  constexpr std::string_view after = "DeepSpeed, stage 0: all gradients after backward";
  input.set("bucket_cap_mb", ddp.bucket_cap, no_cap, after);
  input.set("first_bucket_mb", ddp.first_bucket, no_cap, after);
  input.set("broadcast_buffers", ddp.broadcast_buffers, false, "DeepSpeed broadcasts at the start only");
}

void set_deepspeed(Input& input) {
  set_deepspeed_ddp(input);
  set_zero_groups(input);
  set_zero3(input);
  constexpr Version gathers_whole_tensors{0, 6};  // _all_gather_base and reduce_scatter_coalesced
  input.spec.zero.lists_parts = input.version < gathers_whole_tensors;
}

// ---- Horovod and BytePS ----

void set_horovod(Input& input) {
  HorovodOptions& horovod = input.spec.horovod;
  constexpr Version first_with_short_cycle{0, 21};  // its change log, pull request 2468
  constexpr Version first_with_cache{0, 16};
  const bool is_new = input.version >= first_with_short_cycle;
  constexpr std::string_view since = "Horovod since 0.21 (pull request 2468)";
  constexpr std::string_view before = "Horovod before 0.21 (pull request 2468)";
  input.set("fusion_threshold_mb", horovod.fusion_threshold, Bytes{(is_new ? 128 : 64) * mebi},
            is_new ? since : before);
  input.set("cycle_time_ms", horovod.cycle_time, Duration::milliseconds(is_new ? 1 : 5),
            is_new ? since : before);
  const bool has_cache = input.version >= first_with_cache;
  input.set("response_cache", horovod.response_cache, has_cache,
            has_cache ? horovod_source : "Horovod before 0.16 has none");
  input.set("hierarchical_allreduce", horovod.hierarchical_allreduce, false, horovod_source);
  input.set("autotune", horovod.autotune, false, horovod_source);
  input.set("device", horovod.device, CollectiveDevice::gpu, "our choice: Horovod built with NCCL");
  input.set("num_groups", horovod.num_groups, 0, "Horovod, DistributedOptimizer: num_groups 0");
  input.set("batch_d2d_memcopies", horovod.batch_d2d_memcopies, is_new,
            is_new ? "Horovod since 0.21 (pull request 2435, from memory)" : "Horovod before 0.21 has none");
  input.set(
      "announce", horovod.announce, Announcement::launched,
      "Horovod enqueues a gradient when the host has launched its kernels and waits for its event later, "
      "as PyTorch and TensorFlow call it (from memory)");
}

// What one handler (de)serialises; reports of single gRPC streams range from 0.1 to 0.8 GB/s
// (tensorflow/tensorflow issues 4498, 6116, 6256).
constexpr Bandwidth grpc_handler{258'000'000};

void set_byteps(Input& input) {
  ParameterServerOptions& options = input.spec.parameter_server;
  ServerSpec& servers = options.servers;
  const bool has_network = input.facts.nodes > 1;
  constexpr std::string_view source = "BytePS, byteps/common/global.cc";
  input.set("servers/count", servers.count, input.facts.nodes, "BytePS, README: as many as worker machines");
  input.set("servers/on", servers.on, has_network ? ServerPlace::machines : ServerPlace::cpu,
            "BytePS, README: machines of their own, where there is a network");
  input.set("servers/placement", servers.placement, ShardPlacement::partitioned, source);
  input.set("servers/partition_bytes", servers.partition, Bytes{4'096'000},
            "BytePS, docs/env.md: BYTEPS_PARTITION_BYTES 4096000");
  input.set("servers/update", servers.update, UpdateLock::sharded, "BytePS: one engine thread a partition");
  input.set("servers/updates_weights", servers.updates_weights, false,
            "BytePS: servers add gradients up, each worker's own optimizer updates");
  input.set("servers/threads", servers.threads, 4, "BytePS, docs/env.md: BYTEPS_SERVER_ENGINE_THREAD 4");
  input.set("servers/transport", servers.transport, ServerTransport::direct, "BytePS: ps-lite, not gRPC");
  input.set("servers/handler_bandwidth", servers.handler_bandwidth, grpc_handler,
            "of gRPC, which BytePS does not use: as TensorFlow's");
  input.set("scheduling", options.scheduling, ServerScheduling::priority, source);
  input.set("pull_once_per_node", options.pull_once_per_node, true, source);
  input.set("local_reduce", options.local_reduce, LocalReduce::nccl, source);
}

// ---- TensorFlow ----

// Gradients are concatenated into packs once all of them exist; group_by_size puts everything into one pack.
void set_tensorflow_packs(Input& input, std::string_view packs) {
  DdpOptions& ddp = input.spec.ddp;
  input.set("bucket_cap_mb", ddp.bucket_cap, no_cap, packs);
  input.set("first_bucket_mb", ddp.first_bucket, no_cap, packs);
  input.set("gradient_as_bucket_view", ddp.gradient_as_bucket_view, false,
            "TensorFlow concatenates gradients into a pack and splits it again");
  input.set("broadcast_buffers", ddp.broadcast_buffers, false,
            "TensorFlow's batch norm statistics stay with each replica");
}

void set_tensorflow_mirrored(Input& input) {
  set_tensorflow_packs(input, "tf.distribute.NcclAllReduce: num_packs 1, all gradients in one");
}

void set_tensorflow_multiworker(Input& input) {
  set_tensorflow_packs(input, "tf.distribute CommunicationOptions: bytes_per_pack 0, all gradients in one");
}

void set_tensorflow_ps(Input& input) {
  ParameterServerOptions& options = input.spec.parameter_server;
  ServerSpec& servers = options.servers;
  const bool is_distributed = input.facts.nodes > 1;
  constexpr std::string_view manager = "tf_cnn_benchmarks, variable_mgr.py";
  input.set("servers/count", servers.count, input.facts.nodes, "our choice: one a node");
  input.set("servers/on", servers.on, ServerPlace::cpu, manager);
  input.set("servers/placement", servers.placement, ShardPlacement::greedy,
            "tf_cnn_benchmarks, variable_mgr.py: GreedyLoadBalancingStrategy by bytes");
  const bool is_async = input.spec.strategy == "ps_async";
  input.set("servers/update", servers.update, is_async ? UpdateLock::lock_free : UpdateLock::sharded,
            is_async ? "TensorFlow optimizers: use_locking false (from memory)"
                     : "TensorFlow: an accumulator for each variable");
  input.set("servers/updates_weights", servers.updates_weights, true, manager);
  constexpr Version first_with_thread_pool{1, 5};
  const bool has_pool = input.version >= first_with_thread_pool;
  input.set("servers/threads", servers.threads, has_pool ? 8 : 2,
            has_pool ? "TensorFlow, grpc_worker_service.cc: kGrpcWorkerServiceThreadCount 8"
                     : "TensorFlow before 1.5: one thread serves requests (grpc_server_lib.cc, "
                       "TF_worker_service), one takes in answers (from memory)");
  input.set("servers/transport", servers.transport,
            is_distributed ? ServerTransport::grpc : ServerTransport::direct,
            "TensorFlow: gRPC between processes, none within one");
  input.set("servers/handler_bandwidth", servers.handler_bandwidth, grpc_handler,
            "fitted to one row of the Horovod README of 2017: VGG-16, variables on the CPU");
  input.set("scheduling", options.scheduling, ServerScheduling::none, "TensorFlow: in order of readiness");
  input.set("pull_once_per_node", options.pull_once_per_node, is_distributed,
            "tf_cnn_benchmarks, variable_mgr.py: a caching device per worker process");
  input.set("local_reduce", options.local_reduce, is_distributed ? LocalReduce::host : LocalReduce::none,
            "tf_cnn_benchmarks, variable_mgr.py: towers are averaged on the worker when distributed");
}

// ---- Megatron-LM and NeMo ----

constexpr std::string_view megatron_reduces_late = "Megatron-LM: overlap_grad_reduce false";

// Megatron Core's buckets, for whoever runs it; `overlaps`: gradients are reduced beside backward.
void set_megatron_core(Input& input, bool overlaps, std::string_view whose) {
  const std::int64_t elements =
      overlaps ? std::max<std::int64_t>(40'000'000, 1'000'000 * input.facts.ranks()) : no_limit;
  const std::string_view why = overlaps
                                   ? "Megatron-LM, core/distributed: the larger of 40 M and 1 M x ranks "
                                     "parameters when reduction overlaps"
                                   : "Megatron-LM, core/distributed: one bucket, since reduction does not "
                                     "overlap; communication.overlap or overlap_comm says otherwise";
  const Bytes cap = overlaps ? Bytes{elements * parameter_bytes(input.facts.precision)} : no_cap;
  DdpOptions& ddp = input.spec.ddp;
  input.set("bucket_cap_mb", ddp.bucket_cap, cap, why);
  input.set("first_bucket_mb", ddp.first_bucket, cap, why);
  input.set("gradient_as_bucket_view", ddp.gradient_as_bucket_view, true,
            "Megatron-LM: gradients live in one buffer");
  input.set("broadcast_buffers", ddp.broadcast_buffers, false, "Megatron-LM broadcasts at the start only");
  set_zero_groups(input);
  ZeroOptions& zero = input.spec.zero;
  input.set("reduce_bucket_size", zero.reduce_bucket_size, elements, why);
  input.set("allgather_bucket_size", zero.allgather_bucket_size, elements, why);
  input.set("overlap_comm", zero.overlap_comm, overlaps,
            input.facts.overlap ? "as communication.overlap or overlap_param_gather says" : whose);
  input.set("reduce_scatter", zero.reduce_scatter, true, "Megatron-LM: the distributed optimizer");
  input.set("use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce, false,
            "Megatron-LM has none: it reduce-scatters");
  input.set("contiguous_gradients", zero.contiguous_gradients, false,
            "Megatron-LM: gradients are born in their buffer");
  input.set("communication_data_type", zero.communication_data_type, Precision::fp32,
            "Megatron-LM: what gradients stand in");
}

void set_megatron(Input& input) {
  set_megatron_core(input, input.facts.overlap.value_or(false), megatron_reduces_late);
  input.set("overlap_param_gather", input.spec.zero.overlap_param_gather, false,
            "Megatron-LM: overlap_param_gather false");
}

// NeMo runs Megatron Core with the options of its recipes; its optimizer is the distributed one.
void set_nemo(Input& input) {
  constexpr std::string_view recipes = "NeMo, collections/llm/recipes: overlap_grad_reduce true";
  set_megatron_core(input, input.facts.overlap.value_or(true), recipes);
  input.set("overlap_param_gather", input.spec.zero.overlap_param_gather, true,
            "NeMo, collections/llm/recipes: overlap_param_gather true");
  input.set("optimizer", input.spec.optimizer, Optimizer::adam,
            "NeMo, collections/llm/recipes/optim/adam.py: distributed_fused_adam_with_cosine_annealing");
  if (strategy_named(input.spec.strategy).accepts.gradient_clipping)
    input.set("gradient_clipping", input.spec.gradient_clipping, true,
              "NeMo, collections/llm/recipes/optim/adam.py: clip_grad 1.0");
}

// ---- torchtitan ----

void set_torchtitan(Input& input) {
  set_torch_fsdp(input);
  ShardedOptions& sharded = input.spec.sharded;
  constexpr std::string_view apply_fsdp = "torchtitan, models/llama3/infra/parallelize.py, apply_fsdp";
  input.set("fsdp_version", sharded.version, 2, apply_fsdp);
  input.set("auto_wrap", sharded.auto_wrap, AutoWrap{}, "torchtitan, apply_fsdp: a unit for each block");
  const bool has_stages = input.spec.layout.pipeline > 1;
  input.set("reshard_after_forward", sharded.reshard_group, has_stages ? 1 : sharded.shard_group,
            has_stages ? "torchtitan, apply_fsdp: not resharded in a pipeline" : apply_fsdp);
  input.set("param_dtype", sharded.param_dtype, half_or_full(input.facts.precision),
            "torchtitan, config/job_config.py: mixed_precision_param, the type of model.precision");
  input.set("reduce_dtype", sharded.reduce_dtype, Precision::fp32,
            "torchtitan, config/job_config.py: mixed_precision_reduce float32");
  input.set("no_sync", sharded.no_sync, has_stages,
            has_stages
                ? "torch.distributed.pipelining, stage.py: gradients are reduced after the last micro-batch"
                : "torchtitan, train.py: every micro-batch reduces its gradients");
  constexpr std::string_view apply_ddp =
      "torchtitan, models/llama3/infra/parallelize.py, apply_ddp: bucket_cap_mb 100";
  input.set("bucket_cap_mb", input.spec.ddp.bucket_cap, Bytes{100 * mebi}, apply_ddp);
  input.set("first_bucket_mb", input.spec.ddp.first_bucket, Bytes{100 * mebi},
            "PyTorch 2.4 and later: the cap, because the cap is set");
  input.set("optimizer", input.spec.optimizer, Optimizer::adamw, "torchtitan, config/job_config.py: AdamW");
  if (strategy_named(input.spec.strategy).accepts.gradient_clipping)
    input.set("gradient_clipping", input.spec.gradient_clipping, true,
              "torchtitan, config/job_config.py: max_norm 1.0");
}

// ---- ColossalAI, Hugging Face ----

void set_colossalai(Input& input) {
  set_zero_groups(input);
  set_zero3(input);
  ZeroOptions& zero = input.spec.zero;
  input.set("use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce, false,
            "ColossalAI has none");
  if (input.spec.strategy == "zero3") {
    constexpr std::string_view chunk = "ColossalAI, GeminiPlugin: min_chunk_size_m 32";
    input.set("chunk_size", zero.chunk_size, 32 * mebi, chunk);
    input.set("reduce_bucket_size", zero.reduce_bucket_size, 32 * mebi, chunk);
    input.set("stage3_prefetch_bucket_size", zero.stage3_prefetch_bucket_size, 0,
              "ColossalAI, GeminiPlugin: max_prefetch 0 (from memory)");
    input.set("stage3_param_persistence_threshold", zero.stage3_param_persistence_threshold, 0,
              "ColossalAI, GeminiPlugin: shard_param_frac 1");
    return;
  }
  input.set("reduce_scatter", zero.reduce_scatter, input.spec.strategy == "zero2",
            "ColossalAI, zero/low_level/low_level_optim.py: stage 1 all-reduces");
  constexpr std::string_view plugin = "ColossalAI, LowLevelZeroPlugin: reduce_bucket_size_in_m 12";
  input.set("reduce_bucket_size", zero.reduce_bucket_size, 12 * mebi, plugin);
  input.set("allgather_bucket_size", zero.allgather_bucket_size, 12 * mebi, plugin);
  input.set("overlap_comm", zero.overlap_comm, true,
            "ColossalAI, LowLevelZeroPlugin: overlap_communication true");
}

// transformers/trainer.py gives each strategy's own defaults but for these.
void set_hf_trainer(Input& input) {
  set_torch_fsdp(input);
  set_zero_groups(input);
  set_zero3(input);
  const bool recomputes = input.spec.recompute.kind != RecomputeKind::none;
  input.set("find_unused_parameters", input.spec.ddp.find_unused_parameters, !recomputes,
            "transformers Trainer: true unless gradients are checkpointed");
  input.set("optimizer", input.spec.optimizer, Optimizer::adamw, "transformers Trainer: adamw_torch");
  if (strategy_named(input.spec.strategy).accepts.gradient_clipping) {
    input.set("gradient_clipping", input.spec.gradient_clipping, true,
              "transformers Trainer: max_grad_norm 1.0");
  }
}

// ---- what is alike ----

// Sharded optimizers keep fp32 copies of half-precision weights.
void set_common(Input& input) {
  const Strategy& strategy = strategy_named(input.spec.strategy);
  if (strategy.accepts.gradient_clipping) {
    input.set("gradient_clipping", input.spec.gradient_clipping, false, "none unless it is asked for");
  }
  if (strategy.partition != Partition::nothing) {
    const bool is_half = type_of_weights(input.facts.precision) != Precision::fp32;
    input.set(
        "master_weights", input.spec.master_weights, is_half,
        is_half ? "mixed precision: the optimizer updates fp32 copies" : "the weights are fp32 themselves");
  }
}

Version version_of(const TrainingSpec& spec) {
  return parse_version(spec.framework_version).value_or(Version{});
}

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  Version version;
  const char* end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, version.major);
  if (error != std::errc{} || dot == end || *dot != '.') {
    return std::nullopt;
  }
  const bool has_minor = std::from_chars(dot + 1, end, version.minor).ec == std::errc{};
  return has_minor && version.major >= 0 && version.minor >= 0 ? std::optional(version) : std::nullopt;
}

const std::vector<FrameworkPreset>& framework_presets() {
  static const std::vector<FrameworkPreset> presets{
      {"pytorch_ddp", "2.8", {"ddp", "local_sgd"}, set_torch_local_sgd},
      {"pytorch_dp", "2.8", {"dp"}, set_torch_dp},
      {"pytorch_fsdp", "2.8", {"fsdp", "hsdp"}, set_torch_fsdp},
      {"deepspeed", "0.17", {"ddp", "zero1", "zero2", "zero3"}, set_deepspeed},
      {"horovod", "0.28", {"horovod"}, set_horovod},
      {"tensorflow_mirrored", "2.15", {"ddp"}, set_tensorflow_mirrored},
      {"tensorflow_multiworker", "2.15", {"ddp"}, set_tensorflow_multiworker},
      {"tensorflow_ps", "2.15", {"ps_sync", "ps_async"}, set_tensorflow_ps},
      {"byteps", "0.2", {"ps_sync", "ps_async"}, set_byteps},
      {"megatron", "0.13", {"ddp", "zero1"}, set_megatron, megatron_reduces_late},
      {"colossalai", "0.4", {"zero1", "zero2", "zero3", "ddp"}, set_colossalai},
      {"hf_trainer", "4.50", {"ddp", "fsdp", "hsdp", "zero1", "zero2", "zero3"}, set_hf_trainer},
      {"nemo", "2.5", {"zero1", "ddp"}, set_nemo},
      {"torchtitan", "0.2", {"fsdp", "hsdp", "ddp"}, set_torchtitan}};
  return presets;
}

const FrameworkPreset* find_preset(std::string_view name) {
  const auto& presets = framework_presets();
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const auto& preset) { return preset.name == name; });
  return found == presets.end() ? nullptr : &*found;
}

bool has_strategy(const FrameworkPreset& preset, std::string_view strategy) {
  const auto presets_it = [&](const FrameworkPreset& other) {
    return std::find(other.strategies.begin(), other.strategies.end(), strategy) != other.strategies.end();
  };
  return presets_it(preset) ||
         std::none_of(framework_presets().begin(), framework_presets().end(), presets_it);
}

std::string_view usual_framework(std::string_view strategy) {
  for (const FrameworkPreset& preset : framework_presets()) {
    if (has_strategy(preset, strategy)) {
      return preset.name;
    }
  }
  return framework_presets().front().name;
}

OptionNotes apply_preset(TrainingSpec& spec, const TrainingFacts& facts) {
  const Version version = version_of(spec);
  const bool is_torch = spec.framework.starts_with("pytorch");
  PresetInput input{
      .spec = spec, .facts = facts, .version = version, .torch_version = is_torch ? version : newest_torch};
  set_common(input);
  set_torch_ddp(input);
  if (const FrameworkPreset* preset = find_preset(spec.framework)) {
    preset->apply(input);
  }
  return std::move(input.notes);
}

std::optional<std::string> first_bucket_follows_cap(const TrainingSpec& spec) {
  if (!spec.framework.starts_with("pytorch") && spec.framework != "hf_trainer") {
    return "default (the cap: here no bucket is smaller)";
  }
  if (spec.framework != "hf_trainer" && version_of(spec) < first_with_optional_cap) {
    return std::nullopt;
  }
  return "default (PyTorch 2.4 and later: the cap, because the cap is set)";
}

Precision type_of_weights(Precision precision) {
  return parameter_bytes(precision) == 4 ? Precision::fp32 : half_or_full(precision);
}

Precision half_or_full(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return Precision::fp32;
    case Precision::fp16:
    case Precision::amp_fp16:
      return Precision::fp16;
    case Precision::bf16:
    case Precision::amp_bf16:
    case Precision::fp8:
      return Precision::bf16;
  }
  return Precision::fp32;
}

}  // namespace lockstep
