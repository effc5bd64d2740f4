#pragma once

// One of the orders in which a GPU might run what its streams hold.
//
// Problem:   a GPU runs mostly in one order, and a missing wait is found by the customer whose GPU does not.
// Idea:      streams have priorities that a seed draws, and draws anew now and then: the first that can go on
//            goes on. One starves while others run ahead, which is what a missing wait needs to be seen. How
//            eagerly work is done before anybody waits for it is drawn too: from never to at once.
// Reference: Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs",
//            ASPLOS 2010.

#include <cstdint>

#include "validate/harness/stand_in/streams.h"

namespace lockstep::harness::stand_in {

class RandomOrder {
 public:
  RandomOrder(std::uint64_t seed, Streams& streams);

  // Whether the GPUs do something now though nobody waits for it.
  bool is_eager();
  // False where no stream can go on.
  bool step();
  std::uint64_t draw(std::uint64_t below);

 private:
  static constexpr std::uint64_t eighths = 8;
  static constexpr std::uint64_t steps_of_a_priority = 24;  // on average

  std::uint64_t seed_;
  Streams& streams_;
  std::uint64_t draws_ = 0;
  std::uint64_t eagerness_;  // eighths of the moments in which work is done unasked
  std::uint64_t epoch_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace lockstep::harness::stand_in
