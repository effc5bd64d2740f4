#pragma once

// The narrow waist of Lockstep: everything that will happen, as flat arrays.
//
// Problem:   a collective or a strategy must say what happens without knowing when.
// Idea:      four kinds of op (delay, transfer, relay, join) joined by dependencies and lanes. Writers
//            append ops; the runner prices kernels, routes paths and lets the engine give every op a
//            start and an end.
// Invariant: a plan holds no physics: ranks, bytes and work, never links or seconds (fixed delays and
//            measured durations excepted, which the scenario states).
// Cost:      about 33 bytes an op, 4 more where priorities are stated; a relay costs as much however many
//            messages it has, so that a ring of 1,024 ranks is a thousand ops and not two million.

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"

namespace lockstep {

using OpId = Id<struct OpTag>;
using LaneId = Id<struct LaneTag>;
using PathId = Id<struct PathTag>;
using KernelId = Id<struct KernelTag>;
using TrafficId = Id<struct TrafficTag>;
using Rank = Id<struct RankTag>;

inline constexpr OpId no_op{0xffffffff};
inline constexpr PathId no_path{0xffffffff};
inline constexpr TrafficId no_traffic{0xffffffff};

// delay:    takes its amount of picoseconds: launches, host work, fixed costs.
// transfer: moves its amount over a path; how long that takes is decided by the network.
// relay:    transfers of its amount one after another, each of which hands on what another rank sent in the
//           step before (see Relay).
// join:     takes no time and fans dependencies in. With amount +1 it takes what its path reserves and a
//           slot of its lane; with -1 it returns them. A collective stands between such a pair.
enum class OpKind : std::uint8_t { delay, transfer, relay, join };

// What a stretch of time is charged to in the report.
enum class Category : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  gradient_copy,
  host_overhead,
  communication,
  pipeline_bubble,
  input_stall,
  checkpoint,
  other
};

// A lane is a stream: `slots` ops at a time. A CUDA stream has one slot; Gloo's worker pool has one per
// collective in flight. `copy` is a GPU's copy engine, `host` work that a host does for many, `issue` the thread
// that launches a GPU's kernels.
enum class LaneKind : std::uint8_t { compute, communication, channel, copy, host, issue };

// in_order:   ops start in the order they were written.
// when_ready: of the ops whose dependencies have ended, the one with the lowest priority number starts
//             first, and of equals the one that was ready first. What runs is never interrupted.
enum class Discipline : std::uint8_t { in_order, when_ready };

struct Lane {
  Rank rank{};
  LaneKind kind = LaneKind::compute;
  std::uint32_t index = 0;
  std::uint32_t slots = 1;
  Discipline discipline = Discipline::in_order;
};

enum class PathKind : std::uint8_t {
  kernel,   // work on the compute capacity of `rank`
  hop,      // bytes from one rank to another on `channel`
  coupled,  // a whole collective: every hop at once (fidelity `flow`)
};

inline constexpr std::uint32_t own_channel = 0xffffffff;

// What one rank sends another while a coupled transfer moves its amount once, `weight` times that amount. It
// reaches another node by the NIC of its channel, and leaves by that of `exit`.
struct Flow {
  Rank source{};
  Rank destination{};
  std::uint32_t channel = 0;
  std::uint32_t weight = 1;
  std::uint32_t exit = own_channel;
};

// Everything a coupled transfer moves at once, all ranks together, and the rounds of hops that its chains of
// dependent messages go along, again and again, one chain for each round.
struct Traffic {
  std::vector<Flow> flows;
  std::vector<std::vector<Flow>> rounds;
  std::vector<Flow> alike = {};  // what the groups that this one stands for move meanwhile
  std::string name = {};         // among those of its cluster; empty: of this plan alone
};

std::int64_t flow_count(const Traffic& traffic);

// The chains inside a coupled transfer: each has `chain_steps` messages of `bytes_per_step`, one after
// another; `bytes_per_hop` of these move while the transfer itself does, and each comes `late` by what its sender takes
// beside the wire. A hop whose message's length matters states `bytes_per_step` alone.
struct CoupledShape {
  std::int64_t bytes_per_hop = 0;
  std::int64_t bytes_per_step = 0;
  std::int64_t chain_steps = 0;
  Duration late = {};
  auto operator<=>(const CoupledShape&) const = default;
};

inline constexpr std::uint8_t no_algorithm = 0xff;

// What bounds a kernel, in parts of its time: its multiplications, and memory; the rest is launches. Multiplications
// whose blocks fill few waves feel more of what takes SMs from them, and count as more than all of its time.
struct KernelBound {
  static constexpr std::int64_t parts = 16;
  std::uint8_t multiplying = 0;
  std::uint8_t moving = 0;
  auto operator<=>(const KernelBound&) const = default;
};

// What a collective takes of each of its GPUs while it runs: a block on an SM for every channel, and the memory
// bandwidth of what it sends, at the speed its communicator plans with.
struct HeldByCollective {
  std::uint32_t channels = 0;
  Bandwidth sent = {};
  auto operator<=>(const HeldByCollective&) const = default;
};

struct Path {
  PathKind kind = PathKind::kernel;
  Rank rank{};                            // kernel: whose compute; hop: the source
  Rank destination{};                     // hop
  std::uint32_t channel = 0;              // hop: which ring
  std::uint32_t exit = own_channel;       // hop: the channel by whose NIC it leaves its node
  KernelBound bound = {};                 // kernel: once it is priced
  HeldByCollective held = {};             // kernel: by a collective that reserves
  std::uint32_t multiplicity = 1;         // identical channels folded into one op
  TrafficId traffic = no_traffic;         // coupled
  CoupledShape shape{};                   // coupled, and hop
  std::uint8_t protocol = 0;              // index into the communicator's protocols
  std::uint8_t algorithm = no_algorithm;  // and into its algorithms
  auto operator<=>(const Path&) const = default;
};

inline constexpr std::uint32_t no_products = 0xffffffff;

enum class WorkClass : std::uint8_t { matmul, vector, copy, optimizer, fixed };

// The work of one kernel, or of a run of kernels that nothing interrupts. `duration` is stated by a
// measured model and then replaces the rest.
struct KernelWork {
  WorkClass work_class = WorkClass::fixed;
  bool is_model_work = true;  // part of the single-GPU step, scaled by its anchor
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  std::int64_t launches = 0;
  std::int64_t library_launches = 0;  // of those, the ones that a library makes within an operator
  Duration duration{};
  // Where the shapes are known: which of the job's runs of products this is, and what is moved beside them.
  std::uint32_t products = no_products;
  std::optional<KernelBound> bound = {};  // stated with a duration; else it follows from what the parts take
  std::int64_t passes = 0;
  std::int64_t pass_bytes = 0;
  bool operator==(const KernelWork&) const = default;
};

// What a ring is made of. Message k of op `op` starts when message k - 1 has left its lane and message k - 1
// of `feeder`, itself a relay, has arrived; the first when the op's own dependencies have ended. The op ends
// when its last message has arrived. Spelled out as transfers, the same would happen.
struct Relay {
  OpId op;
  OpId feeder = no_op;
  std::uint32_t messages = 1;
  // Where its messages stand among those of all relays: relays written together step by step, as they are
  // sent.
  std::uint32_t first_message = 0;
  std::uint32_t stride = 1;

  std::uint32_t place(std::uint32_t message) const { return first_message + message * stride; }
};

// Words that outlive what tells them, ended by a zero: half as long as a view, since a plan tells many of them.
class Text {
 public:
  constexpr Text(const char* words = "") : words_(words) {}
  constexpr operator std::string_view() const { return words_; }

 private:
  const char* words_;
};

constexpr bool operator==(Text one, std::string_view other) {
  return std::string_view(one) == other;
}

// Ops [first, next section's first) share a name and a category: names cost nothing per op.
struct Section {
  static constexpr std::uint32_t most_names = 1u << 24;

  OpId first;
  std::uint32_t name : 24;  // index into Plan::names
  Category category : 8 = Category::other;
};
static_assert(sizeof(Section) == 8);

struct Plan {
  std::vector<OpKind> kind;
  std::vector<LaneId> lane;
  std::vector<std::int64_t> amount;  // delay: ps; transfer: bytes or ps of work; join: +1, 0, -1
  std::vector<PathId> path;          // transfers, and joins that reserve
  std::vector<OpId> next_in_lane;    // the op that may start when this one leaves the lane
  std::vector<std::uint32_t> dependency_count;
  std::vector<std::uint32_t> successor_begin;  // ops + 1 offsets into successors
  std::vector<OpId> successors;
  std::vector<std::uint32_t> priority;  // on lanes that run when ready; empty: 0 everywhere

  IdVector<LaneId, Lane> lanes;
  IdVector<PathId, Path> paths;
  IdVector<TrafficId, Traffic> traffics;
  IdVector<KernelId, KernelWork> kernels;
  std::vector<std::pair<OpId, KernelId>> kernel_of;  // ascending by op
  std::vector<Relay> relays;                         // likewise
  std::size_t message_count = 0;                     // of all relays together
  std::vector<Section> sections;
  std::vector<std::string> names;
  std::deque<std::string> texts;  // of what is told of the plan's collectives: each stays where it is

  std::size_t size() const { return kind.size(); }
  // Ops, a relay counted once for each of its messages: what starts and ends.
  std::size_t step_count() const { return size() - relays.size() + message_count; }
};

// The relay that `op`, of that kind, is. Cost: a binary search.
const Relay& relay_of(const Plan& plan, OpId op);
std::uint32_t relay_index(const Plan& plan, OpId op);

// The section an op was written in. Cost: a binary search.
const Section& section_of(const Plan& plan, OpId op);

}  // namespace lockstep
