#include "sim/collectives/choice.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/collectives/nccl_tuner.h"

namespace lockstep {
namespace {

std::uint8_t protocol_index(const Communicator& world, const std::string& name) {
  const auto found = std::find_if(world.protocols.begin(), world.protocols.end(),
                                  [&](const ProtocolFacts& protocol) { return protocol.name == name; });
  return found == world.protocols.end() ? std::uint8_t{0}
                                        : static_cast<std::uint8_t>(found - world.protocols.begin());
}

// Gloo has one way of doing things, and it is a ring.
CollectiveChoice choose_as_gloo(const ChoiceRequest& request) {
  const std::string usual = is_point_to_point(request.op) ? "direct" : "ring";
  return {.algorithm = request.algorithm == "auto" ? usual : request.algorithm,
          .protocol = request.protocol,
          .channels = request.world.channels()};
}

CollectiveChoice chosen_by_library(const ChoiceRequest& request) {
  if (request.library == LibraryKind::gloo)
    return choose_as_gloo(request);
  return choose_as_nccl({.world = request.world,
                         .op = request.op,
                         .bytes = request.bytes,
                         .version_code = request.library_version > 0 ? request.library_version : newest_nccl,
                         .algorithm = request.algorithm,
                         .protocol = request.protocol});
}

// What was asked for, where that can do it: no algorithm does every operation, nor on every communicator.
ChoiceRequest within_reach(ChoiceRequest request) {
  const Collective* asked = Registry<Collective>::find(request.algorithm);
  if (asked != nullptr && !can_run(*asked, request.op, request.world))
    request.algorithm = "auto";
  return request;
}

}  // namespace

Choice choose_collective(const ChoiceRequest& request) {
  const CollectiveChoice chosen = chosen_by_library(within_reach(request));
  Choice choice{.collective = Registry<Collective>::find(chosen.algorithm),
                .algorithm = chosen.algorithm,
                .protocol = protocol_index(request.world, chosen.protocol),
                .channels = chosen.channels};
  LOCKSTEP_CHECK(choice.collective != nullptr, "load accepts only algorithms that are registered");
  choice.protocol_name =
      request.world.protocols.empty() ? "simple" : request.world.protocols[choice.protocol].name;
  return choice;
}

}  // namespace lockstep
