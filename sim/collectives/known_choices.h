#pragma once

// How collectives that were asked for before are run.
//
// Problem:   a plan of a thousand micro-batches asks for the same few collectives a hundred thousand times, and NCCL's
//            cost model is a dozen formulas each time.
// Idea:      what a choice depends on is its key; the settings that all collectives of a plan have in common are not.
// Invariant: remembers for one plan: library, version and protocol are the same in all requests.
// Cost:      a search among what differs.

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/collectives/choice.h"

namespace lockstep {

class KnownChoices {
 public:
  // `request.world` must outlive this.
  const Choice& of(const ChoiceRequest& request) {
    const auto found =
        choices_.find(Key{&request.world, request.op, request.bytes.count(), request.algorithm});
    return found != choices_.end() ? found->second : remember(request);
  }

 private:
  using Key = std::tuple<const Communicator*, CollectiveOp, std::int64_t, std::string_view>;
  using OwnedKey = std::tuple<const Communicator*, CollectiveOp, std::int64_t, std::string>;

  const Choice& remember(const ChoiceRequest& request) {
    return choices_
        .emplace(OwnedKey{&request.world, request.op, request.bytes.count(), request.algorithm},
                 choose_collective(request))
        .first->second;
  }

  // Either kind of key as the one that owns nothing.
  struct Before {
    using is_transparent = void;
    bool operator()(const Key& one, const Key& other) const { return one < other; }
  };

  std::map<OwnedKey, Choice, Before> choices_;
};

}  // namespace lockstep
