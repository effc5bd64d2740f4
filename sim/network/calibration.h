#pragma once

// What was fitted to measurements of a machine: the difference between a wire and a library on it.
//
// Every figure is a physical quantity of its own: what one ring step costs beyond its bytes, what part of a
// wire the library fills, what a collective takes from the kernels beside it.

#include <algorithm>
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
// slowest link is of that class; `payload` the part of the bytes on the wire that is data, and `fill`
// what was measured instead where the slowest hop is of that class.
struct ProtocolCost {
  std::string name;
  Ratio payload = Ratio::one();
  std::map<LinkClass, Ratio> fill;
  // Bus bandwidth that no number of rings exceeds, on 1, 2, and 3 or more nodes; empty: none (NCCL's LL moves
  // its flags through the SMs, which run out before the links do).
  std::vector<Bandwidth> most_bandwidth;
  Duration launch;  // fixed cost of a collective in this protocol, beyond `collective_launch`
  std::map<LinkClass, Duration> step;
  bool operator==(const ProtocolCost&) const = default;
};

// What an algorithm costs beside its protocol's own figures: a start of its own, another price for a step, a
// part of the links' bandwidth that it cannot use.
struct AlgorithmCost {
  std::string name;
  Duration launch;
  Ratio step_scale = Ratio::one();
  Ratio efficiency = Ratio::one();
  bool operator==(const AlgorithmCost&) const = default;
};

// Messages between pairs (send/recv, all-to-all): each peer costs its rank a start; a message alone on its
// channel moves at `channel_bandwidth`, and more channels join it so that none works longer than `ramp`.
struct PeerCost {
  Duration start;
  std::optional<Bandwidth> channel_bandwidth;
  Duration ramp;
  bool operator==(const PeerCost&) const = default;
};

// The 10th and 90th percentile of measured over predicted, minus one, for messages of `from` and more.
struct ResidualBand {
  Ratio low = {};
  Ratio high = {};
  Bytes from{0};
  bool operator==(const ResidualBand&) const = default;
};

// What the figures were fitted to; beyond it a prediction is an extrapolation.
struct FittedRange {
  Bytes smallest;
  Bytes largest;
  std::int64_t most_ranks = 0;
  std::int64_t most_nodes = 0;
  bool operator==(const FittedRange&) const = default;
};

struct Calibration {
  std::string name;
  std::string source;
  Duration collective_launch;             // fixed cost of a collective on its stream
  std::map<LinkClass, Ratio> efficiency;  // of the wire's bandwidth
  // A kernel meets its peers channel by channel: each one in use costs so much once. Until NCCL 2.21 each channel
  // fetched its work from the host by itself; since 2.22 all share what came with the kernel's arguments
  // (NVIDIA/nccl src/enqueue.cc, ncclDevWorkStorageTypeArgs).
  Duration channel_start;
  Duration shared_channel_start;
  // A kernel passes once over its rank's own part beside those that the wire carries (collective_frame.cpp), each
  // channel in use at this speed; empty: at once.
  std::optional<Bandwidth> own_copy_channel_bandwidth;
  // Messages leave a NIC no closer than this, however short they are (the gap of LogP: Culler et al., 1993).
  Duration message_gap;
  std::vector<ProtocolCost> protocols;
  std::vector<AlgorithmCost> algorithms;
  PeerCost peer;
  // Nobody starts collectives faster than one every so long: nccl-tests, which enqueues one after another
  // without waiting, shows no shorter time.
  Duration host_launch;
  // What collectives were measured to do to the kernels beside them (interference.h): a factor while any runs,
  // once however many do; and what is added to it for the part of the SMs that their channels together hold.
  // Neither measured: what bounds a kernel tells.
  std::optional<Ratio> compute_slowdown;
  std::optional<Ratio> sm_interference;
  // A library that runs on the rank's own core (Gloo) takes this much of its time per byte sent, in
  // picoseconds, and at most `core_share` of it while the core computes.
  std::int64_t core_time_per_byte_ps = 0;
  Ratio core_share = Ratio::percent(50);
  // Before each step of its ring such a library waits so long for a core that computes: messages too short to
  // make up for it get less than their share. A core that computes nothing is had at once.
  Duration core_wait;
  // Time per byte that the host cannot hide behind the wire, in picoseconds: added to the wire's own.
  std::int64_t unhidden_per_byte_ps = 0;
  // Spread of the ranks' own steps (standard deviation over mean), where it was measured: a step lasts as long as
  // the slowest. Else what is published of GPUs (rank_variation.h).
  std::optional<Ratio> rank_variation;
  Duration copy_per_tensor;                 // one gradient into or out of its bucket, beyond its bytes
  std::optional<Bandwidth> copy_bandwidth;  // gradient bytes per second; else memory bandwidth
  Duration host_per_bucket;                 // launching a bucket's collective from the backward hook
  std::vector<ResidualBand> communication_residuals;  // ascending by `from`; empty: unknown
  std::optional<ResidualBand> compute_residual;
  std::optional<FittedRange> fitted;
  std::int64_t library_version = 0;  // NCCL_VERSION_CODE of what was measured; 0: not known

  // The band for a message of so many bytes: residuals that all lie on one side are widened to hold the prediction.
  std::optional<ResidualBand> communication_residual(Bytes bytes) const {
    std::optional<ResidualBand> band;
    for (const ResidualBand& candidate : communication_residuals)
      if (candidate.from <= bytes || !band)
        band = candidate;
    if (band) {
      band->low = std::min(band->low, Ratio{});
      band->high = std::max(band->high, Ratio{});
    }
    return band;
  }
  bool operator==(const Calibration&) const = default;
};

}  // namespace lockstep
