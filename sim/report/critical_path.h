#pragma once

// Why an iteration ends when it does: the chain of ops, each of which could not start before the one before
// it had ended, from the end of the iteration back to its start.
//
// Problem:   what holds an op up is not only what it depends on: a lane that is busy, all of its slots taken, or
//            a queue whose order is decided while it runs hold it up as well, and none of these is in the plan.
// Idea:      walk back from the last op of the rank that ends last. What an op waited for is the latest end
//            among its dependencies and, where that came before its start, what left its lane just then.
// Invariant: the pieces follow each other without a gap from the iteration's start to its end: they add up to
//            it. Neighbours in one section are merged; time that nothing explains is a piece of its own.
// Cost:      linear in the ops and dependencies of the run up to the iteration's end, and a sort of the ops of
//            lanes that keep no order.

#include <string>
#include <vector>

#include "sim/report/rank_view.h"

namespace lockstep {

struct PathItem {
  std::string what;
  Duration start, end;  // from the start of the iteration
};

// Of the last iteration of the rank that ends last.
std::vector<PathItem> find_critical_path(const RankView& critical);

}  // namespace lockstep
