#pragma once

// A scenario with parameter servers as workers, ports and one server for the update loop.
//
// Problem:   the loop knows alike workers and one server; a cluster has nodes, NICs, PCIe switches, and
//            servers that hold different variables.
// Idea:      a worker that transfers alone takes as long as the slowest link that its bytes cross; when all
//            transfer, as long as the slowest link for the bytes of all. The ratio is how many transfer at full
//            speed together. The server that takes longest for a gradient stands for all of them: every
//            update visits all servers at once, so that one is always the last to answer.
// Invariant: links are those of the machine as calibrated; a rank of a node reaches its own node's servers
//            without the network. Inside the fabric nothing is narrower than the NICs.
// Cost:      linear in ranks and variables, then the loop's.
// Decided here: a worker is a rank, or a whole node where its GPUs share one pull or one push; at least 100
//            rounds are played after 10 that are not counted, for what is measured is a mean.

#include <vector>

#include "sim/engine/update_loop.h"
#include "sim/network/topology.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

// One server of the many.
struct ServerLoad {
  Bytes bytes;          // of the variables it holds
  Duration per_update;  // its own work for one gradient: to hand out, take in and apply
};

struct UpdateRun {
  std::int64_t workers = 0;
  std::int64_t ranks_per_worker = 1;
  Duration forward, backward, recompute;  // of a step on an undisturbed GPU
  Bytes pulled, pushed;                   // by a worker for each update
  std::vector<ServerLoad> servers;
  Ratio server_width = Ratio::one();  // how many gradients a server handles at full speed together
  UpdateTotals totals = {};
};

// Of ps_async, and of ps_sync where the two are compared.
struct UpdateSetup {
  UpdateLoopInput input;
  UpdateRun run;
};
UpdateSetup describe_updates(const Scenario& scenario, const Job& job, const Topology& topology);

// What the loop will count, about: five events an update.
double expected_update_events(const Scenario& scenario);

// `factor`: what pulls and pushes take, on the way and at the servers, of what they take.
UpdateRun run_updates(const Scenario& scenario, const Job& job, const Topology& topology,
                      Ratio factor = Ratio::one());

}  // namespace lockstep
