#pragma once

// A prediction's plan as MLCommons Chakra execution traces, one file a rank.
//
// Problem:   whoever has another simulator of clusters wants the same step there, and to bring it back unchanged.
// Idea:      the ops of a period of iterations become nodes: kernels COMP_NODEs with the durations that they were priced
//            at, a collective one COMM_COLL_NODE of each member, a message a COMM_SEND_NODE and a COMM_RECV_NODE.
//            Dependencies of the plan are data_deps, the order on a lane that runs one op at a time ctrl_deps. What the
//            schema has no field for (picoseconds, lanes, categories, waits for other ranks) are attributes of our own.
// Invariant: `plan: {"chakra": ...}` on the same cluster takes the same time to the picosecond. Ids count from 0 in each
//            file; the same scenario gives the same bytes.
// Limits:    what asks for hosts, loads batches, draws jitter or has no plan is refused with the reason.
// Reference: ASTRA-sim, astra-sim/workload/Workload.cc and feeder_v3/et_feeder_node.h: comm_type and comm_size of a
//            collective, comm_src, comm_dst, comm_tag and comm_size of a message are demanded; pg_name is a number that
//            the communicator groups' file explains; durations are whole microseconds, and broadcasts take theirs.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sim/run/simulate.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// What a trace cannot hold of it; empty: nothing.
std::string reason_against_chakra(const Scenario& scenario);

// Simulates the scenario with every rank standing for itself, and calls `write` with the path and the bytes of each file:
// PREFIX.RANK.et, PREFIX.groups.json and PREFIX.json, the scenario that runs them. Throws ConfigError.
void export_chakra(const LoadedScenario& scenario, const std::string& prefix,
                   const std::function<void(const std::string& path, std::string_view bytes)>& write);

}  // namespace lockstep
