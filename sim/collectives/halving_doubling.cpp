// Recursive halving and doubling: an AllReduce is a reduce-scatter by halving, then an all-gather by
// doubling, log2 n rounds each.
//
// In a halving round a rank gives its partner the half that the partner will keep and adds the half it gets;
// in a doubling round, in the reverse order, partners give each other all they have. The first partners are
// neighbours (distance 1, then 2, 4 ...), so that the large halves stay inside the node. Of n ranks the
// largest power of two, p, take part; each of the n - p extra ones, the odd ranks below 2(n-p), first hands
// its data to the rank before it and gets the result back in the end. A message is split over the channels
// beside its sender.
//
// A message is a number of blocks: S / p for an AllReduce, S / n else, where a rank that stands for an extra
// one keeps both their blocks. Blocks are padded to equal size.
//
// Time: with n = p over one switch of bandwidth B: 2 (n-1)/n S/B + 2 log2 n L for an AllReduce, half of it
// for the others; with extra ranks an AllReduce takes p for n and 2 (S/B + L) more.
// Reference: Rabenseifner 2004, "Optimization of Collective Reduction Operations"; Thakur, Rabenseifner and
//            Gropp 2005, "Optimization of Collective Communication Operations in MPICH".

#include <bit>

#include "sim/collectives/pairwise.h"

namespace lockstep {
namespace {

enum class Move : std::uint8_t { hand_in, halve, doubling, hand_back };

struct Round {
  Move move;
  std::uint32_t distance;  // between partners, counted over those who take part
};

class Halving {
 public:
  explicit Halving(const CollectiveRequest& request)
      : world_(request.world),
        op_(request.op),
        taking_part_(std::bit_floor(request.world.ranks())),
        extra_(request.world.ranks() - taking_part_) {}

  std::vector<Round> rounds() const {
    std::vector<Round> result;
    if (extra_ > 0)
      result.push_back({Move::hand_in, 0});
    if (op_ != CollectiveOp::all_gather)
      for (std::uint32_t distance = 1; distance < taking_part_; distance *= 2)
        result.push_back({Move::halve, distance});
    if (op_ != CollectiveOp::reduce_scatter)
      for (std::uint32_t distance = taking_part_ / 2; distance > 0; distance /= 2)
        result.push_back({Move::doubling, distance});
    if (extra_ > 0)
      result.push_back({Move::hand_back, 0});
    return result;
  }

  std::uint32_t blocks() const { return op_ == CollectiveOp::all_reduce ? taking_part_ : world_.ranks(); }

  std::vector<Flow> flows(const Round& round) const {
    MessageList list(world_);
    if (round.move == Move::hand_in || round.move == Move::hand_back)
      for (std::uint32_t member = 0; member < extra_; ++member) add_extra(round.move, member, list);
    else
      for (std::uint32_t member = 0; member < taking_part_; ++member) add_member(round, member, list);
    return std::move(list).flows();
  }

 private:
  Rank rank_of(std::uint32_t member) const { return Rank{member < extra_ ? 2 * member : member + extra_}; }

  // An extra rank hands in all but what it gathers or keeps by itself, and gets back what it lacks.
  void add_extra(Move move, std::uint32_t member, MessageList& list) const {
    const Rank stand_in = rank_of(member);
    const Rank extra{stand_in.index + 1};
    const bool hands_in = move == Move::hand_in;
    const bool is_one_block = op_ == (hands_in ? CollectiveOp::all_gather : CollectiveOp::reduce_scatter);
    const std::uint32_t all = op_ == CollectiveOp::all_reduce ? blocks() : blocks() - 1;
    list.add(hands_in ? extra : stand_in, hands_in ? stand_in : extra, is_one_block ? 1 : all);
  }

  // Halving, a member gives what its partner's side keeps; doubling, what its own side has.
  void add_member(const Round& round, std::uint32_t member, MessageList& list) const {
    const std::uint32_t partner = member ^ round.distance;
    const std::uint32_t side = round.move == Move::halve ? partner : member;
    list.add(rank_of(member), rank_of(partner), blocks_of_side(side, 2 * round.distance));
  }

  // The blocks of all members that are `side` modulo `sides`.
  std::uint32_t blocks_of_side(std::uint32_t side, std::uint32_t sides) const {
    const std::uint32_t members = taking_part_ / sides;
    const std::uint32_t first = side % sides;
    if (op_ == CollectiveOp::all_reduce || first >= extra_)
      return members;
    return members + divided_up(extra_ - first, sides);
  }

  const Communicator& world_;
  CollectiveOp op_;
  std::uint32_t taking_part_;
  std::uint32_t extra_;
};

Traffic halving_traffic(const CollectiveRequest& request, std::size_t round) {
  const Halving halving(request);
  const std::vector<Flow> flows = halving.flows(halving.rounds()[round]);
  return {.flows = flows, .rounds = {flows}};
}

std::vector<std::string> exchange_names(const CollectiveRequest& request) {
  std::vector<std::string> names;
  for (std::size_t round = 0; round < Halving(request).rounds().size(); ++round)
    names.push_back("halving_doubling " + std::string(collective_op_name(request.op)) + " " +
                    std::to_string(round));
  return names;
}

CollectiveOps write_halving_doubling(PlanWriter& writer, const CollectiveRequest& request) {
  CollectiveFrame frame(writer, request, "halving_doubling");
  if (frame.moves_anything())
    write_exchange(writer, request, frame,
                   {.rounds = exchange_names(request),
                    .block = frame.on_the_wire(bytes_per_block(request, Halving(request).blocks())),
                    .traffic = halving_traffic,
                    .ready = all_launched(frame)});
  return frame.close();
}

bool supports_halving_doubling(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
         op == CollectiveOp::reduce_scatter;
}

const Registration<Collective> halving_doubling_registration{
    "halving_doubling",
    {write_halving_doubling, supports_halving_doubling,
     "reduce-scatter by recursive halving and all-gather by recursive doubling, log2 n rounds each"}};

}  // namespace
}  // namespace lockstep
