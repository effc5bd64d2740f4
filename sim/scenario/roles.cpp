#include "sim/scenario/roles.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace lockstep {
namespace {

using Colour = std::uint64_t;

Colour mixed(Colour a, Colour b) {
  Colour hash = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

// A rank on a ring: where it sends and what that crosses.
struct RingHop {
  std::uint32_t next;
  std::uint32_t previous;
  std::vector<LinkId> links;
};

class Refinement {
 public:
  Refinement(const Topology& topology, const Communicator& world, const std::vector<std::int64_t>& attributes)
      : topology_(topology), world_(world) {
    for (std::uint32_t rank = 0; rank < world.ranks(); ++rank)
      ranks_.push_back(static_cast<Colour>(attributes[rank]));
    for (const Link& link : topology.links())
      links_.push_back(mixed(static_cast<Colour>(link.bandwidth.count()),
                             static_cast<Colour>(link.latency.picoseconds())));
    for (std::uint32_t rank = 0; rank < world.ranks(); ++rank)
      links_[topology.compute_link(Rank{rank}).index] = mixed(ranks_[rank], 1);
  }

  // Colours by load alone: enough when every collective is one op over all its links.
  void colour_by_load() {
    const std::vector<std::uint32_t> crossings = count_crossings(topology_, ring_flows(world_));
    for (std::size_t link = 0; link < links_.size(); ++link)
      links_[link] = mixed(links_[link], crossings[link]);
  }

  // Until nothing splits. False when that takes too many rounds.
  bool refine() {
    find_hops();
    std::size_t colours = count_colours();
    for (int round = 0; round < most_rounds; ++round) {
      refine_once();
      const std::size_t refined = count_colours();
      if (refined == colours)
        return true;
      colours = refined;
    }
    return false;
  }

  Symmetry symmetry() const {
    Symmetry result;
    result.roles = roles_from_colours(dense(ranks_));
    std::unordered_map<Colour, LinkId> first;
    for (std::uint32_t link = 0; link < links_.size(); ++link)
      result.representative_link.push_back(first.emplace(links_[link], LinkId{link}).first->second);
    return result;
  }

 private:
  static constexpr int most_rounds = 80;

  void find_hops() {
    for (std::uint32_t ring = 0; ring < world_.rings.size(); ++ring)
      for (std::uint32_t rank = 0; rank < world_.ranks(); ++rank) {
        const Rank next = world_.next(ring, Rank{rank});
        hops_.push_back({next.index, world_.previous(ring, Rank{rank}).index,
                         topology_.hop(Rank{rank}, next, nic_of_ring(topology_, ring)).links});
      }
  }

  void refine_once() {
    const std::vector<Colour> ranks = ranks_;
    std::vector<Colour> crossed(links_.size());
    for (std::size_t index = 0; index < hops_.size(); ++index) {
      const std::size_t ring = index / ranks.size();
      const std::size_t rank = index % ranks.size();
      const RingHop& hop = hops_[index];
      Colour colour = mixed(mixed(ranks_[rank], ring), mixed(ranks[hop.next], ranks[hop.previous] * 3));
      for (const LinkId link : hop.links) {
        colour = mixed(colour, links_[link.index]);
        // A sum does not depend on the order in which the crossing ranks are met.
        crossed[link.index] += mixed(ranks[rank], ring + 17);
      }
      ranks_[rank] = colour;
    }
    for (std::size_t link = 0; link < links_.size(); ++link)
      links_[link] = mixed(links_[link], crossed[link]);
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
      links_[topology_.compute_link(Rank{rank}).index] = mixed(ranks_[rank], 1);
  }

  std::size_t count_colours() const {
    return std::unordered_set<Colour>(ranks_.begin(), ranks_.end()).size() +
           std::unordered_set<Colour>(links_.begin(), links_.end()).size();
  }

  static std::vector<std::uint32_t> dense(const std::vector<Colour>& colours) {
    std::unordered_map<Colour, std::uint32_t> number;
    std::vector<std::uint32_t> result;
    for (const Colour colour : colours)
      result.push_back(number.emplace(colour, static_cast<std::uint32_t>(number.size())).first->second);
    return result;
  }

  const Topology& topology_;
  const Communicator& world_;
  std::vector<Colour> ranks_;
  std::vector<Colour> links_;
  std::vector<RingHop> hops_;  // ring by ring, rank by rank
};

}  // namespace

Symmetry no_symmetry(const Topology& topology) {
  Symmetry result;
  result.roles = unfolded_roles(topology.ranks());
  for (const LinkId link : topology.links().ids()) result.representative_link.push_back(link);
  return result;
}

Symmetry find_symmetry(const Topology& topology, const Communicator& world, Fidelity fidelity,
                       const std::vector<std::int64_t>& attributes) {
  Refinement refinement(topology, world, attributes);
  if (fidelity == Fidelity::flow) {
    refinement.colour_by_load();
    return refinement.symmetry();
  }
  return refinement.refine() ? refinement.symmetry() : no_symmetry(topology);
}

}  // namespace lockstep
