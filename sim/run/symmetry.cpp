#include "sim/run/symmetry.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lockstep {
namespace {

using Colour = std::uint64_t;

Colour mixed(Colour a, Colour b) {
  Colour hash = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

Colour colour_of(const Link& link) {
  return mixed(static_cast<Colour>(link.bandwidth.count()), static_cast<Colour>(link.latency.picoseconds()));
}

std::size_t count_different(const std::vector<Colour>& colours) {
  return std::unordered_set<Colour>(colours.begin(), colours.end()).size();
}

// The first of its colour stands for a link.
std::vector<LinkId> representatives_of(const std::vector<Colour>& links) {
  std::vector<LinkId> representatives;
  std::unordered_map<Colour, LinkId> first;
  for (std::uint32_t link = 0; link < links.size(); ++link)
    representatives.push_back(first.emplace(links[link], LinkId{link}).first->second);
  return representatives;
}

Symmetry symmetry_of(const std::vector<Colour>& ranks, const std::vector<Colour>& links) {
  std::unordered_map<Colour, std::uint32_t> number;
  std::vector<std::uint32_t> dense;
  for (const Colour colour : ranks)
    dense.push_back(number.emplace(colour, static_cast<std::uint32_t>(number.size())).first->second);
  return {.roles = roles_from_colours(dense), .representative_link = representatives_of(links)};
}

// Until nothing splits. False when that takes too many rounds.
template <class Refine, class Count>
bool refine_until_stable(Refine refine_once, Count count_colours) {
  constexpr int most_rounds = 80;
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
    for (const Link& link : topology.links()) links_.push_back(colour_of(link));
    for (std::uint32_t rank = 0; rank < world.ranks(); ++rank)
      links_[topology.compute_link(Rank{rank}).index] = mixed(ranks_[rank], 1);
  }

  // Colours by load alone: enough when every collective is one op over all its links.
  void colour_by_load() {
    const std::vector<std::uint32_t> crossings = count_crossings(topology_, ring_flows(world_));
    for (std::size_t link = 0; link < links_.size(); ++link)
      links_[link] = mixed(links_[link], crossings[link]);
  }

  bool refine() {
    find_hops();
    return refine_until_stable([this] { refine_once(); }, [this] { return count_colours(); });
  }

  Symmetry symmetry() const { return symmetry_of(ranks_, links_); }

 private:
  void find_hops() {
    for (std::uint32_t ring = 0; ring < world_.rings.size(); ++ring)
      for (std::uint32_t rank = 0; rank < world_.ranks(); ++rank) {
        const Flow flow = world_.flow(ring, Rank{rank});
        hops_.push_back(
            {flow.destination.index, world_.previous(ring, Rank{rank}).index, topology_.hop(flow).links});
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

  std::size_t count_colours() const { return count_different(ranks_) + count_different(links_); }

  const Topology& topology_;
  const Communicator& world_;
  std::vector<Colour> ranks_;
  std::vector<Colour> links_;
  std::vector<RingHop> hops_;  // ring by ring, rank by rank
};

class GroupRefinement {
 public:
  GroupRefinement(const Topology& topology, std::span<const GroupSet> sets,
                  std::span<const SetTraffics> traffics, const std::vector<std::int64_t>& attributes)
      : topology_(topology) {
    for (const std::int64_t attribute : attributes) ranks_.push_back(static_cast<Colour>(attribute));
    for (const Link& link : topology.links()) links_.push_back(colour_of(link));
    touched_.resize(links_.size());
    colour_compute_links();
    for (std::size_t set = 0; set < sets.size(); ++set)
      for (const Group& group : sets[set].groups) {
        groups_.push_back({.group = &group, .colour = mixed(set, group.shape)});
        for (const GroupTraffic& traffic : traffics[set][group.shape]) add(traffic);
        take_crossings();
      }
  }

  bool refine() {
    return refine_until_stable([this] { refine_once(); }, [this] { return count_colours(); });
  }

  Symmetry symmetry() const { return symmetry_of(ranks_, links_); }

 private:
  struct Crossing {
    LinkId link;
    Colour load;  // how often, and by which of the group's algorithms
  };
  struct ColouredGroup {
    const Group* group;
    Colour colour;
    std::vector<Crossing> crossings = {};
  };
  // What the group that is being added does to a link.
  struct Touch {
    Colour load = 0;              // by all of its algorithms
    std::uint32_t crossings = 0;  // by the one that was counted last
  };

  void add(const GroupTraffic& traffic) {
    ColouredGroup& group = groups_.back();
    count_crossings(in_cluster(*group.group, traffic.flows));
    if (traffic.loads_links)
      add_load();
    group.colour =
        mixed(group.colour, traffic.is_chain ? colour_of_chains(traffic) : colour_of_kinds(traffic));
  }

  void add_load() {
    for (const LinkId link : crossed_) {
      if (touched_[link.index].load == 0)
        loaded_.push_back(link);
      touched_[link.index].load += mixed(touched_[link.index].crossings, algorithms_);
    }
    ++algorithms_;
  }

  void count_crossings(const std::vector<Flow>& flows) {
    for (const LinkId link : crossed_) touched_[link.index].crossings = 0;
    crossed_.clear();
    for (const Flow& flow : flows)
      for (const LinkId link : topology_.hop(flow).links) {
        if (touched_[link.index].crossings == 0)
          crossed_.push_back(link);
        touched_[link.index].crossings += flow.weight;
      }
  }

  // Of the group added last: nothing is left of it for the next one.
  void take_crossings() {
    std::vector<Crossing>& crossings = groups_.back().crossings;
    crossings.reserve(loaded_.size());
    for (const LinkId link : loaded_)
      crossings.push_back({link, std::exchange(touched_[link.index].load, 0)});
    loaded_.clear();
    algorithms_ = 0;
  }

  // Where in its round a chain meets a dear hop counts.
  Colour colour_of_chains(const GroupTraffic& traffic) const {
    Colour colour = 0;
    for (const std::vector<Flow>& round : traffic.rounds)
      for (const Flow& flow : round) colour = mixed(colour, colour_of_hop(flow));
    return colour;
  }

  // Hops beside each other: no more counts than which there are.
  Colour colour_of_kinds(const GroupTraffic& traffic) const {
    std::vector<Colour> kinds;
    for (const std::vector<Flow>& round : traffic.rounds)
      for (const Flow& flow : round) {
        const Colour kind = colour_of_hop(flow);
        if (std::ranges::find(kinds, kind) == kinds.end())
          kinds.push_back(kind);
      }
    return std::accumulate(kinds.begin(), kinds.end(), Colour{0});
  }

  // How long it is, and what it has of links that none but its traffic crosses.
  Colour colour_of_hop(const Flow& flow) const {
    const HopRoute hop = topology_.hop(in_cluster(*groups_.back().group, flow));
    Colour colour =
        mixed(static_cast<Colour>(hop.latency.picoseconds()), static_cast<Colour>(hop.slowest_class));
    for (const LinkId link : hop.links)
      colour += mixed(colour_of(topology_.links()[link]), touched_[link.index].crossings);
    return mixed(colour, 7);
  }

  // Sums, because no order of ranks, links or groups means anything.
  void refine_once() {
    std::vector<Colour> crossed(links_.size());
    std::vector<Colour> joined(ranks_.size());
    for (ColouredGroup& group : groups_) {
      Colour sum = 0;
      for (const Rank member : group.group->members) sum += mixed(ranks_[member.index], 3);
      for (const Crossing& crossing : group.crossings)
        sum += mixed(links_[crossing.link.index], crossing.load);
      group.colour = mixed(group.colour, sum);
    }
    for (const ColouredGroup& group : groups_) {
      for (const Rank member : group.group->members) joined[member.index] += mixed(group.colour, 5);
      for (const Crossing& crossing : group.crossings)
        crossed[crossing.link.index] += mixed(group.colour, crossing.load);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank] = mixed(ranks_[rank], joined[rank]);
    for (std::size_t link = 0; link < links_.size(); ++link)
      links_[link] = mixed(links_[link], crossed[link]);
    colour_compute_links();
  }

  void colour_compute_links() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
      links_[topology_.compute_link(Rank{rank}).index] = mixed(ranks_[rank], 1);
  }

  std::size_t count_colours() const { return count_different(ranks_) + count_different(links_); }

  const Topology& topology_;
  std::vector<Colour> ranks_;
  std::vector<Colour> links_;
  std::vector<ColouredGroup> groups_;
  std::vector<Touch> touched_;    // by link
  std::vector<LinkId> crossed_;   // by the flows that were counted last
  std::vector<LinkId> loaded_;    // by the group that is being added
  std::uint32_t algorithms_ = 0;  // of it so far
};

}  // namespace

Symmetry find_symmetry(const Topology& topology, std::span<const GroupSet> sets,
                       std::span<const SetTraffics> traffics, const std::vector<std::int64_t>& attributes) {
  GroupRefinement refinement(topology, sets, traffics, attributes);
  return refinement.refine() ? refinement.symmetry() : no_symmetry(topology);
}

Symmetry no_symmetry(const Topology& topology) {
  Symmetry result;
  result.roles = unfolded_roles(topology.ranks());
  for (const LinkId link : topology.links().ids()) result.representative_link.push_back(link);
  return result;
}

Symmetry split_by_load(const Topology& topology, Symmetry symmetry,
                       const IdVector<TrafficId, Traffic>& traffics) {
  std::vector<Colour> links;
  for (const LinkId representative : symmetry.representative_link) links.push_back(representative.index);
  for (const Traffic& traffic : traffics) {
    const std::vector<std::uint32_t> crossings = count_crossings(topology, traffic.flows);
    for (std::size_t link = 0; link < links.size(); ++link) links[link] = mixed(links[link], crossings[link]);
  }
  symmetry.representative_link = representatives_of(links);
  return symmetry;
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
