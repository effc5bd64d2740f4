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
// the gradient and the sum and writes the sum: three passes over memory. A node may push for all of its GPUs:
// `local_reduce` host adds up copies in host memory, nccl adds between the GPUs, which then hand on a part
// each; and it may pull once for all of them. Either way a worker hands on its gradients once and gets the
// variables once. The exchange between the GPUs of a node is taken as direct, without a library's launches.
// Reference: tensorflow/benchmarks, variable_mgr.py; bytedance/byteps, docs/architecture.md.

#include <algorithm>

#include "sim/training/message_lanes.h"
#include "sim/training/shards.h"
#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

class ServerIteration {
 public:
  explicit ServerIteration(const StrategyContext& context)
      : context_(context),
        job_(context.job),
        options_(context.job.training.parameter_server),
        lanes_(context),
        shards_(place_shards(job_.gradients, options_.servers)),
        shards_of_(job_.gradients.size()),
        priority_(job_.gradients.size()) {
    for (std::uint32_t shard = 0; shard < shards_.size(); ++shard)
      shards_of_[shards_[shard].gradient].push_back(shard);
    choose_handlers();
    for (std::uint32_t layer = 0; layer < job_.layers.size(); ++layer)
      for (const std::uint32_t gradient : job_.layers[layer].gradients) priority_[gradient] = layer;
    updated_.resize(shards_.size(), no_op);
  }

  void write() {
    write_pulls();
    for (std::int64_t micro = 1; micro < job_.training.gradient_accumulation; ++micro) {
      write_forward(micro == 1);
      for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer)
        write_backward(context_, *layer);
    }
    write_forward(job_.training.gradient_accumulation == 1);
    write_pushed_backward();
    write_updates();
  }

 private:
  // By GPU, or by node where one message is for all GPUs of a node.
  using ByGpu = std::vector<OpId>;

  std::uint32_t gpus() const { return context_.cluster.gpus(); }
  std::uint32_t nodes() const { return context_.cluster.nodes; }
  std::uint32_t per_node() const { return context_.cluster.gpus_per_node; }
  bool adds_between_gpus() const { return options_.local_reduce == LocalReduce::nccl; }
  bool pushes_once_per_node() const { return options_.local_reduce != LocalReduce::none; }

  std::uint32_t priority_of(const Shard& shard) const {
    return options_.scheduling == ServerScheduling::priority ? priority_[shard.gradient] : 0;
  }

  // fp32 gradients travel as half precision; the weights that servers hand out do not.
  Bytes pushed_bytes(const Shard& shard) const {
    const std::uint32_t element = job_.gradients[shard.gradient].element_bytes;
    const bool halves = job_.training.compression.kind != CompressionKind::none && element > 2;
    return halves ? Bytes{shard.bytes.count() / element * 2} : shard.bytes;
  }
  Bytes pulled_bytes(const Shard& shard) const {
    return options_.servers.updates_weights ? shard.bytes : pushed_bytes(shard);
  }

  std::string name_of(std::uint32_t shard) const { return job_.gradients[shards_[shard].gradient].name; }

  Bytes part_for_gpu(Bytes whole) const {
    return adds_between_gpus() ? divided_up(whole, per_node()) : whole;
  }

  // What a handler does with a message before, or after, it is on the wire.
  OpId handle(std::uint32_t shard, Bytes bytes, OpId after) {
    if (options_.servers.transport != ServerTransport::grpc || !options_.servers.handler_bandwidth)
      return after;
    return context_.writer.delay(handler_of(shard), time_to_move(bytes, *options_.servers.handler_bandwidth),
                                 std::span(&after, 1));
  }

  // A variable goes to the handler of its server that has the fewest bytes so far.
  void choose_handlers() {
    const std::size_t each = lanes_.handlers_per_server();
    std::vector<Bytes> loads(static_cast<std::size_t>(options_.servers.count) * each);
    for (const Shard& shard : shards_) {
      const auto first = loads.begin() + static_cast<std::ptrdiff_t>(shard.server * each);
      const auto least = std::min_element(first, first + static_cast<std::ptrdiff_t>(each));
      *least += shard.bytes;
      handlers_.push_back(lanes_.handler(shard.server, static_cast<std::uint32_t>(least - first)));
    }
  }

  LaneId handler_of(std::uint32_t shard) const { return handlers_[shard]; }

  // ---- pull ----

  void write_pulls() {
    arrived_.assign(shards_.size(), {});
    for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) write_pull(shard);
  }

  void write_pull(std::uint32_t shard) {
    context_.writer.section("pull " + name_of(shard), Category::communication);
    const MessageLanes::Parcel parcel{pulled_bytes(shards_[shard]), priority_of(shards_[shard])};
    const OpId before = context_.carried.ops.empty() ? no_op : context_.carried.ops[shard];
    const OpId begin =
        context_.writer.join(lanes_.host_work(context_.cluster.host(0)), std::span(&before, 1));
    arrived_[shard].resize(gpus());
    if (options_.pull_once_per_node)
      for (std::uint32_t node = 0; node < nodes(); ++node) pull_to_node(shard, node, parcel, begin);
    else
      for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu)
        arrived_[shard][gpu] =
            lanes_.send(server_of(shard), Rank{gpu}, parcel, handle(shard, parcel.bytes, begin));
    list(shard, Direction::received, parcel.bytes, ByGpu(gpus(), begin), arrived_[shard]);
  }

  void pull_to_node(std::uint32_t shard, std::uint32_t node, const MessageLanes::Parcel& parcel, OpId begin) {
    const Rank host = context_.cluster.host(node);
    const OpId here = lanes_.send(server_of(shard), host, parcel, handle(shard, parcel.bytes, begin));
    const MessageLanes::Parcel part{part_for_gpu(parcel.bytes), parcel.priority};
    std::vector<OpId> copies;
    for (std::uint32_t gpu = node * per_node(); gpu < (node + 1) * per_node(); ++gpu)
      copies.push_back(lanes_.send(host, Rank{gpu}, part, here));
    const OpId whole = adds_between_gpus() ? lanes_.exchange_in_node(node, parcel, copies) : no_op;
    for (std::uint32_t i = 0; i < per_node(); ++i)
      arrived_[shard][node * per_node() + i] = adds_between_gpus() ? whole : copies[i];
  }

  // ---- compute ----

  void write_forward(bool waits) {
    write_batch(context_);
    for (const LayerWork& layer : job_.layers) {
      if (waits && !layer.gradients.empty()) {
        wait_for(layer);
        update_here(layer);
      }
      write_forward_of(context_, layer);
    }
  }

  void wait_for(const LayerWork& layer) {
    context_.writer.section("wait for " + layer.name, Category::communication);
    for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu) {
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
    Bytes bytes;
    for (const std::uint32_t gradient : layer.gradients) bytes += job_.gradients[gradient].bytes;
    context_.writer.section("optimizer " + layer.name, Category::optimizer);
    write_kernels(context_, next_optimizer_part(bytes));
  }

  // Parts are differences along the running sum, so that they add up to the whole.
  KernelWork next_optimizer_part(Bytes bytes) {
    KernelWork work = job_.optimizer;
    const std::int64_t all = std::max<std::int64_t>(gradient_bytes(job_).count(), 1);
    const auto part = [&](std::int64_t whole) {
      const auto up_to = [&](Bytes reached) {
        return scaled(Duration::picoseconds(whole), reached.count(), all).picoseconds();
      };
      return up_to(optimized_ + bytes) - up_to(optimized_);
    };
    work.flops = part(work.flops);
    work.bytes = part(work.bytes);
    work.launches = part(work.launches);
    work.duration = Duration::picoseconds(part(work.duration.picoseconds()));
    optimized_ += bytes;
    return work;
  }

  void write_pushed_backward() {
    pushed_.assign(shards_.size(), {});
    for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer) {
      const std::vector<OpId> done = compress(*layer, write_backward(context_, *layer));
      if (job_.communication.overlap)
        push_gradients(*layer, done);
    }
    if (job_.communication.overlap)
      return;
    const std::vector<OpId> done = write_mark(context_);
    for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer)
      push_gradients(*layer, done);
  }

  std::vector<OpId> compress(const LayerWork& layer, std::vector<OpId> done) {
    if (job_.training.compression.kind == CompressionKind::none || layer.gradients.empty())
      return done;
    Bytes bytes;
    for (const std::uint32_t gradient : layer.gradients) bytes += job_.gradients[gradient].bytes;
    context_.writer.section("compress " + layer.name, Category::gradient_copy);
    return write_kernels(context_, copy_work(std::ssize(layer.gradients), bytes));
  }

  void push_gradients(const LayerWork& layer, const std::vector<OpId>& ready) {
    for (const std::uint32_t gradient : layer.gradients)
      for (const std::uint32_t shard : shards_of_[gradient]) write_push(shard, ready);
  }

  // ---- push ----

  void write_push(std::uint32_t shard, const std::vector<OpId>& ready) {
    context_.writer.section("push " + name_of(shard), Category::communication);
    const MessageLanes::Parcel parcel{pushed_bytes(shards_[shard]), priority_of(shards_[shard])};
    ByGpu sent(gpus());
    if (pushes_once_per_node())
      for (std::uint32_t node = 0; node < nodes(); ++node) {
        const OpId added = add_up(shard, lanes_.send(context_.cluster.host(node), server_of(shard), parcel,
                                                     gather_on_host(node, parcel, ready)));
        std::fill_n(sent.begin() + node * per_node(), per_node(), added);
      }
    else
      for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu)
        sent[gpu] = add_up(shard, lanes_.send(Rank{gpu}, server_of(shard), parcel, ready[gpu]));
    list(shard, Direction::sent, parcel.bytes, ready, sent);
    pushed_[shard] = std::move(sent);
  }

  // The sum of a node's gradients in its host's memory.
  OpId gather_on_host(std::uint32_t node, const MessageLanes::Parcel& parcel,
                      const std::vector<OpId>& ready) {
    const Rank host = context_.cluster.host(node);
    std::vector<OpId> parts(ready.begin() + node * per_node(), ready.begin() + (node + 1) * per_node());
    if (adds_between_gpus())
      parts.assign(per_node(), lanes_.exchange_in_node(node, parcel, parts));
    const MessageLanes::Parcel part{part_for_gpu(parcel.bytes), parcel.priority};
    for (std::uint32_t i = 0; i < per_node(); ++i)
      parts[i] = lanes_.send(Rank{node * per_node() + i}, host, part, parts[i]);
    if (adds_between_gpus() || per_node() == 1)
      return context_.writer.join(lanes_.host_work(host), parts);
    // Reads every GPU's copy and writes the sum.
    const KernelWork adding{.work_class = WorkClass::copy,
                            .is_model_work = false,
                            .bytes = (per_node() + 1) * parcel.bytes.count()};
    return context_.writer.kernel(lanes_.host_work(host), adding, parts);
  }

  OpId add_up(std::uint32_t shard, OpId arrived) {
    const Bytes bytes = pushed_bytes(shards_[shard]);
    const KernelWork adding{.work_class = WorkClass::copy,
                            .is_model_work = false,
                            .bytes = passes_to_add * bytes.count(),
                            .launches = 1};
    const OpId handled = handle(shard, bytes, arrived);
    return context_.writer.kernel(handler_of(shard), adding, std::span(&handled, 1));
  }

  // ---- update ----

  void write_updates() {
    for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) updated_[shard] = write_update(shard);
    if (!options_.servers.updates_weights) {
      context_.carried.ops = updated_;
      return;
    }
    const OpId all = context_.writer.join(lanes_.host_work(context_.cluster.host(0)), updated_);
    context_.carried.ops.assign(shards_.size(), all);
  }

  OpId write_update(std::uint32_t shard) {
    context_.writer.section("update " + name_of(shard), Category::optimizer);
    if (!options_.servers.updates_weights)
      return context_.writer.join(handler_of(shard), pushed_[shard]);
    KernelWork work = next_optimizer_part(shards_[shard].bytes);
    work.is_model_work = false;
    return context_.writer.kernel(handler_of(shard), work, pushed_[shard]);
  }

  Rank server_of(std::uint32_t shard) const { return lanes_.server(shards_[shard].server); }

  void list(std::uint32_t shard, Direction direction, Bytes bytes, std::vector<OpId> begin,
            std::vector<OpId> end) {
    const bool is_sent = direction == Direction::sent;
    const bool once = is_sent ? pushes_once_per_node() : options_.pull_once_per_node;
    CollectiveOps ops;
    ops.begin = begin;
    ops.end = std::move(end);
    context_.communications.push_back({.name = (is_sent ? "push " : "pull ") + name_of(shard),
                                       .payload = is_sent ? Payload::gradients : Payload::parameters,
                                       .op = CollectiveOp::send_recv,
                                       .bytes = shards_[shard].bytes,
                                       .bytes_on_wire = bytes,
                                       .ranks = 2,
                                       .tensors = 1,
                                       .algorithm = "direct",
                                       .protocol = "",
                                       .ready = std::move(begin),
                                       .collective = std::move(ops),
                                       .direction = direction,
                                       .server = shards_[shard].server,
                                       .messages = once ? nodes() : gpus()});
  }

  const StrategyContext& context_;
  const Job& job_;
  const ParameterServerOptions& options_;
  MessageLanes lanes_;
  std::vector<Shard> shards_;
  std::vector<std::vector<std::uint32_t>> shards_of_;  // by gradient
  std::vector<std::uint32_t> priority_;                // by gradient: the layer's place in forward
  std::vector<LaneId> handlers_;                       // by shard
  std::vector<ByGpu> arrived_;                         // by shard
  std::vector<ByGpu> pushed_;                          // by shard
  std::vector<OpId> updated_;                          // by shard
  Bytes optimized_;                                    // of this iteration's optimizer work
};

void write_iteration(const StrategyContext& context) {
  ServerIteration(context).write();
}

// Servers keep the optimizer's states where they update the weights.
MemoryShares memory(const Job& job, std::int64_t) {
  return {.states = job.training.parameter_server.servers.updates_weights ? 0 : 1};
}

std::vector<Host> hosts(const TrainingSpec& training, const ClusterShape& shape) {
  return server_hosts(training.parameter_server.servers, shape);
}

const Registration<Strategy> registration{
    "ps_sync",
    {.write_iteration = write_iteration,
     .description = "synchronous parameter servers, as in TensorFlow and BytePS",
     .accepts = {.options = server_options,
                 .compressions = {CompressionKind::none, CompressionKind::fp16, CompressionKind::bf16},
                 .problems = server_problems},
     .sends = {.at_most = server_traffic_bound},
     .memory = memory,
     .hosts = hosts,
     .servers = stated_servers,
     .reaches_across = true}};

}  // namespace
}  // namespace lockstep
