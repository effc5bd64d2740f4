// What a collective computes, for every registered algorithm: its plan is replayed on symbols, by its
// dependencies alone.
//
// Knowledge: an op knows what the ops it waits for know, and a rank's opening join knows that rank's part. If
// some rank's closing join could end before every part it needs could have reached it, the plan is wrong
// whatever the times are.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"
#include "tests/support/spelled_out.h"

namespace lockstep::collective_meaning_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10));

MachineSpec machine_of(std::int64_t gpus, std::int64_t nics) {
  MachineSpec machine = switch_machine(gpus, nvlink);
  for (std::int64_t nic = 0; nic < nics; ++nic) machine.nics.push_back({nic_link, {nic}});
  return machine;
}

// Ops in an order that the plan allows: of all that are ready, `pick` says which is next. Lane order counts.
template <class Pick>
std::vector<OpId> allowed_order(const Plan& plan, Pick pick) {
  std::vector<std::uint32_t> waiting = plan.dependency_count;
  std::vector<OpId> ready;
  for (std::uint32_t op = 0; op < plan.size(); ++op)
    if (waiting[op] == 0)
      ready.push_back(OpId{op});
  std::vector<OpId> order;
  const auto satisfy = [&](OpId op) {
    if (op != no_op && --waiting[op.index] == 0)
      ready.push_back(op);
  };
  while (!ready.empty()) {
    const std::size_t chosen = pick(ready.size());
    const OpId op = ready[chosen];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
    order.push_back(op);
    satisfy(plan.next_in_lane[op.index]);
    for (std::uint32_t next = plan.successor_begin[op.index]; next < plan.successor_begin[op.index + 1];
         ++next)
      satisfy(plan.successors[next]);
  }
  return order;
}

std::vector<OpId> first_come_order(const Plan& plan) {
  return allowed_order(plan, [](std::size_t) { return std::size_t{0}; });
}

// Which ranks' parts have flowed into each op. Waiting for one's lane tells nothing: only successor lists
// carry data, and what a rank sends it has from its own earlier ops.
std::vector<std::set<std::uint32_t>> knowledge(const SpelledOut& spelled, const CollectiveOps& ops) {
  const Plan& plan = spelled.plan;
  std::vector<std::set<std::uint32_t>> known(plan.size());
  for (std::uint32_t rank = 0; rank < ops.begin.size(); ++rank)
    known[spelled.ops_of[ops.begin[rank].index].front().index].insert(rank);
  for (const OpId op : first_come_order(plan)) {
    const auto& from = known[op.index];
    for (std::uint32_t next = plan.successor_begin[op.index]; next < plan.successor_begin[op.index + 1];
         ++next)
      known[plan.successors[next].index].insert(from.begin(), from.end());
    const OpId behind = plan.next_in_lane[op.index];
    if (behind != no_op)
      known[behind.index].insert(from.begin(), from.end());
  }
  return known;
}

TEST_CASE("No rank's result can be there before every part it needs could have arrived") {
  for (const auto& [name, collective] : Registry<Collective>::all())
    for (const std::string& op_name : collective_op_names()) {
      const CollectiveOp op = *find_collective_op(op_name);
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
        for (const std::int64_t nodes : {1, 2, 3}) {
          INFO(name, " ", op_name, " on ", nodes, " nodes");
          const TestCluster cluster(machine_of(4, 2), nodes, adding_switch(), {}, hopper_gpus);
          const std::uint32_t ranks = cluster.world().ranks();
          if (!can_run(collective, op, cluster.world()))
            continue;
          const auto written = write_collective(
              cluster.world(), unfolded_roles(ranks),
              {.algorithm = name, .op = op, .bytes = Bytes{1'000'000}, .fidelity = fidelity});
          const SpelledOut spelled = spelled_out(written.plan);
          const auto known = knowledge(spelled, written.ops);
          for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            const auto& at_end = known[spelled.ops_of[written.ops.end[rank].index].back().index];
            if (op == CollectiveOp::broadcast || op == CollectiveOp::scatter)
              CHECK(at_end.contains(0));
            else if (op == CollectiveOp::send_recv)
              CHECK(at_end.contains((rank + ranks - 1) % ranks));
            else if ((op != CollectiveOp::reduce && op != CollectiveOp::gather) || rank == 0)
              CHECK(at_end.size() == ranks);
          }
        }
    }
}

// The ring, chunk by chunk. Rank at place p sends chunk (p - k) mod n in its k-th step; while reducing, the
// receiver adds what comes to its own part, then it replaces. A chunk is a count of every rank's part.
class SymbolicRing {
 public:
  SymbolicRing(const Plan& plan, const Communicator& world, std::uint32_t ring, CollectiveOp op)
      : plan_(plan), world_(world), ring_(ring), op_(op), ranks_(world.ranks()) {
    Rank rank = world.rank_at(0, world.rings[ring].local_order.front());
    for (std::uint32_t place = 0; place < ranks_; ++place, rank = world.next(ring, rank))
      place_[rank.index] = place;
    buffers_.assign(ranks_, std::vector<Parts>(ranks_, Parts(ranks_)));
    for (std::uint32_t owner = 0; owner < ranks_; ++owner)
      for (std::uint32_t chunk = 0; chunk < ranks_; ++chunk)
        if (op != CollectiveOp::all_gather || chunk == place_[owner])
          buffers_[owner][chunk][owner] = 1;
  }

  void replay(OpId id) {
    if (plan_.kind[id.index] != OpKind::transfer)
      return;
    const Path& path = plan_.paths[plan_.path[id.index]];
    if (path.kind != PathKind::hop || path.channel != ring_)
      return;
    const std::uint32_t from = path.rank.index;
    const std::uint32_t step = sent_[from]++;
    const std::uint32_t chunk = (place_[from] + 2 * ranks_ - step) % ranks_;
    const bool reduces =
        op_ == CollectiveOp::reduce_scatter || (op_ == CollectiveOp::all_reduce && step < ranks_ - 1);
    Parts& target = buffers_[path.destination.index][chunk];
    const Parts& data = buffers_[from][chunk];
    for (std::uint32_t part = 0; part < ranks_; ++part)
      target[part] = data[part] + (reduces ? target[part] : 0);
  }

  bool is_complete(std::uint32_t rank, std::uint32_t chunk) const {
    const Parts& parts = buffers_[rank][chunk];
    if (op_ == CollectiveOp::all_gather) {
      for (std::uint32_t part = 0; part < ranks_; ++part)
        if (parts[part] != (place_.at(part) == chunk ? 1 : 0))
          return false;
      return true;
    }
    return std::all_of(parts.begin(), parts.end(), [](int count) { return count == 1; });
  }
  // After n - 1 steps of reducing, the rank at place p has received the last of chunk p + 1.
  std::uint32_t scattered_chunk(std::uint32_t rank) const { return (place_.at(rank) + 1) % ranks_; }

 private:
  using Parts = std::vector<int>;

  const Plan& plan_;
  const Communicator& world_;
  std::uint32_t ring_;
  CollectiveOp op_;
  std::uint32_t ranks_;
  std::map<std::uint32_t, std::uint32_t> place_;
  std::map<std::uint32_t, std::uint32_t> sent_;
  std::vector<std::vector<Parts>> buffers_;  // by rank, by chunk
};

void check_ring(CollectiveOp op, std::int64_t gpus, std::int64_t nodes, std::uint64_t seed) {
  const TestCluster cluster(machine_of(gpus, gpus > 1 ? 2 : 1), nodes);
  const Communicator& world = cluster.world();
  const Plan plan =
      spelled_out(
          write_collective(world, unfolded_roles(world.ranks()), {.op = op, .bytes = Bytes{1'000'000}}).plan)
          .plan;
  // Any order that the dependencies allow must mean the same: here a different one for every seed.
  std::uint64_t draw = 0;
  const auto order = allowed_order(plan, [&](std::size_t ready) {
    return static_cast<std::size_t>(random_below(keyed_random(seed, 0, draw++), ready));
  });
  REQUIRE(order.size() == plan.size());
  for (std::uint32_t ring = 0; ring < world.rings.size(); ++ring) {
    SymbolicRing symbols(plan, world, ring, op);
    for (const OpId id : order) symbols.replay(id);
    for (std::uint32_t rank = 0; rank < world.ranks(); ++rank) {
      INFO(collective_op_name(op), ", ", gpus, " x ", nodes, ", ring ", ring, ", rank ", rank, ", order ",
           seed);
      if (op == CollectiveOp::reduce_scatter)
        CHECK(symbols.is_complete(rank, symbols.scattered_chunk(rank)));
      else
        for (std::uint32_t chunk = 0; chunk < world.ranks(); ++chunk) CHECK(symbols.is_complete(rank, chunk));
    }
  }
}

TEST_CASE("After a ring AllReduce every rank holds every rank's part exactly once, in any order allowed") {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const std::int64_t gpus : {2, 3, 4})
      for (const std::int64_t nodes : {1, 2, 3}) check_ring(CollectiveOp::all_reduce, gpus, nodes, seed);
}

TEST_CASE("After a ring AllGather every rank holds every rank's chunk") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) check_ring(CollectiveOp::all_gather, 4, 2, seed);
}

TEST_CASE("After a ring ReduceScatter every rank holds one chunk with every rank's part exactly once") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) check_ring(CollectiveOp::reduce_scatter, 4, 2, seed);
}

}  // namespace lockstep::collective_meaning_test
