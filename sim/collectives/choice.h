#pragma once

// The one place that decides how a collective is run.
//
// Idea:      what the user forced is taken; the rest is what the library would choose: NCCL and RCCL by
//            NCCL's cost model, Gloo its ring.
// Invariant: the answer names a registered algorithm that can run the operation here, and a protocol that
//            the communicator knows.
// Cost:      a dozen formulas (nccl_tuner.h).

#include <string>

#include "sim/collectives/collective.h"
#include "sim/plan/library.h"

namespace lockstep {

struct ChoiceRequest {
  const Communicator& world;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;
  LibraryKind library = LibraryKind::nccl;
  std::int64_t library_version = 0;  // NCCL_VERSION_CODE; 0: the newest known
  std::string algorithm = "auto";
  std::string protocol = "auto";
};

struct Choice {
  const Collective* collective = nullptr;
  std::string algorithm = {};
  std::string protocol_name = {};
  std::uint8_t protocol = 0;  // index into the communicator's protocols
  std::uint32_t channels = 1;
};

Choice choose_collective(const ChoiceRequest& request);

}  // namespace lockstep
