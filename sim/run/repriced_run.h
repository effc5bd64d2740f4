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
//            The simulation is as it was found when this ends, but for times that nobody needs any more.
// Cost:      the run, and pricing the kernels where computing changes and when it is changed back; nothing is
//            written or routed. A second timeline, where anybody needs the first; 12 bytes an op that is
//            charged to the host, 20 to communication.

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

struct RepricedRunOptions {
  ClusterStore* clusters = nullptr;  // none: each builds its own
  // Else a run tells when ops end and nothing more, and what told more of `steady` is gone from the first: its times,
  // its communications, its memory.
  bool keeps_times = true;
};

// Ops that are priced together, ascending, and what they moved or took.
struct PricedOps {
  std::vector<std::uint32_t> ops = {};
  std::vector<std::int64_t> amounts = {};
};

class RepricedRun {
 public:
  // All must outlive it.
  RepricedRun(Simulation& simulation, const Scenario& scenario, const RepricedRunOptions& options = {});
  ~RepricedRun();
  RepricedRun(const RepricedRun&) = delete;
  RepricedRun& operator=(const RepricedRun&) = delete;

  // From now on `steady`, or `updates` of a strategy that has them, is the run at these prices.
  void run(const PriceChange& change);

  // Whether anything is charged to communication at all.
  bool sends_messages() const;

 private:
  Scenario priced(const PriceChange& change) const;
  void run_anew(const PriceChange& change);
  void run_plan_again(const PriceChange& change);
  void take_plan_back();
  void put_prices_back();
  void scale_host(Ratio factor);
  void scale_messages(const std::vector<MessageFactor>& factors);

  Simulation& simulation_;
  const Scenario& scenario_;
  ClusterStore* clusters_;
  bool keeps_times_;
  std::optional<Run> put_aside_;  // the run itself, while another's plan stands in its place
  PricedOps host_ops_;
  PricedOps message_ops_;                    // charged to communication
  std::vector<std::int64_t> message_bytes_;  // likewise: of the message it belongs to
  std::vector<Duration> latencies_;          // as they were, by path
  bool has_other_kernels_ = false;           // at other prices
  Timeline timeline_;                        // as it was; empty: nobody needs it
  std::optional<UpdateRun> updates_;
};

}  // namespace lockstep
