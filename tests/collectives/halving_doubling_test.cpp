// Halving and doubling: what its messages mean, how long they take, how many there are.

#include <doctest/doctest.h>

#include <bit>

#include "tests/collectives/symbolic_buffers.h"

namespace lockstep::halving_doubling_test {

constexpr CollectiveOp halving_ops[]{CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                     CollectiveOp::reduce_scatter};

CollectiveCase halving(CollectiveOp op, std::int64_t bytes, Fidelity fidelity = Fidelity::step) {
  return {.algorithm = "halving_doubling", .op = op, .bytes = Bytes{bytes}, .fidelity = fidelity};
}

// The textbook, told by sets of blocks. Member m is rank m, but of the first 2 extra ranks only the even ones
// are members and the odd ones hand in. In a halving round between m and m ^ d, the blocks of the members
// that equal the receiver modulo 2 d are added; in a doubling round those of members that equal the sender
// replace.
class SymbolicHalving {
 public:
  SymbolicHalving(std::uint32_t ranks, CollectiveOp op)
      : op_(op),
        members_(std::bit_floor(ranks)),
        extra_(ranks - members_),
        blocks_(op == CollectiveOp::all_reduce ? members_ : ranks),
        buffers_(ranks, blocks_) {
    op == CollectiveOp::all_gather ? buffers_.give_each_its_block() : buffers_.give_each_its_part();
  }

  std::uint32_t blocks() const { return blocks_; }
  bool has_result(std::uint32_t rank) const { return buffers_.has_result(rank, op_); }

  // How many blocks the message carries.
  std::int64_t replay(const SentMessage& message) {
    if (is_extra(message.source))
      return op_ == CollectiveOp::all_gather
                 ? replace(message, [&](auto block) { return block == message.source; })
                 : add(message, [&](auto block) { return !is_kept(block, message.source); });
    if (is_extra(message.destination))
      return op_ == CollectiveOp::reduce_scatter
                 ? add(message, [&](auto block) { return block == message.destination; })
                 : replace(message, [&](auto block) { return !is_kept(block, message.destination); });
    const std::uint32_t from = member(message.source);
    const std::uint32_t to = member(message.destination);
    const std::uint32_t side = 2 * (from ^ to);
    const bool is_second = between_.next(from, to) > 0;
    if (op_ == CollectiveOp::all_gather || is_second)
      return replace(message, [&](auto block) { return owner(block) % side == from % side; });
    return add(message, [&](auto block) { return owner(block) % side == to % side; });
  }

 private:
  bool is_extra(std::uint32_t rank) const { return rank < 2 * extra_ && rank % 2 == 1; }
  std::uint32_t member(std::uint32_t rank) const { return rank < 2 * extra_ ? rank / 2 : rank - extra_; }
  std::uint32_t owner(std::uint32_t block) const {
    return op_ == CollectiveOp::all_reduce ? block : member(block);
  }
  // What an extra rank scatters to itself or gathers from itself stays where it is.
  bool is_kept(std::uint32_t block, std::uint32_t extra) const {
    return op_ != CollectiveOp::all_reduce && block == extra;
  }

  template <class Wanted>
  std::int64_t add(const SentMessage& message, Wanted is_wanted) {
    std::int64_t count = 0;
    for (std::uint32_t block = 0; block < blocks_; ++block)
      if (is_wanted(block)) {
        buffers_.add(message, block);
        ++count;
      }
    return count;
  }
  template <class Wanted>
  std::int64_t replace(const SentMessage& message, Wanted is_wanted) {
    std::int64_t count = 0;
    for (std::uint32_t block = 0; block < blocks_; ++block)
      if (is_wanted(block)) {
        buffers_.replace(message, block);
        ++count;
      }
    return count;
  }

  CollectiveOp op_;
  std::uint32_t members_;
  std::uint32_t extra_;
  std::uint32_t blocks_;
  SymbolicBuffers buffers_;
  Occurrences between_;
};

void check_meaning(CollectiveOp op, std::int64_t gpus, std::int64_t nodes, std::uint64_t seed) {
  INFO(collective_op_name(op), " on ", nodes, " x ", gpus, ", order ", seed);
  const std::int64_t bytes = 1'000'000;
  const TestCluster cluster(machine_with_nics(gpus, 1), nodes);
  const std::uint32_t ranks = cluster.world().ranks();
  SymbolicHalving symbols(ranks, op);
  for (const SentMessage& message :
       messages_in_allowed_order(write_on(cluster, halving(op, bytes)).plan, seed)) {
    const std::int64_t blocks = symbols.replay(message);
    CHECK(message.bytes == blocks * divided_up(bytes, symbols.blocks()));
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) CHECK(symbols.has_result(rank));
}

TEST_CASE("After halving and doubling every rank holds its result, every part in it exactly once") {
  for (const CollectiveOp op : halving_ops)
    for (std::uint64_t seed = 0; seed < 5; ++seed)
      for (const std::int64_t gpus : {1, 2, 3, 4, 7})
        for (const std::int64_t nodes : {1, 2, 3, 4}) check_meaning(op, gpus, nodes, seed);
}

// Patarasuk and Yuan's bound, 2 (n-1)/n S, is reached exactly.
TEST_CASE("Of a power of two ranks each sends 2(n-1)/n of the bytes, or half of that") {
  for (const std::int64_t n : {2, 4, 8, 16}) {
    const TestCluster cluster(machine_with_nics(n, 0), 1);
    const auto sent = [&](CollectiveOp op) {
      return bytes_sent_by_rank(write_on(cluster, halving(op, n * 1'000)).plan, cluster.world().ranks());
    };
    const auto all = [&](std::int64_t bytes) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(n), bytes);
    };
    CHECK(sent(CollectiveOp::all_reduce) == all(2 * (n - 1) * 1'000));
    CHECK(sent(CollectiveOp::all_gather) == all((n - 1) * 1'000));
    CHECK(sent(CollectiveOp::reduce_scatter) == all((n - 1) * 1'000));
  }
}

const LinkSpec switch_link = wire(LinkClass::nvlink, Bandwidth{256'000'000'000}, Duration::nanoseconds(350));

Calibration calibration_of_steps() {
  Calibration calibration;
  calibration.collective_launch = Duration::microseconds(5);
  calibration.protocols = {protocol_costing(Duration::nanoseconds(1'234), Duration::zero())};
  return calibration;
}

// Round k of log2 n moves n / 2^k blocks of S / n, and all ranks do alike: S/B halved again and again, each
// time with one hop's latency. The bandwidth is a multiple of the blocks, so that shares are exact.
Duration halving_time(std::int64_t n, Bytes block, Duration hop) {
  Duration time;
  for (std::int64_t blocks = n / 2; blocks > 0; blocks /= 2)
    time += time_to_move(block * blocks, switch_link.bandwidth) + hop;
  return time;
}

TEST_CASE("Over one switch the rounds follow one another, to the picosecond") {
  const Calibration calibration = calibration_of_steps();
  const Duration hop = switch_link.latency * 2 + Duration::nanoseconds(1'234);
  for (const std::int64_t n : {2, 4, 8, 16})
    for (const std::int64_t bytes : {8, 10'000, 1'234'567, 90'000'000})
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        INFO(n, " ranks, ", bytes, " bytes");
        const TestCluster cluster(switch_machine(n, switch_link), 1, {}, calibration);
        const Duration half = halving_time(n, Bytes{divided_up(bytes, n)}, hop);
        const auto time = [&](CollectiveOp op) {
          return run_on(cluster, halving(op, bytes, fidelity)).time() - calibration.collective_launch;
        };
        CHECK(time(CollectiveOp::all_reduce) == half * 2);
        CHECK(time(CollectiveOp::all_gather) == half);
        CHECK(time(CollectiveOp::reduce_scatter) == half);
      }
}

// p of n ranks take part; before and after, all p blocks go to or from each rank that stands for another.
TEST_CASE("Extra ranks cost an AllReduce two moves of everything, to the picosecond") {
  const Calibration calibration = calibration_of_steps();
  const Duration hop = switch_link.latency * 2 + Duration::nanoseconds(1'234);
  for (const auto& [n, taking_part] : {std::pair{3, 2}, std::pair{5, 4}, std::pair{6, 4}, std::pair{12, 8}})
    for (const std::int64_t bytes : {8, 10'000, 1'234'567, 90'000'000})
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        INFO(n, " ranks, ", bytes, " bytes");
        const TestCluster cluster(switch_machine(n, switch_link), 1, {}, calibration);
        const Bytes block{divided_up(bytes, taking_part)};
        const Duration everything = time_to_move(block * taking_part, switch_link.bandwidth) + hop;
        CHECK(run_on(cluster, halving(CollectiveOp::all_reduce, bytes, fidelity)).time() ==
              calibration.collective_launch + everything * 2 + halving_time(taking_part, block, hop) * 2);
      }
}

// 8 GPUs a node, N = 4: distances 1, 2, 4 stay in the node with halves of S/2, S/4, S/8; 8 and 16 cross it
// with S/16 and S/32. So a rank's NIC sees 2 (S/16 + S/32) of the 2 (n-1)/n S that it sends.
TEST_CASE("The large halves stay inside the node") {
  const TestCluster cluster(machine_with_nics(8, 8), 4);
  const std::int64_t bytes = 32 * 1'000;
  std::map<std::uint32_t, std::int64_t> across;
  for (const SentMessage& message :
       messages_in_allowed_order(write_on(cluster, halving(CollectiveOp::all_reduce, bytes)).plan, 0))
    if (message.source / 8 != message.destination / 8)
      across[message.source] += message.bytes;
  CHECK(across.size() == 32);
  for (const auto& [rank, crossed] : across) CHECK(crossed == 2 * (bytes / 16 + bytes / 32));
}

TEST_CASE("There are log2 n rounds each way, and two more where there are extra ranks") {
  for (const auto& [n, rounds] : {std::pair{2, 1}, std::pair{8, 3}, std::pair{16, 4}, std::pair{5, 2}}) {
    const TestCluster cluster(machine_with_nics(n, 0), 1);
    const std::int64_t handing = std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 2;
    const auto count = [&](CollectiveOp op) {
      return count_transfers(write_on(cluster, halving(op, 8'000, Fidelity::flow)).plan);
    };
    CHECK(count(CollectiveOp::all_reduce) == 2 * rounds + handing);
    CHECK(count(CollectiveOp::all_gather) == rounds + handing);
    CHECK(count(CollectiveOp::reduce_scatter) == rounds + handing);
  }
}

}  // namespace lockstep::halving_doubling_test
