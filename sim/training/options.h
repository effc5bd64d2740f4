#pragma once

// What a training strategy lets the user choose, with the names of the frameworks themselves.
//
// Problem:   strategies share a few options and each has many of its own, whose defaults differ by framework.
// Idea:      plain data: the common keys, then one struct a family of strategies. Load fills every struct; a
//            strategy reads only its family's. Which default belongs to which framework and version is
//            decided at load (scenario/framework_presets).
// Invariant: ready for use: counts are in range, names are enumerations, sizes that the user may leave out
//            stand filled in. Sizes that frameworks count in elements stay elements.
// Reference: each struct names the document its keys come from.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/units.h"
#include "sim/plan/fidelity.h"
#include "sim/plan/library.h"
#include "sim/plan/precision.h"
#include "sim/training/layout.h"

namespace lockstep {

enum class Optimizer : std::uint8_t { none, sgd, momentum, adam, adamw, lamb };

// How a gradient is made smaller before it is sent: cast, a product of two thin matrices, its largest values.
enum class CompressionKind : std::uint8_t { none, fp16, bf16, powersgd, topk };

struct Compression {
  CompressionKind kind = CompressionKind::none;
  std::int64_t rank = 0;  // powersgd_R
  Ratio kept = {};        // topk_PERCENT, of the elements
  friend bool operator==(const Compression&, const Compression&) = default;
};

// Which activations backward computes again instead of keeping them from forward.
// selective: attention's inner products (Megatron-LM); selective_op: of each block all but attention and every second
// product without a bias, counted from the first (torchtitan's "op"); every: of K blocks in a row only the first one's
// input is kept (Megatron-LM's uniform); one_in: one block of K (torchtitan's number of layers).
enum class RecomputeKind : std::uint8_t { none, selective, selective_op, full, every, one_in };

struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  std::int64_t blocks = 1;  // K of every_K and one_in_K; full: every_1
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

// ddp: torch.nn.parallel.DistributedDataParallel. TensorFlow's mirrored strategies are the same in these
// terms.
struct DdpOptions {
  Bytes bucket_cap{25 * mebi};
  Bytes first_bucket{mebi};
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool find_unused_parameters = false;
  bool broadcast_buffers = true;
  std::int64_t powersgd_start_iteration = 1000;  // before it, buckets are reduced whole
};

// zero1, zero2, zero3: DeepSpeed's zero_optimization. Sizes in elements.
struct ZeroOptions {
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t allgather_bucket_size = 500'000'000;  // of updated weights: zero1, zero2
  bool overlap_comm = false;                         // reduce while backward runs
  bool overlap_param_gather = false;                 // gather updated weights while the next forward runs
  bool reduce_scatter = true;                        // false: all-reduce, and keep the own part
  bool use_multi_rank_bucket_allreduce = true;       // zero1, zero2: so with it too, as DeepSpeed does
  bool contiguous_gradients = true;                  // gradients are copied into one buffer as they come
  std::int64_t stage3_prefetch_bucket_size = 50'000'000;
  std::int64_t stage3_param_persistence_threshold = 100'000;
  std::int64_t stage3_max_live_parameters = 1'000'000'000;
  std::int64_t stage3_max_reuse_distance = 1'000'000'000;
  bool lists_parts = false;     // zero3: the host hands the ranks' parts over one by one (part_lister.h)
  std::int64_t chunk_size = 0;  // zero3: what is gathered at once, as Gemini's chunks; 0: a module
  Precision communication_data_type = Precision::fp32;  // fp32, fp16 or bf16: what gradients are reduced in
};

enum class BackwardPrefetch : std::uint8_t { none, pre, post };
// What becomes one unit: each block, blocks in a row until there are `elements`, or the whole model.
enum class WrapKind : std::uint8_t { block, size, none };

struct AutoWrap {
  WrapKind kind = WrapKind::block;
  std::int64_t elements = 0;  // size_N
  friend bool operator==(const AutoWrap&, const AutoWrap&) = default;
};

// fsdp, hsdp: torch.distributed.fsdp.
struct ShardedOptions {
  std::int64_t version = 1;        // 1: FullyShardedDataParallel, flat units; 2: fully_shard, by parameter
  std::int64_t shard_group = 1;    // ranks that hold one copy of the model together; fsdp: all of them
  std::int64_t reshard_group = 1;  // ranks a unit is spread over from its forward to its backward; 1: whole
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;  // at most 2 units gathered ahead
  AutoWrap auto_wrap = {};
  Precision param_dtype = Precision::fp32;   // fp32, fp16 or bf16: what is gathered
  Precision reduce_dtype = Precision::fp32;  // and what gradients are reduced in
  bool no_sync = false;  // gradients of all but the last micro-batch stay whole and unreduced
};

enum class CollectiveDevice : std::uint8_t { gpu, cpu };
// When Horovod hears of a gradient: as soon as the host has launched its kernels (PyTorch, TensorFlow), or once
// they have run (MXNet).
enum class Announcement : std::uint8_t { launched, computed };

// horovod: environment variables HOROVOD_* and arguments of its DistributedOptimizer.
struct HorovodOptions {
  Bytes fusion_threshold{128 * 1024 * 1024};
  Duration cycle_time = Duration::milliseconds(1);
  bool response_cache = true;
  bool hierarchical_allreduce = false;
  bool autotune = false;
  CollectiveDevice device = CollectiveDevice::gpu;  // cpu: copied to the host and reduced there
  std::int64_t num_groups = 0;      // gradients announced together, in so many groups; 0: each by itself
  bool batch_d2d_memcopies = true;  // one kernel copies up to 160 gradients into the fusion buffer
  Announcement announce = Announcement::launched;
};

// Where the servers' variables stand: the workers' hosts, the workers' GPUs, or machines of their own.
enum class ServerPlace : std::uint8_t { cpu, gpu, machines };
// Which server holds a variable: dealt in turn; to the one with the least bytes; cut into pieces and dealt.
enum class ShardPlacement : std::uint8_t { round_robin, greedy, partitioned };
// Who may update at a time: one worker a server, one worker a variable, anyone (overlaps are counted).
enum class UpdateLock : std::uint8_t { locked, sharded, lock_free };
// direct: bytes cross the wire as they are; grpc: a handler (de)serialises each variable.
enum class ServerTransport : std::uint8_t { direct, grpc };
// priority: the pieces the next forward needs first overtake the others.
enum class ServerScheduling : std::uint8_t { none, priority };
// Where the gradients of a node's GPUs are added before one push; none: every GPU pushes.
enum class LocalReduce : std::uint8_t { none, host, nccl };

struct ServerSpec {
  std::int64_t count = 1;
  ServerPlace on = ServerPlace::cpu;
  ShardPlacement placement = ShardPlacement::greedy;
  Bytes partition{4'096'000};  // of `partitioned`
  UpdateLock update = UpdateLock::sharded;
  bool updates_weights = true;  // false: servers only add gradients up, and workers update
  std::int64_t threads = 16;    // that handle messages, a server
  ServerTransport transport = ServerTransport::direct;
  std::optional<Bandwidth> handler_bandwidth = {};  // of one thread (de)serialising; else the calibration's
};

// ps_sync, ps_async: TensorFlow's parameter servers and BytePS.
struct ParameterServerOptions {
  ServerSpec servers = {};
  ServerScheduling scheduling = ServerScheduling::none;
  bool pull_once_per_node = false;
  LocalReduce local_reduce = LocalReduce::none;
  std::optional<std::int64_t> staleness_bound = {};  // ps_async, in updates; none: unbounded
};

// local_sgd: torch.distributed.algorithms.model_averaging.
struct LocalSgdOptions {
  std::int64_t local_steps = 4;   // from one average to the next
  bool average_momentum = false;  // the optimizer's states too
};

// dp: torch.nn.DataParallel.
struct DataParallelOptions {
  bool gather_outputs = true;  // false: the loss is computed on each GPU and only the loss is gathered
  Duration operator_time = Duration::microseconds(20);  // that an operator holds Python's interpreter lock
};

// Where the thread that issues kernels waits for its GPU, beside what the optimizer reads back.
struct HostWaits {
  bool for_messages = false;  // between stages, after each
  bool for_batch = false;     // of each micro-batch, before its forward
  bool for_loss = false;      // likewise, before its backward
  bool for_kernels = false;   // after each (CUDA_LAUNCH_BLOCKING)
};

struct TrainingSpec {
  std::string strategy = {};  // an entry of Registry<Strategy>
  std::string framework = "pytorch_ddp";
  std::string framework_version = "2.8";
  std::int64_t gradient_accumulation = 1;  // in a pipeline: the micro-batches of a step
  Layout layout = {};
  Optimizer optimizer = Optimizer::sgd;
  Compression compression = {};
  Recompute recompute = {};
  HostWaits host_waits = {};
  bool master_weights = false;  // half-precision weights have fp32 copies among the optimizer's states
  bool accumulate_allreduce_grads_in_fp32 = false;  // gradients stand in fp32, whatever the weights are in
  bool gradient_clipping = false;                   // by the norm of all gradients, before the optimizer

  DdpOptions ddp = {};
  ZeroOptions zero = {};
  ShardedOptions sharded = {};
  HorovodOptions horovod = {};
  ParameterServerOptions parameter_server = {};
  LocalSgdOptions local_sgd = {};
  DataParallelOptions data_parallel = {};
};

struct CommunicationSpec {
  LibraryKind library = LibraryKind::nccl;
  std::int64_t library_version = 0;  // NCCL_VERSION_CODE; 0: the calibration's, else the newest known
  std::string algorithm = "auto";
  std::string protocol = "auto";
  bool overlap = true;
  std::int64_t collectives_in_flight = 1;
  std::optional<std::int64_t> channels;
  std::optional<Duration> timeout;  // of one collective, from a rank's beginning it; none: it waits for ever
};

}  // namespace lockstep
