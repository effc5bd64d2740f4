// Synchronous parameter servers: TensorFlow's ParameterServer and BytePS.
//
// Variables, or pieces of them, are spread over servers. A step begins by pulling them; a layer's forward
// waits for its own. Backward pushes each gradient as soon as it exists; the server adds what arrives, and
// when all workers' gradients are there the variable is updated. Where servers update the weights
// (TensorFlow) the next step's pulls wait for every update, as one session.run, or a barrier between the
// workers, ends before the next begins. Where servers only add (BytePS) a sum is pulled as soon as it is
// complete, and the worker's own optimizer updates a layer just before its forward.
//
// A message over gRPC is (de)serialised by its variable's handler, at the handler's bandwidth; adding reads
// the gradient and the sum and writes the sum: three passes over memory (server_messages). The exchange between
// the GPUs of a node is taken as direct, without a library's launches.
// Reference: tensorflow/benchmarks, variable_mgr.py; bytedance/byteps, docs/architecture.md.

#include <algorithm>

#include "sim/training/message_lanes.h"
#include "sim/training/server_messages.h"
#include "sim/training/shards.h"
#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::ps_sync {
namespace {

// The optimizer's work in parts: differences along the running sum, so that they add up to the whole.
class OptimizerParts {
 public:
  explicit OptimizerParts(const Job& job)
      : whole_(job.optimizer), all_(std::max<std::int64_t>(gradient_bytes(job).count(), 1)) {}

  KernelWork next(Bytes bytes) {
    KernelWork work = whole_;
    const auto part = [&](std::int64_t whole) {
      const auto up_to = [&](Bytes reached) {
        return scaled(Duration::picoseconds(whole), reached.count(), all_).picoseconds();
      };
      return up_to(reached_ + bytes) - up_to(reached_);
    };
    work.flops = part(work.flops);
    work.bytes = part(work.bytes);
    work.launches = part(work.launches);
    work.duration = Duration::picoseconds(part(work.duration.picoseconds()));
    reached_ += bytes;
    return work;
  }

 private:
  const KernelWork& whole_;
  std::int64_t all_;
  Bytes reached_;
};

class ServerSynchroniser : public Synchroniser {
 public:
  explicit ServerSynchroniser(const StrategyContext& context)
      : Synchroniser(context),
        options_(job_.training.parameter_server),
        messages_(context),
        optimizer_(job_),
        shards_of_(job_.gradients.size()),
        layer_of_(job_.gradients.size()) {
    const std::vector<Shard>& shards = messages_.shards();
    for (std::uint32_t shard = 0; shard < shards.size(); ++shard)
      shards_of_[shards[shard].gradient].push_back(shard);
    for (const LayerWork& layer : job_.layers)
      for (const std::uint32_t gradient : layer.gradients) layer_of_[gradient] = &layer;
    pushed_.resize(shards.size());
  }

  void begin() override {
    for (std::uint32_t shard = 0; shard < pushed_.size(); ++shard)
      arrived_.push_back(
          messages_.pull(shard, context_.carried.ops.empty() ? no_op : context_.carried.ops[shard]));
  }

  void pre_forward(const MicroBatch& micro, std::size_t layer) override {
    if (!micro.is_first() || job_.layers[layer].gradients.empty())
      return;
    wait_for(job_.layers[layer]);
    update_here(job_.layers[layer]);
  }

  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>& done) override {
    if (layer_of_[gradient]->gradients.front() == gradient)
      ready_ = compress(*layer_of_[gradient], done);
    if (job_.communication.overlap)
      push(gradient);
  }

  void finish() override {
    if (job_.communication.overlap)
      return;
    ready_ = write_mark(context_);
    for (const std::uint32_t gradient : gradient_order(job_)) push(gradient);
  }

  void update() override {
    std::vector<OpId> updated;
    for (std::uint32_t shard = 0; shard < pushed_.size(); ++shard) updated.push_back(update_shard(shard));
    if (options_.servers.updates_weights)
      updated.assign(updated.size(), messages_.all_of(updated));
    context_.carried.ops = std::move(updated);
  }

 private:
  void wait_for(const LayerWork& layer) {
    context_.writer.section("wait for " + layer.name, Category::communication);
    for (std::uint32_t gpu = 0; gpu < context_.cluster.gpus(); ++gpu) {
      std::vector<OpId> until;
      for (const std::uint32_t gradient : layer.gradients)
        for (const std::uint32_t shard : shards_of_[gradient]) until.push_back(arrived_[shard][gpu]);
      context_.writer.join(context_.compute[gpu], until);
    }
  }

  // Where servers only add: the layer's part of the optimizer's work.
  void update_here(const LayerWork& layer) {
    if (options_.servers.updates_weights)
      return;
    context_.writer.section("optimizer " + layer.name, Category::optimizer);
    write_kernels(context_, optimizer_.next(bytes_of(layer)));
  }

  // All gradients of a layer at once.
  std::vector<OpId> compress(const LayerWork& layer, const std::vector<OpId>& done) {
    if (job_.training.compression.kind == CompressionKind::none)
      return done;
    context_.writer.section("compress " + layer.name, Category::gradient_copy);
    return write_kernels(context_, copy_work(std::ssize(layer.gradients), bytes_of(layer)));
  }

  Bytes bytes_of(const LayerWork& layer) const {
    Bytes bytes;
    for (const std::uint32_t gradient : layer.gradients) bytes += job_.gradients[gradient].bytes;
    return bytes;
  }

  void push(std::uint32_t gradient) {
    for (const std::uint32_t shard : shards_of_[gradient]) pushed_[shard] = messages_.push(shard, ready_);
  }

  OpId update_shard(std::uint32_t shard) {
    if (!options_.servers.updates_weights)
      return messages_.update(shard, pushed_[shard], nullptr);
    KernelWork work = optimizer_.next(messages_.shards()[shard].bytes);
    work.is_model_work = false;
    return messages_.update(shard, pushed_[shard], &work);
  }

  const ParameterServerOptions& options_;
  ServerMessages messages_;
  OptimizerParts optimizer_;
  std::vector<std::vector<std::uint32_t>> shards_of_;  // by gradient
  std::vector<const LayerWork*> layer_of_;             // by gradient
  std::vector<OpId> ready_;                            // what is pushed next, by GPU
  std::vector<ServerMessages::ByGpu> arrived_;         // by shard
  std::vector<ServerMessages::ByGpu> pushed_;          // by shard
};

// Servers keep the optimizer's states where they update the weights.
MemoryShares memory(const Job& job, std::int64_t) {
  return {.states = job.training.parameter_server.servers.updates_weights ? 0 : 1};
}

std::vector<Host> hosts(const TrainingSpec& training, const ClusterShape& shape) {
  return server_hosts(training.parameter_server.servers, shape);
}

const Registration<Strategy> ps_sync_registration{
    "ps_sync",
    {.synchroniser = make_synchroniser<ServerSynchroniser>,
     .description = "synchronous parameter servers, as in TensorFlow and BytePS",
     .accepts = {.options = server_options,
                 .compressions = {CompressionKind::none, CompressionKind::fp16, CompressionKind::bf16},
                 .problems = server_problems},
     .sends = {.at_most = server_traffic_bound},
     .unused = unused_with_servers,
     .memory = memory,
     .hosts = hosts,
     .servers = stated_servers,
     .reaches_across = true}};

}  // namespace
}  // namespace lockstep::strategies::ps_sync
