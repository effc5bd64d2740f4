#pragma once

// What was fitted to measurements of a machine: the difference between a wire and a library on it.
//
// Every figure is a physical quantity of its own: what one ring step costs beyond its bytes, what part of a
// wire the library fills, what a collective takes from the kernels beside it. Ratios are parts per million.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/machine.h"

namespace lockstep {

// One of NCCL's protocols (Gloo has a single one). `step` is the fixed cost of one step over a hop whose
// slowest link is of that class; `payload_ppm` the part of the bytes on the wire that is data.
struct ProtocolCost {
  std::string name;
  std::int64_t payload_ppm = 1'000'000;
  // Bus bandwidth that no number of rings exceeds, on 1, 2, and 3 or more nodes; empty: none (NCCL's LL moves
  // its flags through the SMs, which run out before the links do).
  std::vector<Bandwidth> most_bandwidth;
  Duration launch;  // fixed cost of a collective in this protocol, beyond `collective_launch`
  std::map<LinkClass, Duration> step;
};

// The 10th and 90th percentile of measured over predicted, minus one.
struct ResidualBand {
  std::int64_t low_ppm = 0;
  std::int64_t high_ppm = 0;
};

struct Calibration {
  std::string name;
  std::string source;
  Duration collective_launch;                        // fixed cost of a collective on its stream
  std::map<LinkClass, std::int64_t> efficiency_ppm;  // of the wire's bandwidth
  std::vector<ProtocolCost> protocols;
  std::int64_t compute_slowdown_ppm = 1'000'000;  // of kernels while a collective runs, whatever its size
  // And for each part of the SMs its channels occupy: 1 + interference * channels / SMs.
  std::int64_t sm_interference_ppm = 0;
  // A library that runs on the rank's own core (Gloo) takes this much of its time per byte sent, in
  // picoseconds, and at most `core_share_ppm` of it while the core computes.
  std::int64_t core_time_per_byte_ps = 0;
  std::int64_t core_share_ppm = 500'000;
  // Time per byte that the host cannot hide behind the wire, in picoseconds: added to the wire's own.
  std::int64_t unhidden_per_byte_ps = 0;
  // Spread of the ranks' own speed (standard deviation over mean): a step lasts as long as the slowest.
  std::int64_t rank_variation_ppm = 0;
  Duration copy_per_tensor;                 // one gradient into or out of its bucket, beyond its bytes
  std::optional<Bandwidth> copy_bandwidth;  // gradient bytes per second; else memory bandwidth
  Duration host_per_bucket;                 // launching a bucket's collective from the backward hook
  std::optional<ResidualBand> communication_residual;
  std::optional<ResidualBand> compute_residual;
};

}  // namespace lockstep
