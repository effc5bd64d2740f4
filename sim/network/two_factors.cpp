#include "sim/network/two_factors.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/base/random.h"

namespace lockstep {
namespace {

constexpr std::uint32_t nobody = 0xffffffff;
constexpr std::uint64_t most_attempts = 8;
constexpr std::uint64_t most_draws = 400'000;

// Random numbers one after another, the same on every run.
class Lot {
 public:
  explicit Lot(std::uint64_t attempt) : attempt_(attempt) {}

  std::uint32_t below(std::size_t bound) {
    return static_cast<std::uint32_t>(random_below(keyed_random(attempt_, 0, drawn_++), bound));
  }

 private:
  std::uint64_t attempt_;
  std::uint64_t drawn_ = 0;
};

constexpr std::uint64_t most_meetings = 10'000;

// Pairs of joined GPUs, drawn by lot: who meets one that is paired takes it over, and the one left looks on.
class Pairing {
 public:
  Pairing(const LinkMatrix& links, const std::vector<std::uint32_t>& gpus, Lot& lot)
      : partner_(links.size(), nobody) {
    std::vector<std::vector<std::uint32_t>> joined(links.size());
    for (const std::uint32_t a : gpus)
      for (const std::uint32_t b : gpus)
        if (links[a][b] > 0)
          joined[a].push_back(b);
    for (const std::uint32_t gpu : gpus)
      if (partner_[gpu] == nobody)
        find_partners(gpu, joined, lot);
  }

  // nobody: alone.
  std::uint32_t partner_of(std::uint32_t gpu) const { return partner_[gpu]; }

 private:
  void find_partners(std::uint32_t seeker, const std::vector<std::vector<std::uint32_t>>& joined, Lot& lot) {
    for (std::uint64_t meeting = 0; meeting < most_meetings && seeker != nobody; ++meeting) {
      if (joined[seeker].empty())
        return;
      const std::uint32_t met = joined[seeker][lot.below(joined[seeker].size())];
      const std::uint32_t left = partner_[met];
      if (left != nobody)
        partner_[left] = nobody;
      partner_[met] = seeker;
      partner_[seeker] = met;
      seeker = left;
    }
  }

  std::vector<std::uint32_t> partner_;
};

// Every link as an arc of one direction, walked as tours so that a GPU has as many arcs in as out. GPUs of odd
// degree leave out one link each, between two of them; what odd ones there are then are joined to one more
// vertex.
class Orientation {
 public:
  Orientation(LinkMatrix links, Lot& lot) : left_(std::move(links)), lot_(lot), gpus_(left_.size()) {
    part_odd_pairs();
    join_odd_gpus();
    arcs_.assign(gpus_, std::vector<std::int64_t>(gpus_));
    for (std::uint32_t start = 0; start < left_.size(); ++start)
      while (walk_from(start)) {
      }
  }

  const LinkMatrix& arcs() const { return arcs_; }

 private:
  bool is_odd(std::uint32_t gpu) const {
    return std::accumulate(left_[gpu].begin(), left_[gpu].end(), std::int64_t{0}) % 2 == 1;
  }

  std::vector<std::uint32_t> odd_gpus() const {
    std::vector<std::uint32_t> odd;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu)
      if (is_odd(gpu))
        odd.push_back(gpu);
    return odd;
  }

  void part_odd_pairs() {
    const std::vector<std::uint32_t> odd = odd_gpus();
    const Pairing pairing(left_, odd, lot_);
    for (const std::uint32_t gpu : odd)
      if (pairing.partner_of(gpu) != nobody)
        --left_[gpu][pairing.partner_of(gpu)];
  }

  void join_odd_gpus() {
    std::vector<std::int64_t> joined(gpus_ + 1);
    for (const std::uint32_t gpu : odd_gpus()) joined[gpu] = 1;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) left_[gpu].push_back(joined[gpu]);
    left_.push_back(std::move(joined));
  }

  // A closed walk over links that are left: with even degrees it can only end where it began.
  bool walk_from(std::uint32_t start) {
    std::uint32_t at = start;
    for (std::uint32_t next = neighbour_of(at); next != nobody; next = neighbour_of(at)) {
      --left_[at][next];
      --left_[next][at];
      if (at < gpus_ && next < gpus_)
        ++arcs_[at][next];
      at = next;
    }
    return at != start;
  }

  std::uint32_t neighbour_of(std::uint32_t gpu) {
    const std::size_t count = left_.size();
    const std::uint32_t first = lot_.below(count);
    for (std::size_t turn = 0; turn < count; ++turn)
      if (const auto other = static_cast<std::uint32_t>((first + turn) % count); left_[gpu][other] > 0)
        return other;
    return nobody;
  }

  LinkMatrix left_;
  Lot& lot_;
  std::size_t gpus_;
  LinkMatrix arcs_;
};

// A perfect matching of senders to receivers over arcs that are left, by augmenting paths (Kuhn 1955).
class Matching {
 public:
  explicit Matching(const LinkMatrix& arcs) : arcs_(arcs), sender_of_(arcs.size(), nobody) {}

  // By sender; empty where there is no perfect one.
  std::vector<std::uint32_t> find() {
    for (std::uint32_t sender = 0; sender < arcs_.size(); ++sender) {
      tried_.assign(arcs_.size(), false);
      if (!place(sender))
        return {};
    }
    std::vector<std::uint32_t> receiver_of(arcs_.size());
    for (std::uint32_t receiver = 0; receiver < arcs_.size(); ++receiver)
      receiver_of[sender_of_[receiver]] = receiver;
    return receiver_of;
  }

 private:
  bool place(std::uint32_t sender) {
    for (std::uint32_t receiver = 0; receiver < arcs_.size(); ++receiver) {
      if (arcs_[sender][receiver] == 0 || tried_[receiver])
        continue;
      tried_[receiver] = true;
      if (sender_of_[receiver] == nobody || place(sender_of_[receiver])) {
        sender_of_[receiver] = sender;
        return true;
      }
    }
    return false;
  }

  const LinkMatrix& arcs_;
  std::vector<std::uint32_t> sender_of_;  // by receiver
  std::vector<bool> tried_;
};

// Cycles that together pass every GPU once. Two GPUs joined by two links are a cycle as well.
class TwoFactor {
 public:
  explicit TwoFactor(const std::vector<std::uint32_t>& receiver_of) : beside_(receiver_of.size()) {
    for (std::uint32_t sender = 0; sender < receiver_of.size(); ++sender) {
      beside_[sender][0] = receiver_of[sender];
      beside_[receiver_of[sender]][1] = sender;
    }
    std::vector<bool> seen(beside_.size());
    for (std::uint32_t gpu = 0; gpu < beside_.size(); ++gpu) cycles_ += visit(gpu, seen) ? 1 : 0;
  }

  std::int64_t cycles() const { return cycles_; }
  bool joins(std::uint32_t a, std::uint32_t b) const { return beside_[a][0] == b || beside_[a][1] == b; }
  std::uint32_t beside(std::uint32_t gpu, std::size_t side) const { return beside_[gpu][side]; }

  // How many cycles more there are with b-c and d-a in place of a-b and c-d.
  std::int64_t change(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) const {
    std::uint32_t before = a;
    for (std::uint32_t at = b; at != a; std::swap(before, at)) {
      if (at == c)
        return +1;
      if (at == d)
        return 0;
      before = after(at, before);
    }
    return -1;
  }

  void exchange(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    cycles_ += change(a, b, c, d);
    replace(a, b, d);
    replace(b, a, c);
    replace(c, d, b);
    replace(d, c, a);
  }

  GpuOrder cycle_from_first() const {
    GpuOrder order{0};
    std::uint32_t before = beside_[0][1];
    for (std::uint32_t at = 0; after(at, before) != 0;) {
      const std::uint32_t next = after(at, before);
      order.push_back(next);
      before = at;
      at = next;
    }
    return order;
  }

 private:
  std::uint32_t after(std::uint32_t gpu, std::uint32_t before) const {
    return beside_[gpu][0] == before ? beside_[gpu][1] : beside_[gpu][0];
  }

  void replace(std::uint32_t gpu, std::uint32_t old, std::uint32_t other) {
    beside_[gpu][beside_[gpu][0] == old ? 0 : 1] = other;
  }

  bool visit(std::uint32_t gpu, std::vector<bool>& seen) const {
    if (seen[gpu])
      return false;
    for (std::uint32_t at = gpu; !seen[at]; at = beside_[at][0]) seen[at] = true;
    return true;
  }

  std::vector<std::array<std::uint32_t, 2>> beside_;
  std::int64_t cycles_ = 0;
};

class FactorMerger {
 public:
  FactorMerger(const LinkMatrix& matrix, std::size_t wanted, std::uint64_t attempt)
      : unused_(matrix), lot_(attempt) {
    for (std::vector<std::int64_t>& row : unused_)
      for (std::int64_t& links : row) links = std::min(links, static_cast<std::int64_t>(wanted));
    take_factors(Orientation(unused_, lot_).arcs(), wanted);
  }

  std::vector<GpuOrder> run() {
    for (std::uint64_t draw = 0; draw < most_draws && find_unfinished() != nobody; ++draw) try_exchange();
    std::vector<GpuOrder> cycles;
    for (const TwoFactor& factor : factors_)
      if (factor.cycles() == 1)
        cycles.push_back(factor.cycle_from_first());
    return cycles;
  }

 private:
  void take_factors(LinkMatrix arcs, std::size_t wanted) {
    while (factors_.size() < wanted) {
      const std::vector<std::uint32_t> receiver_of = Matching(arcs).find();
      if (receiver_of.empty())
        return;
      for (std::uint32_t sender = 0; sender < receiver_of.size(); ++sender) {
        --arcs[sender][receiver_of[sender]];
        take(sender, receiver_of[sender], -1);
      }
      factors_.emplace_back(receiver_of);
    }
  }

  void take(std::uint32_t a, std::uint32_t b, std::int64_t change) {
    unused_[a][b] += change;
    unused_[b][a] += change;
  }

  std::uint32_t find_unfinished() const {
    for (std::uint32_t factor = 0; factor < factors_.size(); ++factor)
      if (factors_[factor].cycles() > 1)
        return factor;
    return nobody;
  }

  // A square a-b-c-d: a-b and c-d in a factor of several cycles, b-c and d-a in another or unused.
  void try_exchange() {
    TwoFactor& own = factors_[find_unfinished()];
    const std::uint32_t a = lot_.below(unused_.size());
    const std::uint32_t b = own.beside(a, lot_.below(2));
    const std::uint32_t giver = lot_.below(factors_.size() + 1);
    const bool is_unused = giver == factors_.size();
    const std::uint32_t c = is_unused ? lot_.below(unused_.size()) : factors_[giver].beside(b, lot_.below(2));
    const std::uint32_t d = own.beside(c, lot_.below(2));
    if (c == a || c == b || d == a || d == b || (!is_unused && &factors_[giver] == &own))
      return;
    if (is_unused)
      exchange_unused(own, {a, b, c, d});
    else if (factors_[giver].joins(d, a))
      exchange_factors(own, factors_[giver], {a, b, c, d});
  }

  struct Square {
    std::uint32_t a, b, c, d;
  };

  void exchange_unused(TwoFactor& own, const Square& at) {
    if (unused_[at.b][at.c] == 0 || unused_[at.d][at.a] == 0 || own.change(at.a, at.b, at.c, at.d) > 0)
      return;
    own.exchange(at.a, at.b, at.c, at.d);
    take(at.a, at.b, +1);
    take(at.c, at.d, +1);
    take(at.b, at.c, -1);
    take(at.d, at.a, -1);
  }

  static void exchange_factors(TwoFactor& own, TwoFactor& other, const Square& at) {
    if (own.change(at.a, at.b, at.c, at.d) + other.change(at.b, at.c, at.d, at.a) > 0)
      return;
    own.exchange(at.a, at.b, at.c, at.d);
    other.exchange(at.b, at.c, at.d, at.a);
  }

  LinkMatrix unused_;
  Lot lot_;
  std::vector<TwoFactor> factors_;
};

}  // namespace

std::vector<GpuOrder> merge_two_factors(const LinkMatrix& matrix, std::size_t wanted) {
  std::vector<GpuOrder> best;
  for (std::uint64_t attempt = 0; attempt < most_attempts && best.size() < wanted; ++attempt) {
    std::vector<GpuOrder> found = FactorMerger(matrix, wanted, attempt).run();
    if (found.size() > best.size())
      best = std::move(found);
  }
  return best;
}

}  // namespace lockstep
