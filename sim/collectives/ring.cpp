// The ring: an AllReduce is a reduce-scatter then an all-gather, n - 1 steps each, every rank sending one
// chunk of S / n to its neighbour per step. With several rings each carries an equal part of S.
//
// A step may start when the rank's previous send has left and the chunk of the step before has arrived from
// the other side. Between nodes the narrowest link never rests, so the time is 2(n-1) chunks on it plus one
// latency, unless going round the ring is slower still.
// Chunks are padded to equal size, as NCCL's are: ring_steps rounds S / n up.
//
// Broadcast and reduce are pipelines along the ring; their many small chunks are one coupled transfer at
// both fidelities.

#include <algorithm>

#include "sim/base/check.h"
#include "sim/collectives/collective.h"

namespace lockstep {
namespace {

constexpr std::int64_t million = 1'000'000;

std::int64_t divided_up(std::int64_t amount, std::int64_t by) {
  return (amount + by - 1) / by;
}

bool is_pipeline(CollectiveOp op) {
  return op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
}

// NCCL's slot: what a pipeline hands on at a time.
constexpr Bytes pipeline_chunk{512 * 1024};

Bytes on_the_wire(const CollectiveRequest& request, std::int64_t data) {
  if (request.world.protocols.empty())
    return Bytes{data};
  const std::int64_t payload = request.world.protocols[request.protocol].payload_ppm;
  return Bytes{data / payload * million + divided_up(data % payload * million, payload)};
}

class RingWriter {
 public:
  RingWriter(PlanWriter& writer, const CollectiveRequest& request)
      : writer_(writer), request_(request), world_(request.world), ranks_(writer.representatives()) {}

  CollectiveOps write() {
    open();
    if (world_.ranks() > 1 && request_.bytes > Bytes{0}) {
      if (request_.fidelity == Fidelity::flow || is_pipeline(request_.op))
        write_coupled();
      else
        write_steps();
    }
    close();
    return std::move(ops_);
  }

 private:
  void open() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const OpId ready = request_.after.empty() ? no_op : request_.after[i];
      const OpId begin =
          writer_.take(request_.lanes[i], writer_.kernel_path(ranks_[i]), std::span(&ready, 1));
      ops_.begin.push_back(begin);
      const LaneId launching = writer_.new_channel_lane(ranks_[i]);
      results_.push_back({writer_.delay(launching, launch_time(), std::span(&begin, 1))});
    }
  }

  // A rank alone has nobody to talk to: the library returns at once.
  Duration launch_time() const {
    return world_.ranks() < 2 || world_.protocols.empty() ? Duration::zero()
                                                          : world_.protocols[request_.protocol].launch;
  }

  void close() {
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      ops_.end.push_back(writer_.give_back(request_.lanes[i], writer_.kernel_path(ranks_[i]), results_[i]));
  }

  void write_coupled() {
    const RingSteps steps = ring_steps(request_);
    const bool pipelined = is_pipeline(request_.op);
    const Bytes chained = pipelined ? steps.bytes : steps.bytes * steps.count;
    const PathId path = writer_.coupled_path({.kind = PathKind::coupled,
                                              .shape = {.bytes_per_hop = chained.count(),
                                                        .bytes_per_step = steps.bytes.count(),
                                                        .chain_steps = steps.count},
                                              .protocol = request_.protocol});
    std::vector<OpId> launched;
    for (const auto& result : results_) launched.push_back(result.front());
    const LaneId lane = writer_.new_channel_lane(ranks_.front());
    const Bytes bytes = pipelined ? on_the_wire(request_, per_ring()) : chained;
    const OpId moved = writer_.transfer(lane, path, bytes, launched);
    for (auto& result : results_) result = {moved};
  }

  std::int64_t per_ring() const {
    return divided_up(request_.bytes.count(), static_cast<std::int64_t>(world_.rings.size()));
  }

  void write_steps() {
    const RingSteps steps = ring_steps(request_);
    const std::vector<std::vector<OpId>> launched = results_;
    for (std::uint32_t ring = 0; ring < world_.rings.size(); ++ring) write_ring(ring, steps, launched);
  }

  // Step by step round one ring; `sent` and `before` hold each representative's send of this step and the
  // last one.
  void write_ring(std::uint32_t ring, const RingSteps& steps,
                  const std::vector<std::vector<OpId>>& launched) {
    std::vector<LaneId> lanes;
    std::vector<PathId> paths;
    std::vector<std::size_t> sender;  // index of the representative that stands for the previous rank
    for (const Rank rank : ranks_) {
      lanes.push_back(writer_.new_channel_lane(rank, ring));
      paths.push_back(writer_.hop_path(rank, world_.next(ring, rank), ring, request_.protocol));
      sender.push_back(writer_.representative_index(world_.previous(ring, rank)));
    }
    std::vector<OpId> before(ranks_.size());
    std::vector<OpId> sent(ranks_.size());
    for (std::int64_t step = 0; step < steps.count; ++step) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        const OpId arrived = step == 0 ? launched[i].front() : before[sender[i]];
        sent[i] = writer_.transfer(lanes[i], paths[i], steps.bytes, std::span(&arrived, 1));
      }
      std::swap(before, sent);
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      results_[i].insert(results_[i].end(), {before[i], before[sender[i]]});
  }

  PlanWriter& writer_;
  const CollectiveRequest& request_;
  const Communicator& world_;
  std::span<const Rank> ranks_;
  CollectiveOps ops_;
  std::vector<std::vector<OpId>> results_;  // by representative: what its closing join waits for
};

CollectiveOps write_ring(PlanWriter& writer, const CollectiveRequest& request) {
  return RingWriter(writer, request).write();
}

bool supports_ring(CollectiveOp) {
  return true;
}

const Registration<Collective> registration{
    "ring", {write_ring, supports_ring, "reduce-scatter and all-gather round rings, n - 1 steps each"}};

}  // namespace

RingSteps ring_steps(const CollectiveRequest& request) {
  const auto ranks = static_cast<std::int64_t>(request.world.ranks());
  const auto rings = static_cast<std::int64_t>(request.world.rings.size());
  const std::int64_t per_ring = divided_up(request.bytes.count(), rings);
  if (is_pipeline(request.op)) {
    const std::int64_t chunk = std::min(per_ring, pipeline_chunk.count());
    return {ranks - 1, on_the_wire(request, chunk)};
  }
  const std::int64_t rounds = request.op == CollectiveOp::all_reduce ? 2 : 1;
  return {rounds * (ranks - 1), on_the_wire(request, divided_up(per_ring, ranks))};
}

}  // namespace lockstep
