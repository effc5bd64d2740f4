#include "sim/network/ring_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/check.h"
#include "sim/network/hamilton.h"
#include "sim/network/planning.h"
#include "sim/network/routing.h"
#include "sim/plan/message_channels.h"

namespace lockstep {
namespace {

// A library has at most so many (MAXCHANNELS in NVIDIA/nccl, src/include/device.h).
constexpr std::uint32_t most_channels = 64;
static_assert(most_channels == 2 * most_cycles, "each cycle makes a ring for either direction");

GpuOrder natural_order(std::uint32_t gpus) {
  GpuOrder order(gpus);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

GpuOrder rotated_to_start_at(GpuOrder order, std::uint32_t gpu) {
  std::rotate(order.begin(), std::find(order.begin(), order.end(), gpu), order.end());
  return order;
}

// Where the ranks of a communicator sit: at the same GPUs of so many nodes. Cycles name places among these.
struct Seats {
  std::uint32_t nodes = 1;
  std::vector<std::uint32_t> gpus;  // of a node, ascending
  std::vector<std::uint32_t> nics;  // of a node, that the rings between nodes go through
  Group group;                      // its ranks, and the cluster's channels

  bool has(std::uint32_t gpu) const { return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end(); }
  std::uint32_t place_of(std::uint32_t gpu) const {
    return static_cast<std::uint32_t>(std::find(gpus.begin(), gpus.end(), gpu) - gpus.begin());
  }
};

LinkMatrix part_of(const LinkMatrix& matrix, const std::vector<std::uint32_t>& gpus) {
  LinkMatrix part;
  for (const std::uint32_t row : gpus) {
    part.emplace_back();
    for (const std::uint32_t column : gpus) part.back().push_back(matrix[row][column]);
  }
  return part;
}

bool is_mesh(const MachineSpec& machine) {
  return machine.gpu_links.kind == GpuLinkKind::mesh;
}

// The cycles rings may follow inside a node.
struct NodeCycles {
  std::vector<GpuOrder> orders;
  MeshCycles on_mesh;
};

// On a mesh those its links allow, else any order will do.
NodeCycles node_cycles(const Seats& seats, const MachineSpec& machine) {
  NodeCycles cycles;
  if (is_mesh(machine) && seats.gpus.size() > 1) {
    CycleSet set = find_disjoint_cycles(part_of(machine.gpu_links.matrix, seats.gpus));
    cycles.on_mesh = {.found = static_cast<std::uint32_t>(set.cycles.size()),
                      .bound = static_cast<std::uint32_t>(set.bound),
                      .are_most = set.is_largest};
    cycles.orders = std::move(set.cycles);
  }
  if (cycles.orders.empty())
    cycles.orders = {natural_order(static_cast<std::uint32_t>(seats.gpus.size()))};
  return cycles;
}

// NCCL runs two channels along each ring it finds, and up to 24 over a switch (NVIDIA/nccl
// src/graph/connect.cc).
std::uint32_t channels_of(const MachineSpec& machine, bool has_one_node) {
  if (machine.library == LibraryKind::gloo)
    return 1;
  return machine.gpu_links.kind == GpuLinkKind::nvswitch && has_one_node ? 24 : 2;
}

void add_ring(std::vector<RingPattern>& rings, const GpuOrder& order, std::uint32_t channels) {
  rings.push_back(ring_pattern(order, channels));
}

std::vector<RingPattern> rings_in_node(const std::vector<GpuOrder>& cycles, const MachineSpec& machine) {
  std::vector<RingPattern> rings;
  const auto each_at_most = most_channels / (2 * static_cast<std::uint32_t>(cycles.size()));
  const std::uint32_t channels = std::min(channels_of(machine, true), each_at_most);
  for (const GpuOrder& cycle : cycles) {
    add_ring(rings, cycle, channels);
    if (is_mesh(machine) && cycle.size() > 2)
      add_ring(rings, {cycle.rbegin(), cycle.rend()}, channels);
  }
  return rings;
}

// Both GPUs reach the NIC over the same last link: they hang below one switch or socket.
bool shares_host(const NodeGraph& node, std::uint32_t a, std::uint32_t b, std::uint32_t nic) {
  const auto& from_a = node.path(a, node.nic(nic));
  const auto& from_b = node.path(b, node.nic(nic));
  return !from_a.empty() && !from_b.empty() && from_a.back() == from_b.back();
}

std::size_t distance(const NodeGraph& node, std::uint32_t gpu, std::uint32_t nic) {
  return node.path(node.gpu(gpu), node.nic(nic)).size();
}

std::uint32_t gpu_beside_nic(const Topology& topology, const MachineSpec& machine, const Seats& seats,
                             std::uint32_t nic) {
  for (const std::int64_t near : machine.nics[nic].gpus)
    if (seats.has(static_cast<std::uint32_t>(near)))
      return static_cast<std::uint32_t>(near);
  const std::uint32_t usual = nic * topology.gpus_per_node() / topology.nics_per_node();
  if (seats.has(usual))
    return usual;
  return *std::min_element(seats.gpus.begin(), seats.gpus.end(), [&](std::uint32_t a, std::uint32_t b) {
    return distance(topology.node(), a, nic) < distance(topology.node(), b, nic);
  });
}

// All that the library uses; for a part of a node those beside its GPUs, or else the closest.
std::vector<std::uint32_t> nics_of(const Topology& topology, const MachineSpec& machine, const Seats& seats) {
  if (topology.nics_per_node() == 0)
    return {};
  std::vector<std::uint32_t> all = natural_order(nics_in_use(topology, machine));
  if (seats.gpus.size() == topology.gpus_per_node())
    return all;
  std::vector<std::uint32_t> beside;
  for (const std::uint32_t nic : all) {
    const auto& near = machine.nics[nic].gpus;
    if (std::any_of(near.begin(), near.end(),
                    [&](std::int64_t gpu) { return seats.has(static_cast<std::uint32_t>(gpu)); }))
      beside.push_back(nic);
  }
  if (!beside.empty())
    return beside;
  return {*std::min_element(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) {
    return distance(topology.node(), seats.gpus.front(), a) <
           distance(topology.node(), seats.gpus.front(), b);
  })};
}

// Another GPU as close to the NIC as `entry` is, so that a ring can leave by the NIC it came in by without
// crossing the same PCIe link twice; `entry` itself where there is none.
std::uint32_t partner_beside_nic(const Topology& topology, const Seats& seats, std::uint32_t nic,
                                 std::uint32_t entry) {
  const NodeGraph& node = topology.node();
  for (const std::uint32_t gpu : seats.gpus)
    if (gpu != entry && node.path(gpu, node.nic(nic)).size() == node.path(entry, node.nic(nic)).size() &&
        node.path(gpu, entry).size() > 0 && shares_host(node, gpu, entry, nic))
      return gpu;
  return entry;
}

// The cycle from `entry` round to `partner`, over a switch where any order will do.
GpuOrder from_entry_to_partner(GpuOrder cycle, std::uint32_t entry, std::uint32_t partner) {
  cycle = rotated_to_start_at(std::move(cycle), entry);
  if (partner != entry) {
    cycle.erase(std::find(cycle.begin(), cycle.end(), partner));
    cycle.push_back(partner);
  }
  return cycle;
}

// On a mesh: `usual`, turned to end at `partner` if it passes it first; but where another ring leaves the
// node by the same GPU, another cycle, so that no two share a GPU's way to the network.
GpuOrder cycle_on_mesh(const std::vector<GpuOrder>& cycles, const GpuOrder& usual, std::uint32_t entry,
                       std::uint32_t partner, const std::vector<RingPattern>& rings) {
  const auto is_exit = [&](std::uint32_t gpu) {
    return std::any_of(rings.begin(), rings.end(),
                       [&](const RingPattern& ring) { return ring.local_order.back() == gpu; });
  };
  GpuOrder chosen = rotated_to_start_at(usual, entry);
  if (chosen.size() > 1 && chosen[1] == partner)
    std::reverse(chosen.begin() + 1, chosen.end());
  for (const GpuOrder& cycle : cycles) {
    if (!is_exit(chosen.back()))
      break;
    chosen = rotated_to_start_at(cycle, entry);
  }
  return chosen;
}

// Each cycle again the other way round: links carry as much in both directions.
void append_reversed(std::vector<GpuOrder>& cycles) {
  const std::size_t count = cycles.size();
  for (std::size_t i = 0; i < count; ++i) cycles.emplace_back(cycles[i].rbegin(), cycles[i].rend());
}

// Each NIC carries one ring, which enters the node at the GPU beside it and leaves by it again.
std::vector<RingPattern> rings_that_keep_to_nics(const Topology& topology, const MachineSpec& machine,
                                                 const Seats& seats, std::vector<GpuOrder> cycles) {
  if (is_mesh(machine))
    append_reversed(cycles);
  std::vector<RingPattern> rings;
  for (const std::uint32_t nic : seats.nics) {
    const std::uint32_t beside = gpu_beside_nic(topology, machine, seats, nic);
    const std::uint32_t entry = seats.place_of(beside);
    const std::uint32_t partner = seats.place_of(partner_beside_nic(topology, seats, nic, beside));
    const GpuOrder& usual = cycles[rings.size() % cycles.size()];
    add_ring(rings,
             is_mesh(machine) ? cycle_on_mesh(cycles, usual, entry, partner, rings)
                              : from_entry_to_partner(usual, entry, partner),
             channels_of(machine, false));
  }
  return rings;
}

// Each NIC takes in one ring and lets out another: a path from the GPU beside the one NIC to that beside the
// other makes a ring, and the way back a second. Empty where there are no such paths, or NICs share a GPU.
std::vector<RingPattern> rings_from_nic_to_nic(const Topology& topology, const MachineSpec& machine,
                                               const Seats& seats) {
  std::vector<std::uint32_t> ends;  // by NIC
  for (const std::uint32_t nic : seats.nics)
    ends.push_back(seats.place_of(gpu_beside_nic(topology, machine, seats, nic)));
  if (std::set<std::uint32_t>(ends.begin(), ends.end()).size() < ends.size())
    return {};
  const auto nic_beside = [&](std::uint32_t gpu) {
    return static_cast<std::uint32_t>(std::find(ends.begin(), ends.end(), gpu) - ends.begin());
  };
  std::vector<GpuOrder> paths = find_disjoint_paths(part_of(machine.gpu_links.matrix, seats.gpus), ends);
  append_reversed(paths);
  std::vector<RingPattern> rings(paths.size());
  for (const GpuOrder& path : paths) {
    RingPattern& ring = rings[nic_beside(path.front())];
    ring = ring_pattern(path, channels_of(machine, false));
    ring.exit = nic_beside(path.back());
  }
  return rings;
}

Duration step_cost(const ProtocolCost& protocol, LinkClass link_class) {
  const auto found = protocol.step.find(link_class);
  return found == protocol.step.end() ? Duration::zero() : found->second;
}

struct HopClasses {
  LinkClass in_node = LinkClass::nvlink;
  LinkClass across = LinkClass::nvlink;
};

HopClasses classify_hops(const Topology& topology, const Seats& seats, const Communicator& world) {
  HopClasses classes;
  for (std::uint32_t local = 0; local < world.gpus_per_node && world.ranks() > 1; ++local) {
    const Rank next = world.next(0, Rank{local});
    const bool stays = world.node_of(next) == 0;
    const LinkClass hop = topology.hop(in_cluster(seats.group, world.flow(0, Rank{local}))).slowest_class;
    classes.across = std::max(classes.across, hop);
    if (stays)
      classes.in_node = std::max(classes.in_node, hop);
  }
  return classes;
}

// What the narrowest hop leaves to each of the rings.
Bandwidth narrowest_hop(const Topology& topology, const Seats& seats, const Communicator& world) {
  Bandwidth narrowest{std::numeric_limits<std::int64_t>::max()};
  if (world.ranks() < 2)
    return narrowest;
  const std::vector<std::uint32_t> crossings =
      count_crossings(topology, in_cluster(seats.group, ring_flows(world)));
  for (const LinkId link : topology.links().ids())
    if (crossings[link.index] > 0)
      narrowest = std::min(narrowest, topology.share_of(link, crossings[link.index]));
  return narrowest;
}

// What all rings carry together.
Bandwidth carried_by(const Topology& topology, const Seats& seats, const std::vector<RingPattern>& rings) {
  Communicator world;
  world.nodes = seats.nodes;
  world.gpus_per_node = static_cast<std::uint32_t>(seats.gpus.size());
  world.rings = rings;
  return narrowest_hop(topology, seats, world) * static_cast<std::int64_t>(rings.size());
}

// Rings that change NICs are taken where they carry more.
std::vector<RingPattern> rings_across_nodes(const Topology& topology, const MachineSpec& machine,
                                            const Seats& seats, const std::vector<GpuOrder>& cycles) {
  std::vector<RingPattern> keeping = rings_that_keep_to_nics(topology, machine, seats, cycles);
  if (!is_mesh(machine) || seats.nics.size() < 2)
    return keeping;
  std::vector<RingPattern> changing = rings_from_nic_to_nic(topology, machine, seats);
  const bool carries_more =
      !changing.empty() && carried_by(topology, seats, changing) > carried_by(topology, seats, keeping);
  return carries_more ? changing : keeping;
}

// The part of the wire's bytes that is data: less than the protocol's own where what was measured, or a limit
// on its bandwidth, binds before the rings are full.
Ratio payload_on(const Communicator& world, const ProtocolCost& protocol, LinkClass slowest) {
  const auto fill = protocol.fill.find(slowest);
  Ratio payload = fill == protocol.fill.end() ? protocol.payload : fill->second;
  if (world.ranks() < 2)
    return payload;
  const auto full = (world.ring_bandwidth * static_cast<std::int64_t>(world.rings.size())).count();
  const auto limit_to = [&](Bandwidth limit) {
    payload = std::clamp(ratio_down(limit.count(), full), Ratio::smallest(), payload);
  };
  if (!protocol.most_bandwidth.empty())
    limit_to(protocol.most_bandwidth[std::min<std::size_t>(world.nodes, protocol.most_bandwidth.size()) - 1]);
  return payload;
}

// A forced number of channels keeps as many rings as it can and spreads over them.
void limit_channels(std::vector<RingPattern>& rings, std::uint32_t channels) {
  if (rings.size() > channels)
    rings.resize(channels);
  const auto count = static_cast<std::uint32_t>(rings.size());
  for (std::uint32_t ring = 0; ring < count; ++ring)
    rings[ring].channels = channels / count + (ring < channels % count ? 1 : 0);
}

// Whether `members`, in this order, fill the same GPUs of one node after another.
bool fill_grid(const std::vector<Rank>& members, const std::vector<std::uint32_t>& gpus,
               std::uint32_t gpus_per_node) {
  if (members.size() % gpus.size() != 0)
    return false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t place = i % gpus.size();
    const std::uint32_t node = members[i - place].index / gpus_per_node;
    if (members[i].index != node * gpus_per_node + gpus[place])
      return false;
  }
  return true;
}

Seats find_seats(const Topology& topology, const MachineSpec& machine, std::vector<Rank> members) {
  Seats seats;
  const std::uint32_t gpus = topology.gpus_per_node();
  const std::uint32_t first_node = members.front().index / gpus;
  for (const Rank member : members)
    if (member.index / gpus == first_node)
      seats.gpus.push_back(member.index % gpus);
  LOCKSTEP_CHECK(fill_grid(members, seats.gpus, gpus),
                 "the ranks of a communicator sit at the same GPUs of every node that they are on");
  seats.nodes = static_cast<std::uint32_t>(members.size() / seats.gpus.size());
  if (seats.nodes > 1)
    seats.nics = nics_of(topology, machine, seats);
  seats.group = {.members = std::move(members), .channels = seats.nics};
  return seats;
}

Duration channel_start_of(const Calibration& calibration, std::int64_t library_version) {
  constexpr std::int64_t first_shared = 22'200;
  return library_version > 0 && library_version < first_shared ? calibration.channel_start
                                                               : calibration.shared_channel_start;
}

// Until NCCL 2.8 one channel moves a message between a pair alone, and another joins for every four steps of the buffer,
// 2 MiB (NVIDIA/nccl src/group.cc, ncclGroupEnd of 2.7): the channels that later share it from the start have together
// what one has, for no longer than those bytes take.
PeerFacts peer_facts(const PeerCost& cost, std::int64_t library_version, const Communicator& world) {
  PeerFacts facts{.start = cost.start,
                  .channel_bandwidth = cost.channel_bandwidth.value_or(Bandwidth{0}),
                  .ramp = cost.ramp};
  constexpr std::int64_t first_split = 20'800;
  if (library_version <= 0 || library_version >= first_split || facts.channel_bandwidth == Bandwidth{0})
    return facts;
  constexpr Bytes four_steps{2 * 1024 * 1024};
  facts.ramp = time_to_move(four_steps, facts.channel_bandwidth);
  const std::int64_t share = facts.channel_bandwidth.count() / least_channels_of_message(world);
  facts.channel_bandwidth = Bandwidth{std::max<std::int64_t>(share, 1)};
  return facts;
}

Communicator find_communicator(const Topology& topology, const WorldOptions& options, const Seats& seats) {
  const MachineSpec& machine = options.machine;
  const Calibration& calibration = options.calibration;
  Communicator world;
  world.nodes = seats.nodes;
  world.gpus_per_node = static_cast<std::uint32_t>(seats.gpus.size());
  const NodeCycles cycles = node_cycles(seats, machine);
  world.mesh_cycles = cycles.on_mesh;
  world.rings = seats.nodes == 1 ? rings_in_node(cycles.orders, machine)
                                 : rings_across_nodes(topology, machine, seats, cycles.orders);
  if (world.rings.size() > most_channels)
    limit_channels(world.rings, most_channels);
  if (options.channels)
    limit_channels(world.rings, static_cast<std::uint32_t>(*options.channels));
  world.ring_bandwidth = narrowest_hop(topology, seats, world);
  const HopClasses classes = classify_hops(topology, seats, world);
  for (const ProtocolCost& protocol : calibration.protocols)
    world.protocols.push_back({.name = protocol.name,
                               .payload = payload_on(world, protocol, classes.across),
                               .launch = calibration.collective_launch + protocol.launch,
                               .step = step_cost(protocol, classes.across),
                               .step_in_node = step_cost(protocol, classes.in_node)});
  for (const AlgorithmCost& algorithm : calibration.algorithms)
    world.algorithms.push_back(
        {.name = algorithm.name, .launch = algorithm.launch, .efficiency = algorithm.efficiency});
  world.switch_multicasts = has_multicast(machine, options.compute_capability);
  world.network_reduces = topology.fabric().in_network_reduction;
  const std::size_t both_ways = is_mesh(machine) ? 2 : 1;
  world.planning = plan_as_nccl(topology, options,
                                {.rings = cycles.orders.size() * both_ways,
                                 .nics = nics_of(topology, machine, seats),
                                 .gpus_per_node = world.gpus_per_node});
  world.channel_start = channel_start_of(calibration, options.library_version);
  world.waits_for_cores = calibration.core_wait > Duration::zero();
  world.own_copy_channel_bandwidth = calibration.own_copy_channel_bandwidth.value_or(Bandwidth{0});
  world.hand_on_channel_bandwidth = calibration.peer.channel_bandwidth.value_or(Bandwidth{0});
  if (seats.nodes > 1)
    world.least_message = moved_in(calibration.message_gap, world.ring_bandwidth);
  world.peer = peer_facts(calibration.peer, options.library_version, world);
  return world;
}

}  // namespace

std::string describe(const MeshCycles& cycles) {
  const std::string found = fmt::format("{} cycle{} through the GPUs' links that share none", cycles.found,
                                        cycles.found == 1 ? "" : "s");
  if (cycles.found == most_cycles)
    return found + ", enough for all channels of a library";
  if (cycles.are_most)
    return found + ", the most there are";
  return fmt::format("{}, the best that a search of limited length found; there may be up to {}", found,
                     cycles.bound);
}

Communicator find_world(const Topology& topology, const WorldOptions& options) {
  std::vector<Rank> all;
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) all.push_back(Rank{rank});
  return find_communicator(topology, options, find_seats(topology, options.machine, std::move(all)));
}

// Groups at the same GPUs of as many nodes form the same communicator, and many at other GPUs an equal one.
GroupSet find_groups(const Topology& topology, const WorldOptions& options, const Mesh& mesh,
                     const GroupAxes& wanted) {
  LOCKSTEP_CHECK(mesh.ranks() == topology.ranks(), "every rank of the cluster has a place on its mesh");
  return find_groups(topology, options, {.name = wanted.name, .groups = mesh.lines(wanted.along)});
}

GroupSet find_groups(const Topology& topology, const WorldOptions& options, ListedGroups wanted) {
  GroupSet set{.name = std::move(wanted.name), .shapes = {}, .groups = {}};
  std::map<std::vector<std::uint32_t>, std::uint32_t> shape_at;  // by GPUs of a node
  for (std::vector<Rank>& members : wanted.groups) {
    Seats seats = find_seats(topology, options.machine, std::move(members));
    const auto [known, is_new] = shape_at.try_emplace(seats.gpus);
    if (is_new) {
      Communicator shape = find_communicator(topology, options, seats);
      const auto equal = std::find(set.shapes.begin(), set.shapes.end(), shape);
      known->second = static_cast<std::uint32_t>(equal - set.shapes.begin());
      if (equal == set.shapes.end())
        set.shapes.push_back(std::move(shape));
    }
    set.groups.push_back(std::move(seats.group));
    set.groups.back().shape = known->second;
  }
  return set;
}

}  // namespace lockstep
