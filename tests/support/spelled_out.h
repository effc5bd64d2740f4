// A plan whose relays are written out as the transfers they stand for.
//
// Problem:   what a relay means must not be told by the engine that runs it.
// Idea:      neighbouring relays become transfers step by step, each depending on its lane and on the message
//            of its feeder before it: what a ring's writer would append without relays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

struct SpelledOut {
  Plan plan;
  std::vector<std::vector<OpId>> ops_of;  // by old op: itself, or its messages in order
};

class Speller {
 public:
  explicit Speller(const Plan& plan) : plan_(plan) {
    result_.ops_of.resize(plan.size());
    number_ops();
  }

  SpelledOut spell() && {
    Plan& spelled = result_.plan;
    spelled.lanes = plan_.lanes;
    spelled.paths = plan_.paths;
    spelled.traffics = plan_.traffics;
    spelled.kernels = plan_.kernels;
    for (std::uint32_t op = 0; op < plan_.size(); ++op) link(op);
    for (const Relay& relay : plan_.relays) hand_on(relay);
    spelled.successor_begin.push_back(0);
    for (std::vector<OpId>& successors : successors_) {
      std::stable_sort(successors.begin(), successors.end());
      spelled.successors.insert(spelled.successors.end(), successors.begin(), successors.end());
      spelled.successor_begin.push_back(static_cast<std::uint32_t>(spelled.successors.size()));
    }
    return std::move(result_);
  }

 private:
  void number_ops() {
    for (std::uint32_t op = 0; op < plan_.size();)
      if (plan_.kind[op] == OpKind::relay) {
        op = number_relays(op);
      } else {
        add(op, plan_.dependency_count[op]);
        ++op;
      }
  }

  // Step by step; returns the first op after them.
  std::uint32_t number_relays(std::uint32_t first) {
    std::uint32_t last = first;
    while (last < plan_.size() && plan_.kind[last] == OpKind::relay) ++last;
    bool is_more = true;
    for (std::uint32_t step = 0; is_more; ++step) {
      is_more = false;
      for (std::uint32_t op = first; op < last; ++op)
        if (step < relay_of(plan_, OpId{op}).messages) {
          add(op, step == 0 ? plan_.dependency_count[op] : 2);
          is_more = true;
        }
    }
    return last;
  }

  void add(std::uint32_t op, std::uint32_t dependencies) {
    Plan& spelled = result_.plan;
    result_.ops_of[op].push_back(OpId{static_cast<std::uint32_t>(spelled.size())});
    spelled.kind.push_back(plan_.kind[op] == OpKind::relay ? OpKind::transfer : plan_.kind[op]);
    spelled.lane.push_back(plan_.lane[op]);
    spelled.amount.push_back(plan_.amount[op]);
    spelled.path.push_back(plan_.path[op]);
    spelled.next_in_lane.push_back(no_op);
    spelled.dependency_count.push_back(dependencies);
    successors_.emplace_back();
  }

  void link(std::uint32_t op) {
    const std::vector<OpId>& own = result_.ops_of[op];
    for (std::size_t i = 0; i + 1 < own.size(); ++i) result_.plan.next_in_lane[own[i].index] = own[i + 1];
    const OpId next = plan_.next_in_lane[op];
    if (next != no_op)
      result_.plan.next_in_lane[own.back().index] = result_.ops_of[next.index].front();
    for (std::uint32_t i = plan_.successor_begin[op]; i < plan_.successor_begin[op + 1]; ++i)
      successors_[own.back().index].push_back(result_.ops_of[plan_.successors[i].index].front());
  }

  void hand_on(const Relay& relay) {
    const std::vector<OpId>& from = result_.ops_of[relay.feeder.index];
    const std::vector<OpId>& to = result_.ops_of[relay.op.index];
    for (std::size_t i = 1; i < to.size(); ++i) successors_[from[i - 1].index].push_back(to[i]);
  }

  const Plan& plan_;
  SpelledOut result_;
  std::vector<std::vector<OpId>> successors_;  // by new op
};

inline SpelledOut spelled_out(const Plan& plan) {
  return Speller(plan).spell();
}

}  // namespace lockstep
