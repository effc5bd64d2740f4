#include "sim/training/server_messages.h"

#include <algorithm>

namespace lockstep {

ServerMessages::ServerMessages(const StrategyContext& context)
    : context_(context),
      job_(context.job),
      options_(context.job.training.parameter_server),
      lanes_(context),
      shards_(place_shards(job_.gradients, options_.servers)),
      priority_(job_.gradients.size()) {
  choose_handlers();
  find_priorities();
}

void ServerMessages::choose_handlers() {
  const std::size_t each = lanes_.handlers_per_server();
  std::vector<Bytes> loads(static_cast<std::size_t>(options_.servers.count) * each);
  for (const Shard& shard : shards_) {
    const auto first = loads.begin() + static_cast<std::ptrdiff_t>(shard.server * each);
    const auto least = std::min_element(first, first + static_cast<std::ptrdiff_t>(each));
    *least += shard.bytes;
    handlers_.push_back(lanes_.handler(shard.server, static_cast<std::uint32_t>(least - first)));
  }
}

void ServerMessages::find_priorities() {
  for (std::uint32_t layer = 0; layer < job_.layers.size(); ++layer)
    for (const std::uint32_t gradient : job_.layers[layer].gradients) priority_[gradient] = layer;
}

std::uint32_t ServerMessages::priority_of(const Shard& shard) const {
  return options_.scheduling == ServerScheduling::priority ? priority_[shard.gradient] : 0;
}

// fp32 gradients travel as half precision; the weights that servers hand out do not.
Bytes ServerMessages::pushed_bytes(const Shard& shard) const {
  const std::uint32_t element = job_.gradients[shard.gradient].element_bytes;
  const bool halves = job_.training.compression.kind != CompressionKind::none && element > 2;
  return halves ? Bytes{shard.bytes.count() / element * 2} : shard.bytes;
}

Bytes ServerMessages::pulled_bytes(const Shard& shard) const {
  return options_.servers.updates_weights ? shard.bytes : pushed_bytes(shard);
}

std::string ServerMessages::name_of(std::uint32_t shard) const {
  return job_.gradients[shards_[shard].gradient].name;
}

Bytes ServerMessages::part_for_gpu(Bytes whole) const {
  return adds_between_gpus() ? divided_up(whole, per_node()) : whole;
}

// What a handler does with a message before, or after, it is on the wire.
OpId ServerMessages::handle(std::uint32_t shard, Bytes bytes, OpId after) {
  if (options_.servers.transport != ServerTransport::grpc || !options_.servers.handler_bandwidth)
    return after;
  return context_.writer.delay(handlers_[shard], time_to_move(bytes, *options_.servers.handler_bandwidth),
                               std::span(&after, 1));
}

ServerMessages::ByGpu ServerMessages::pull(std::uint32_t shard, OpId after) {
  context_.writer.section("pull " + name_of(shard), Category::communication);
  const MessageLanes::Parcel parcel{pulled_bytes(shards_[shard]), priority_of(shards_[shard])};
  const OpId begin = context_.writer.join(lanes_.host_work(context_.cluster.host(0)), std::span(&after, 1));
  ByGpu arrived(gpus());
  if (options_.pull_once_per_node)
    for (std::uint32_t node = 0; node < nodes(); ++node) pull_to_node(shard, node, parcel, begin, arrived);
  else
    for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu)
      arrived[gpu] = lanes_.send(server_of(shard), Rank{gpu}, parcel, handle(shard, parcel.bytes, begin));
  list(shard, Direction::received, parcel.bytes, ByGpu(gpus(), begin), arrived);
  return arrived;
}

void ServerMessages::pull_to_node(std::uint32_t shard, std::uint32_t node, const MessageLanes::Parcel& parcel,
                                  OpId begin, ByGpu& arrived) {
  const Rank host = context_.cluster.host(node);
  const OpId here = lanes_.send(server_of(shard), host, parcel, handle(shard, parcel.bytes, begin));
  const MessageLanes::Parcel part{part_for_gpu(parcel.bytes), parcel.priority};
  std::vector<OpId> copies;
  for (std::uint32_t gpu = node * per_node(); gpu < (node + 1) * per_node(); ++gpu)
    copies.push_back(lanes_.send(host, Rank{gpu}, part, here));
  const OpId whole = adds_between_gpus() ? lanes_.exchange_in_node(node, parcel, copies) : no_op;
  for (std::uint32_t i = 0; i < per_node(); ++i)
    arrived[node * per_node() + i] = adds_between_gpus() ? whole : copies[i];
}

ServerMessages::ByGpu ServerMessages::push(std::uint32_t shard, const ByGpu& ready) {
  context_.writer.section("push " + name_of(shard), Category::communication);
  const MessageLanes::Parcel parcel{pushed_bytes(shards_[shard]), priority_of(shards_[shard])};
  ByGpu added(gpus());
  if (pushes_once_per_node())
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      const OpId sum = add_up(shard, lanes_.send(context_.cluster.host(node), server_of(shard), parcel,
                                                 gather_on_host(node, parcel, ready)));
      std::fill_n(added.begin() + node * per_node(), per_node(), sum);
    }
  else
    for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu)
      added[gpu] = add_up(shard, lanes_.send(Rank{gpu}, server_of(shard), parcel, ready[gpu]));
  list(shard, Direction::sent, parcel.bytes, ready, added);
  return added;
}

// The sum of a node's gradients in its host's memory.
OpId ServerMessages::gather_on_host(std::uint32_t node, const MessageLanes::Parcel& parcel,
                                    const ByGpu& ready) {
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

OpId ServerMessages::add_up(std::uint32_t shard, OpId arrived) {
  const Bytes bytes = pushed_bytes(shards_[shard]);
  const KernelWork adding{.work_class = WorkClass::copy,
                          .is_model_work = false,
                          .bytes = passes_to_add * bytes.count(),
                          .launches = 1};
  const OpId handled = handle(shard, bytes, arrived);
  return context_.writer.kernel(handlers_[shard], adding, std::span(&handled, 1));
}

OpId ServerMessages::update(std::uint32_t shard, const ByGpu& added, const KernelWork* work) {
  context_.writer.section("update " + name_of(shard), Category::optimizer);
  return work == nullptr ? context_.writer.join(handlers_[shard], added)
                         : context_.writer.kernel(handlers_[shard], *work, added);
}

OpId ServerMessages::all_of(std::span<const OpId> updated) {
  return context_.writer.join(lanes_.host_work(context_.cluster.host(0)), updated);
}

void ServerMessages::list(std::uint32_t shard, Direction direction, Bytes bytes, ByGpu begin, ByGpu end) {
  const bool is_sent = direction == Direction::sent;
  const bool once = is_sent ? pushes_once_per_node() : options_.pull_once_per_node;
  Communication entry{.name = context_.writer.text((is_sent ? "push " : "pull ") + name_of(shard)),
                      .payload = is_sent ? Payload::gradients : Payload::parameters,
                      .op = CollectiveOp::send_recv,
                      .bytes = shards_[shard].bytes,
                      .bytes_on_wire = bytes,
                      .ranks = 2,
                      .tensors = 1,
                      .algorithm = "direct",
                      .protocol = "",
                      .direction = direction,
                      .server = shards_[shard].server,
                      .messages = once ? nodes() : gpus()};
  take_part(entry, begin.size(), context_.roles, [&](std::size_t place) -> Participation {
    return {begin[place], begin[place], end[place]};
  });
  context_.communications.push_back(std::move(entry));
}

}  // namespace lockstep
