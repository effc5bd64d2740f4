#pragma once

// How busy links are while messages cross them.
//
// Problem:   lanes say when a collective ran, but not whether the wires under it were full or idle.
// Idea:      a message crosses the links of its route from its start until its last byte has left; its latency comes
//            after that. Meanwhile it goes at its mean rate. What crosses a link together adds up to a staircase.
// Invariant: as many bytes as crossed a link lie under its staircase, but for what is cut at its bandwidth: messages
//            that share a link change their rates while they move.
// Cost:      linear in the ops of the run, the messages of the time asked for and the links that each crosses.

#include <string>
#include <vector>

#include "sim/report/run_spans.h"
#include "sim/run/simulate.h"

namespace lockstep {

struct LinkUseTrack {
  std::string name;         // of the kind of link
  std::vector<Span> spans;  // named by the link, `busy` so far
};

// The busiest link of each kind from `from` to `to`, those of GPUs first; kinds that nothing crosses are left out.
std::vector<LinkUseTrack> busiest_links(const Run& run, const Topology& topology, Time from, Time to);

}  // namespace lockstep
