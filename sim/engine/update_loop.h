#pragma once

// Workers that compute gradients and servers that apply them, update by update.
//
// Problem:   without a barrier nothing repeats: who reads what depends on everything before, so there is no
//            plan to write, and a thousand workers at one server are a thousand flows on one port.
// Idea:      an event loop of its own. A worker pulls the weights, computes, pushes its gradient and waits
//            for it to be applied. Workers are alike but for their speed, so the network is one shared port a
//            direction; every update touches every server at the same moments, so the slowest server is the
//            server. Synchronous servers and all-reduced rounds run in the same loop under the same draws, to
//            be compared.
// Invariant: integers only; a draw depends on (seed, rank, iteration) alone, so all rules meet the same
//            disturbances.
// Cost:      about five events an update; memory linear in the workers.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/jitter.h"
#include "sim/engine/overlap.h"
#include "sim/engine/server_queue.h"
#include "sim/engine/staleness.h"
#include "sim/engine/update_account.h"
#include "sim/engine/woken_queue.h"

namespace lockstep {

enum class UpdateRule : std::uint8_t {
  asynchronous,  // every gradient is applied when it arrives
  synchronous,   // the server waits for all, applies their sum, and everybody pulls
  reduced,       // no server: gradients are all-reduced after every step
  averaged       // no server: weights are all-reduced after every `local_steps` steps
};

// One worker's step at undisturbed speed. Layers wait for their own weights only, and gradients leave as they
// are ready, so communication and computing overlap.
struct WorkerStep {
  Duration until_backward = {};  // all that comes before the last backward pass
  Duration backward = {};        // the last one
  std::vector<Overlap> after_pull =
      {};  // a layer: the bytes that must have come, what is left before backward
  std::vector<Overlap> before_push =
      {};  // a gradient: the bytes that leave from it on, the backward before it
};

// All the bytes of a worker in one direction. An empty one costs nothing.
struct WorkerTransfer {
  Duration alone = {};         // when nobody else transfers
  Ratio width = Ratio::one();  // how many workers transfer at full speed together
  std::int64_t pieces = 1;     // of the largest variable's size
  Duration latency = {};
};

// The work of the slowest server.
struct ServerWork {
  Duration pull = {};    // to hand out the weights once
  Duration push = {};    // to take in one gradient
  Duration update = {};  // to apply it
  bool takes_turns = true;
  bool goes_along = false;     // variable by variable, while others are on their way
  Ratio width = Ratio::one();  // how many are served at full speed together, if not in turns
};

struct UpdateLoopInput {
  UpdateRule rule = UpdateRule::asynchronous;
  std::vector<Ratio> slowdown;        // by rank
  std::int64_t ranks_per_worker = 1;  // that compute together: the slowest of them counts
  WorkerStep step = {};
  WorkerTransfer pull = {};
  WorkerTransfer push = {};
  ServerWork server = {};
  std::optional<std::int64_t> staleness_bound = {};  // asynchronous
  std::int64_t backup_workers = 0;                   // synchronous: so many gradients need not be waited for
  std::int64_t local_steps = 1;                      // averaged
  Duration all_reduce = {};                          // reduced, averaged: what of it nothing hides
  const Jitter* jitter = nullptr;                    // of a step's computing; null: none
  std::int64_t rounds = 1;  // measured; a round is one gradient of every worker, on average
  std::int64_t warm_up = 1;
};

enum class LearningKind : std::uint8_t {
  read,        // a worker takes the weights as they are
  apply,       // its gradient is applied to the weights
  contribute,  // its gradient is added to those of the round
  step,        // those are applied
  local_step,  // a worker applies its gradient to its own weights
  average      // everybody's own weights become their mean
};

// What happens to the weights, in order.
struct LearningEvent {
  LearningKind kind = LearningKind::read;
  std::uint32_t worker = 0;
  std::int64_t iteration = 0;  // of that worker
  std::int64_t staleness = 0;  // of apply
  Time time;
};

class UpdateLoop {
 public:
  explicit UpdateLoop(UpdateLoopInput input);

  // The next thing that happens to the weights; false when all rounds are done and `totals` complete.
  bool next(LearningEvent& event);
  const UpdateTotals& totals() const { return account_.totals(); }

 private:
  enum Tag : std::uint32_t {
    pulls_tag,
    pushes_tag,
    server_tag,
    push_tag,
    arrival_tag,
    computed_tag,
    round_tag
  };
  using Activity = UpdateAccount::Activity;

  struct Worker {
    bool is_half_done = false;  // of transfer and handling, where they go along with each other
    Time pull_begin;
    Time push_begin;
    std::int64_t iteration = -1;  // the first is 0
    std::int64_t version = 0;     // of the weights it has
    Ratio factor = Ratio::one();
  };
  struct Round {
    std::vector<std::uint32_t> held;  // workers, until it is over
    std::int64_t gradients = 0;       // that it has
  };

  bool has_server() const;
  bool goes_along() const { return input_.server.goes_along && !bound_; }
  bool is_second(std::uint32_t worker);
  void handle(const Event& event);

  // A worker's way round.
  void begin(std::uint32_t worker);
  void read(std::uint32_t worker);
  void pull(std::uint32_t worker);
  void pulled(std::uint32_t worker);
  void compute_after_pull(std::uint32_t worker);
  void compute_on_own_weights(std::uint32_t worker);
  void push(std::uint32_t worker);
  void leave(std::uint32_t worker);
  void arrive(std::uint32_t worker);
  void admit(std::uint32_t worker);
  Duration work_of(std::uint32_t job) const;
  void serve(std::uint32_t job);
  void served(const ServedJob& job);
  void began_applying();
  void use(std::uint32_t worker);
  void apply(std::uint32_t worker);
  void contribute(std::uint32_t worker);
  void reach_barrier(std::uint32_t worker);
  void end_round();
  void let_readers_in();

  void draw_speed(Worker& worker, std::uint32_t index);
  void set_step(std::uint32_t worker, Time begin, Duration before_backward);
  void emit(LearningKind kind, std::uint32_t worker, std::int64_t staleness = 0);
  std::int64_t needed() const { return static_cast<std::int64_t>(workers_.size()) - input_.backup_workers; }

  UpdateLoopInput input_;
  EventQueue queue_;
  WokenQueue<SharedPort> pulls_;
  WokenQueue<SharedPort> pushes_;
  WokenQueue<ServerQueue> server_;
  std::optional<StalenessBound> bound_;
  std::vector<Worker> workers_;
  UpdateAccount account_;
  std::deque<std::uint32_t> readers_;  // that the bound keeps waiting
  Round round_;
  std::int64_t applying_ = 0;  // updates at the server
  std::int64_t version_ = 0;
  std::deque<LearningEvent> happened_;
};

}  // namespace lockstep
