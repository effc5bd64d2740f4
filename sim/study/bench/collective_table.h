#pragma once

// The table nccl-tests would print on a cluster, predicted.
//
// Problem:   a communication model is judged by the one benchmark everybody has logs of.
// Idea:      collectives go through the same writer, routes and engine as in a training step: one plan holds
//            them all, each from when the one before it has ended, so that what they share is written and
//            routed once.
// Invariant: sizes, element counts and bandwidths are nccl-tests' own: for all_gather and reduce_scatter the
//            size is the gathered buffer, its part of each rank rounded down to 16 bytes.
//            What a table takes is counted before it is run, as that of a training step is (run_size.h).
// Cost:      what collectives share is linear in ranks, for 1,024 some 10 ms; then under 0.1 ms a size.
// Reference: NVIDIA/nccl-tests, doc/PERFORMANCE.md and src/*.cu (GetCollByteCount).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/choice.h"
#include "sim/load/load.h"
#include "sim/run/simulate.h"

namespace lockstep {

// Where the collective runs: the same words as in a scenario's cluster and communication.
struct CollectiveSetting {
  std::string machine;  // a name or a path
  std::int64_t nodes = 1;
  std::optional<std::int64_t> gpus_per_node = {};  // left out: the machine's
  std::string algorithm = "auto";
  std::string protocol = "auto";
  std::vector<std::string> protocols = {};  // left to choose among; none: what the NICs leave
  std::string library = {};          // empty: the machine's
  std::string library_version = {};  // empty: the calibration's
  std::string calibration = {};      // a name or a path; empty: the machine's
  std::optional<std::int64_t> channels = {};
  std::optional<Fidelity> fidelity = {};
  bool accepts_any_size = false;
};

// A scenario that holds this cluster and a model that nobody runs. Throws ConfigError.
LoadedScenario load_collective_setting(const CollectiveSetting& setting, const ProfileStore& store);

struct CollectiveRow {
  Bytes size;                 // as nccl-tests prints it
  std::int64_t elements = 0;  // of 4 bytes; those of one rank for all_gather and reduce_scatter
  Duration time = {};
  std::optional<Duration> low = {},
                          high = {};  // at the 10th and 90th percentile of the calibration residuals
  Bandwidth algbw = {}, busbw = {};
  std::string algorithm;
  std::string protocol;
  std::uint32_t channels = 0;
};

struct SizeRange {
  Bytes first{8};
  Bytes last{8LL << 30};
  std::int64_t factor = 2;  // above 1
};

struct CollectiveQuery {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;  // what -b names; the row says what nccl-tests would make of it
};

// A cluster that predicts one collective after another.
class CollectiveBench {
 public:
  explicit CollectiveBench(const Scenario& scenario);

  // A row for each query, in their order.
  std::vector<CollectiveRow> predict(std::span<const CollectiveQuery> queries) const;
  std::vector<CollectiveRow> predict(CollectiveOp op, const SizeRange& range) const;
  CollectiveRow predict(CollectiveOp op, Bytes bytes) const;
  const Communicator& world() const { return cluster_->world; }

 private:
  struct Asked {
    CollectiveOp op;
    Bytes size;
    std::int64_t elements;
    Choice choice;
  };
  Asked ask(const CollectiveQuery& query) const;
  bool stands_for_others(std::span<const Asked> collectives) const;
  CollectiveRow row_of(const Asked& asked, Duration time) const;
  std::vector<Duration> times_of(std::span<const Asked> collectives) const;
  std::vector<Duration> times_of_accepted(std::span<const Asked> collectives) const;
  RunSize sized(const PlanSize& plan) const;
  RunSize size_of(std::span<const Asked> collectives) const;
  Duration host_time(CollectiveOp op) const;

  const Scenario& scenario_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<Bandwidth> capacities_;  // by link
};

}  // namespace lockstep
