#pragma once

// A run at other prices: what its iterations are where computing or messages cost more, or less.
//
// Problem:   the ends of a band are the same step at other prices; to describe, write and route it anew for
//            each costs as often what the step itself does.
// Idea:      the plan stands. Its kernels are priced again, what the host spends before the GPU may go on
//            takes so many times its time, every op that is charged to communication so many times its bytes
//            or time, by the size of the message it belongs to, and the engine runs it again. Of a long run it
//            is the few iterations that details are of. Strategies that rehearse decide by when gradients are
//            ready: where computing or the host changes, they are simulated anew, and decide as they then
//            would.
// Invariant: with messages as they are it is to the picosecond the run of the scenario with so many times
//            its `compute.scale`. The library's choice of algorithms looks at no price and stays as it was.
//            The simulation is as it was found when this ends.
// Cost:      the run, and pricing the kernels where computing changes; nothing is written or routed. A second timeline,
//            and 8 bytes an op, 16 where it is charged to communication.

#include <optional>
#include <vector>

#include "sim/run/simulate.h"

namespace lockstep {

// What messages of `from` bytes and more take, of what they took.
struct MessageFactor {
  Bytes from;
  Ratio factor = Ratio::one();
};

struct PriceChange {
  Ratio compute = Ratio::one();
  Ratio host = Ratio::one();                 // of what is spent where the GPU waits for its host
  std::vector<MessageFactor> messages = {};  // ascending by size, the first from 0; empty: as they are
};

class RepricedRun {
 public:
  // All must outlive it; `clusters` may be null.
  RepricedRun(Simulation& simulation, const Scenario& scenario, ClusterStore* clusters = nullptr);
  ~RepricedRun();
  RepricedRun(const RepricedRun&) = delete;
  RepricedRun& operator=(const RepricedRun&) = delete;

  // From now on `steady`, or `updates` of a strategy that has them, is the run at these prices.
  void run(const PriceChange& change);

  // Whether anything is charged to communication at all.
  bool sends_messages() const { return sends_messages_; }

 private:
  Scenario priced(const PriceChange& change) const;
  void run_anew(const PriceChange& change);
  void run_plan_again(const PriceChange& change);
  void take_plan_back();
  void scale_host(Ratio factor);
  void scale_messages(const std::vector<MessageFactor>& factors);

  Simulation& simulation_;
  const Scenario& scenario_;
  ClusterStore* clusters_;
  std::optional<Run> put_aside_;             // the run itself, while another's plan stands in its place
  std::vector<std::int64_t> amounts_;        // as they were, by op
  std::vector<Duration> latencies_;          // by path
  std::vector<std::int64_t> message_bytes_;  // by message op: of the message it belongs to
  Timeline timeline_;
  std::optional<UpdateRun> updates_;
  bool sends_messages_ = false;
};

}  // namespace lockstep
