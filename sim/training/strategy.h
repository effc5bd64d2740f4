#pragma once

// The contract of a training strategy: write one iteration for every representative rank.
//
// Problem:   strategies differ in when they send what; everything else about a step is alike.
// Idea:      a strategy makes a synchroniser, which appends its messages where a schedule tells it that a
//            layer's pass is written, following whatever already stands on the ranks' lanes. What it sends,
//            step_writer lists as it writes it.
// Invariant: a strategy names ranks, bytes and work, never links or seconds.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/registry.h"
#include "sim/collectives/collective.h"
#include "sim/plan/host.h"
#include "sim/plan/plan_writer.h"
#include "sim/training/input.h"
#include "sim/training/job.h"
#include "sim/training/memory_change.h"
#include "sim/training/option_list.h"
#include "sim/training/process_group.h"
#include "sim/training/traffic_bound.h"

namespace lockstep {

class HostLane;
class KnownChoices;
class Synchroniser;

// What a message is about: the published volumes of strategies count gradients and parameters.
enum class Payload : std::uint8_t { gradients, parameters, activations, other };

// A collective is exchanged; a message to a parameter server is sent, one from it received.
enum class Direction : std::uint8_t { exchanged, sent, received };

inline constexpr std::uint32_t no_server = 0xffffffff;

// What one representative does in a collective.
struct Participation {
  OpId ready =
      no_op;  // after which its part is there; of a message between stages, who sends it alone has one
  OpId begin = no_op;
  OpId end = no_op;
  std::uint32_t group = 0;  // which of the groups that run it side by side it is in
};

// One collective of an iteration, or all messages of one kind between workers and a server. Texts are the plan's
// (PlanWriter::text). Of the representatives only those from `first` to its last are listed: a message between two
// stages is as short whatever stands beside it.
struct Communication {
  Text name;
  Payload payload = Payload::gradients;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;                // as nccl-tests counts them, before compression
  Bytes bytes_on_wire;        // after it
  std::uint32_t ranks = 1;    // of its communicator
  std::uint32_t tensors = 0;  // that travel in it
  Text dimension = "data";    // of the layout, along which its ranks lie
  Text algorithm;
  Text protocol;
  Direction direction = Direction::exchanged;
  std::uint32_t server = no_server;  // the other end of messages
  std::uint32_t messages = 1;        // alike, one for each rank or node
  std::uint32_t first = 0;           // the representative that `taking_part` begins with
  std::vector<Participation> taking_part = {};

  std::size_t last() const { return first + taking_part.size(); }
  // Whether a representative is among its ranks: stages of a pipeline have messages of their own.
  bool has(std::size_t representative) const {
    return representative >= first && representative < last() && of(representative).begin != no_op;
  }
  const Participation& of(std::size_t representative) const { return taking_part[representative - first]; }
  // A message, told of both its ends.
  bool is_between_stages() const { return dimension == "pipeline"; }
  // Whether it comes to a representative from another stage.
  bool comes_to(std::size_t representative) const {
    return has(representative) && of(representative).ready == no_op && is_between_stages();
  }
};

// Grows in pieces: a pipeline's iteration has hundreds of thousands, and a copy of all while they grow is dear.
using Communications = std::deque<Communication>;

// By place in a list that `roles` translates to representatives (empty: they are the same): `participation` of each
// place. Cost: linear in the range that the roles span.
template <class ParticipationOf>
void take_part(Communication& communication, std::size_t places, std::span<const std::uint32_t> roles,
               const ParticipationOf& participation_of) {
  const auto role_of = [&](std::size_t place) {
    return roles.empty() ? static_cast<std::uint32_t>(place) : roles[place];
  };
  if (places == 0)
    return;
  std::uint32_t last = communication.first = role_of(0);
  for (std::size_t place = 1; place < places; ++place) {
    communication.first = std::min(communication.first, role_of(place));
    last = std::max(last, role_of(place));
  }
  communication.taking_part.resize(last - communication.first + 1);
  for (std::size_t place = 0; place < places; ++place)
    communication.taking_part[role_of(place) - communication.first] = participation_of(place);
}

// Where a rehearsal looks; by representative.
struct WatchedOps {
  std::vector<OpId> start;                   // of the iteration
  std::vector<std::vector<OpId>> gradients;  // by gradient: the end of its computation
};

struct IterationOps {
  OpId first;  // ops [first, last) make up the iteration
  OpId last;
  Communications communications;
  MemoryChanges memory;  // of the last iteration of a run
  WatchedOps watched;    // empty, unless the strategy rehearses
};

// What was seen there: from the start of the iteration, of the latest rank.
struct Rehearsal {
  std::vector<Duration> ready;  // by gradient
  Duration reducing;            // all reductions of gradients, one after another
};

// What an iteration leaves to the next, as its strategy reads it: lanes that live on, and ops that the next
// waits for. Empty before the first.
struct Carried {
  std::vector<LaneId> lanes;
  std::vector<OpId> ops;
  std::vector<Carried> of_kinds = {};  // of dense parameters and experts apart
};

// What is of the whole cluster, whatever group a strategy is told: all GPUs, and the hosts that it asked for.
struct ClusterRanks {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::span<const Host> hosts = {};

  std::uint32_t gpus() const { return nodes * gpus_per_node; }
  Rank host(std::size_t index) const { return Rank{gpus() + static_cast<std::uint32_t>(index)}; }
};

struct StrategyContext {
  PlanWriter& writer;
  const Job& job;
  const ProcessGroup& group;                // whose gradients it synchronises
  std::span<const ProcessGroup> subgroups;  // as it asked for them
  std::span<const LaneId> compute;          // by representative
  ClusterRanks cluster;
  Communications& communications;  // of this iteration; filled by write_collective
  Carried& carried;
  WatchedOps& watched;  // filled by strategies that rehearse
  std::int64_t iteration = 0;
  bool is_first_iteration = false;
  InputPipeline* input = nullptr;   // null: batches are always there
  HostLane* host = nullptr;         // null: it is never behind
  MemoryChanges* memory = nullptr;  // null: nobody asks
  std::span<const std::uint32_t> roles =
      {};                           // of those whom it writes for, in the whole; empty: they are the whole
  KnownChoices* choices = nullptr;  // that are remembered; null: each is made anew

  // Null: not asked for.
  const ProcessGroup* subgroup(std::string_view name) const;
};

// Into how many parts what every GPU of a plain data-parallel step holds is divided (0: none of it is on the
// GPU), and what the strategy holds besides.
struct MemoryShares {
  std::int64_t weights = 1;
  std::int64_t gradients = 1;
  std::int64_t states = 1;  // 0: the strategy itself tells who holds them
  Bytes buffers = {};       // buckets, and gradients on their way
  Bytes gathered = {};      // weights that every rank keeps whole beside its part
};

// What the ranks divide between them, and with it all that stands before it.
enum class Partition : std::uint8_t {
  nothing,
  states,  // of the optimizer
  gradients,
  weights,  // but for small ones
  every_weight,
  every_weight_in_groups,  // of ranks; each group has the whole
};

// What a strategy may know of the cluster before it is built.
struct ClusterShape {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::uint32_t sockets = 1;
  bool has_nics = true;

  std::int64_t ranks() const { return std::int64_t{nodes} * gpus_per_node; }
};

// How often in a step so many ranks wait for one another amid their computing.
struct Coupling {
  std::int64_t ranks = 1;
  std::int64_t times = 1;
};

struct Trial {
  std::string name;  // what differs, in words
  TrainingSpec training;
};

// What is wrong with an option that was stated; "strategy" is one of them.
struct OptionProblem {
  std::string_view key;
  std::string text;
};

// The option by which threads of the hosts reduce in the GPUs' place.
struct HostReduction {
  std::string_view key;
  std::string_view stated;   // what it says
  std::string_view instead;  // what it would say, did the GPUs reduce
};

// What a scenario may say with a strategy, asked while it is loaded.
struct Accepted {
  OptionList (*options)(TrainingSpec& training) = nullptr;  // of its own; null: none
  std::vector<CompressionKind> compressions = {CompressionKind::none};
  std::string_view instead_of_compression = {};  // its option for the type of what it sends, if it has one
  bool gradient_clipping = false;
  // What does not go together, or with the cluster. Null: everything does.
  std::vector<OptionProblem> (*problems)(const TrainingSpec& training, const ClusterShape& shape) = nullptr;
  std::string_view batches = {};  // where no rank loads its own: "batches ...", so that `input` is refused
  bool one_gpu_only = false;      // the baseline of all others
};

// What is sent, asked before anything is built.
struct Sending {
  // A bound that no iteration exceeds. Null: nothing is sent.
  TrafficBound (*at_most)(const TrafficInput& input) = nullptr;
  // Iterations from one average of the weights to the next. Null: every iteration reduces its gradients.
  std::int64_t (*period)(const TrainingSpec& training) = nullptr;
  // Whether gradients of every micro-batch are reduced. Null: their sums in the last alone.
  bool (*every_micro_batch)(const TrainingSpec& training) = nullptr;
  std::string_view once_by = {};  // the option by which they are not, if there is one
};

// A key that may be stated beside a strategy, and does not reach it.
struct UnusedKey {
  std::string_view key;  // "communication.timeout"
  std::string_view why;
};

struct Strategy {
  std::unique_ptr<Synchroniser> (*synchroniser)(const StrategyContext& context);
  std::string description;
  Accepted accepts = {};
  Sending sends = {};
  // Null: it uses whatever may be stated beside it.
  std::vector<UnusedKey> (*unused)(const TrainingSpec& training) = nullptr;

  // ---- what a GPU holds ----
  MemoryShares (*memory)(const Job& job, std::int64_t ranks) = nullptr;  // null: everything whole
  Partition partition = Partition::nothing;
  // How many tensors its optimizer updates, where parameters lie in flat ones. Null: each parameter is one.
  std::int64_t (*updated_tensors)(const Job& job) = nullptr;

  // ---- who takes part ----
  bool has_leader = false;  // rank 0 does what no other does: nobody stands for others
  // Where a leader works between the others' passes: the order as well, not a schedule's. Null: under one.
  void (*write_iteration)(const StrategyContext& context) = nullptr;
  // The subgroups its collectives run in instead of all of its ranks together; null or none: no others.
  MeshGroups (*groups)(const TrainingSpec& training, std::uint32_t ranks) = nullptr;
  // Hosts that send or receive; ranks are then simulated one by one. Null: none.
  std::vector<Host> (*hosts)(const TrainingSpec& training, const ClusterShape& shape) = nullptr;
  // That workers pull weights from and push gradients to. Null: none.
  const ServerSpec& (*servers)(const TrainingSpec& training) = nullptr;
  // Where they meet more often than once a step, when gradients are reduced. Null: they do not.
  Coupling (*coupling)(const Job& job, std::int64_t ranks) = nullptr;
  // Null or none: GPUs reduce.
  std::optional<HostReduction> (*host_reduction)(const TrainingSpec& training) = nullptr;

  // ---- how a run is simulated ----
  // Where what is sent together depends on when it is ready: the strategy is run, seen, and written again with
  // the answer in Job::fused, until that stands still. Null: it does not depend.
  std::vector<FusedGroup> (*fuse)(const Job& job, const Rehearsal& seen, std::int64_t ranks) = nullptr;
  // Options that are tried in turn, the fastest to be kept. Null or none: those stated.
  std::vector<Trial> (*variants)(const TrainingSpec& stated) = nullptr;
  bool is_asynchronous = false;  // the plan is one worker's computing; the update loop does the rest
  bool reaches_across = false;   // from one iteration into the next, beyond the ranks' lanes
};

// Of a name that load has accepted.
const Strategy& strategy_named(std::string_view name);

// Names in the order in which they are told: what divides less before what divides more, who waits for others
// before who does not.
std::vector<std::string> strategies_in_order();

// The one that trains on one GPU, against which the others are measured.
const std::string& one_gpu_strategy();

std::int64_t period_of(const TrainingSpec& training);
bool reduces_every_micro_batch(const TrainingSpec& training);
bool reduces_on_hosts(const TrainingSpec& training);
// Whether gradients are added up in a buffer of their own, which may be wider than they are: Megatron-LM's, and
// DeepSpeed's where it partitions nothing (runtime/bf16_optimizer.py).
bool sums_apart(const TrainingSpec& training);

}  // namespace lockstep
