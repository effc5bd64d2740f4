#pragma once

// The table nccl-tests would print on a cluster, predicted.
//
// Problem:   a communication model is judged by the one benchmark everybody has logs of.
// Idea:      each size is a plan of a single collective through the same writer, routes and engine as in a
//            training step; the cluster is built once for all sizes.
// Invariant: sizes, element counts and bandwidths are nccl-tests' own: for all_gather and reduce_scatter the
//            size is the gathered buffer, its part of each rank rounded down to 16 bytes.
// Cost:      a few milliseconds a size at 1,024 ranks.
// Reference: NVIDIA/nccl-tests, doc/PERFORMANCE.md and src/*.cu (GetCollByteCount).

#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/choice.h"
#include "sim/scenario/load.h"
#include "sim/scenario/simulate.h"

namespace lockstep {

// Where the collective runs: the same words as in a scenario's cluster and communication.
struct CollectiveSetting {
  std::string machine;  // a name or a path
  std::int64_t nodes = 1;
  std::optional<std::int64_t> gpus_per_node = {};  // left out: the machine's
  std::string algorithm = "auto";
  std::string protocol = "auto";
  std::string library = {};          // empty: the machine's
  std::string library_version = {};  // empty: the calibration's
  std::string calibration = {};      // a name or a path; empty: the machine's
  std::optional<std::int64_t> channels = {};
  std::optional<Fidelity> fidelity = {};
};

// A scenario that holds this cluster and a model that nobody runs. Throws ConfigError.
Scenario load_collective_setting(const CollectiveSetting& setting, const ProfileStore& store);

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

// A cluster that predicts one collective after another.
class CollectiveBench {
 public:
  explicit CollectiveBench(const Scenario& scenario);

  // `bytes` is what -b names; the row says what nccl-tests would make of it.
  CollectiveRow predict(CollectiveOp op, Bytes bytes) const;
  std::vector<CollectiveRow> predict(CollectiveOp op, const SizeRange& range) const;

 private:
  Duration time_of(CollectiveOp op, Bytes bytes, const Choice& choice) const;
  Duration host_time(CollectiveOp op) const;

  const Scenario& scenario_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<Bandwidth> capacities_;  // by link
};

}  // namespace lockstep
