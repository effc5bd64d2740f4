#pragma once

// A plan's transfers replayed on symbols: what every rank holds is counted, block by block and part by part.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/collectives/collective_frame.h"
#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep {

struct SentMessage {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint32_t channel;
  std::int64_t bytes;
};

// The messages of a plan at fidelity `step` in one of the orders that its dependencies and lanes allow; every
// seed draws another.
inline std::vector<SentMessage> messages_in_allowed_order(const Plan& plan, std::uint64_t seed) {
  std::vector<std::uint32_t> waiting = plan.dependency_count;
  std::vector<OpId> ready;
  for (std::uint32_t op = 0; op < plan.size(); ++op)
    if (waiting[op] == 0)
      ready.push_back(OpId{op});
  const auto satisfy = [&](OpId op) {
    if (op != no_op && --waiting[op.index] == 0)
      ready.push_back(op);
  };
  std::vector<SentMessage> messages;
  for (std::uint64_t draw = 0; !ready.empty(); ++draw) {
    std::swap(ready[random_below(keyed_random(seed, 0, draw), ready.size())], ready.back());
    const std::uint32_t op = ready.back().index;
    ready.pop_back();
    if (plan.kind[op] == OpKind::transfer) {
      const Path& path = plan.paths[plan.path[op]];
      messages.push_back({path.rank.index, path.destination.index, path.channel, plan.amount[op]});
    }
    satisfy(plan.next_in_lane[op]);
    for (std::uint32_t next = plan.successor_begin[op]; next < plan.successor_begin[op + 1]; ++next)
      satisfy(plan.successors[next]);
  }
  return messages;
}

// Block `block` of rank `rank` as a count of each rank's part in it.
class SymbolicBuffers {
 public:
  SymbolicBuffers(std::uint32_t ranks, std::uint32_t blocks)
      : blocks_(ranks, std::vector<Parts>(blocks, Parts(ranks))) {}

  // Every rank has its own part of every block: what reductions start from.
  void give_each_its_part() {
    for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank)
      for (Parts& block : blocks_[rank]) block[rank] = 1;
  }
  // Every rank has its own block: what an all-gather starts from.
  void give_each_its_block() {
    for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) blocks_[rank][rank][rank] = 1;
  }

  void add(const SentMessage& message, std::uint32_t block) {
    const Parts& data = blocks_[message.source][block];
    Parts& target = blocks_[message.destination][block];
    for (std::size_t part = 0; part < data.size(); ++part) target[part] += data[part];
  }
  void replace(const SentMessage& message, std::uint32_t block) {
    blocks_[message.destination][block] = blocks_[message.source][block];
  }

  bool is_sum(std::uint32_t rank, std::uint32_t block) const {
    return blocks_[rank][block] == Parts(blocks_.size(), 1);
  }
  bool is_all_sums(std::uint32_t rank) const {
    for (std::uint32_t block = 0; block < blocks_[rank].size(); ++block)
      if (!is_sum(rank, block))
        return false;
    return true;
  }
  bool is_every_block(std::uint32_t rank) const {
    for (std::uint32_t block = 0; block < blocks_[rank].size(); ++block) {
      Parts own(blocks_.size());
      own[block] = 1;
      if (blocks_[rank][block] != own)
        return false;
    }
    return true;
  }
  // The result that `op` promises a rank.
  bool has_result(std::uint32_t rank, CollectiveOp op) const {
    if (op == CollectiveOp::reduce_scatter)
      return is_sum(rank, rank);
    return op == CollectiveOp::all_gather ? is_every_block(rank) : is_all_sums(rank);
  }

 private:
  using Parts = std::vector<int>;
  std::vector<std::vector<Parts>> blocks_;
};

// How often something has been met before.
class Occurrences {
 public:
  std::uint32_t next(std::uint32_t a, std::uint32_t b) { return met_[{a, b}]++; }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> met_;
};

inline std::vector<std::int64_t> bytes_sent_by_rank(const Plan& plan, std::uint32_t ranks) {
  std::vector<std::int64_t> sent(ranks);
  for (const SentMessage& message : messages_in_allowed_order(plan, 0)) sent[message.source] += message.bytes;
  return sent;
}

inline std::int64_t count_transfers(const Plan& plan) {
  return std::count(plan.kind.begin(), plan.kind.end(), OpKind::transfer);
}

// GPUs round a switch of round numbers, each NIC beside a GPU of its own.
inline MachineSpec machine_with_nics(std::int64_t gpus, std::int64_t nics) {
  MachineSpec machine = switch_machine(gpus, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  for (std::int64_t nic = 0; nic < nics; ++nic)
    machine.nics.push_back({wire(LinkClass::network, gigabytes_per_second(10)), {nic * gpus / nics}});
  return machine;
}

inline CollectiveRun run_on(const TestCluster& cluster, const CollectiveCase& wanted) {
  return run_collective(cluster.topology(), cluster.world(), cluster.calibration(), wanted);
}

inline WrittenCollective write_on(const TestCluster& cluster, const CollectiveCase& wanted) {
  return write_collective(cluster.world(), unfolded_roles(cluster.world().ranks()), wanted);
}

inline constexpr Bandwidth divisible_bandwidth{360'360'000'000};  // by all of 1 .. 16

}  // namespace lockstep
