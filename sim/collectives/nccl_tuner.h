#pragma once

// Which algorithm, protocol and number of channels NCCL would choose.
//
// Problem:   the same bytes take other ways at other sizes and scales, and measured curves jump where NCCL
//            changes over.
// Idea:      NCCL's own cost model with the constants of a release, over the plain figures that the topology
//            left in the communicator; the cheapest of what is allowed wins. A forced algorithm, protocol or
//            channel count narrows what is allowed, as NCCL_ALGO, NCCL_PROTO and NCCL_MAX_NCHANNELS do.
// Invariant: it chooses and never times; it knows no links.
// Cost:      a dozen formulas a call.
// Reference: NVIDIA/nccl, src/graph/tuning.cc, src/enqueue.cc; versions in nccl_constants.h.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/plan/communicator.h"

namespace lockstep {

inline constexpr std::int64_t newest_nccl = 22'809;

struct CollectiveChoice {
  std::string algorithm;
  std::string protocol;
  std::uint32_t channels = 1;
};

struct TunerRequest {
  const Communicator& world;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;
  std::int64_t version_code = newest_nccl;
  std::string algorithm = "auto";
  std::string protocol = "auto";
};

CollectiveChoice choose_as_nccl(const TunerRequest& request);

// What the tuner weighs, for people and tests: every candidate with the time it expects, cheapest first.
struct TunerCandidate {
  std::string algorithm;
  std::string protocol;
  Duration expected;
};
std::vector<TunerCandidate> weigh_as_nccl(const TunerRequest& request);

// Of which NCCL has one protocol, Simple (NVIDIA/nccl src/graph/tuning.cc): NVLS, NVLSTree, PAT, CollNet.
bool is_simple_alone(std::string_view algorithm);

// Whether a release was made for chips of this compute capability (NCCL's release notes: 2.15 brought Hopper, 2.25
// Blackwell).
constexpr bool knows_chip(std::int64_t version_code, std::int64_t compute_capability) {
  const std::int64_t first = compute_capability >= 100 ? 22'500 : compute_capability >= 90 ? 21'500 : 0;
  return version_code >= first;
}

// "2.18.3" or "2.18" as NCCL_VERSION_CODE has it; nullopt for anything else.
std::optional<std::int64_t> parse_nccl_version(std::string_view text);
std::string nccl_version_text(std::int64_t version_code);

}  // namespace lockstep
