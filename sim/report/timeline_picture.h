#pragma once

// The last iteration of the critical rank, lane by lane: what a page draws of a run.
//
// Problem:   a trace has every kernel, thousands of which are thinner than a pixel.
// Idea:      the spans of run_spans.h; neighbours of one category are put together until they can be seen. Beside
//            these rows stands `detail`, what a page's script zooms into: every span, or the finest 20,000.
// Invariant: rows are those of timeline_lanes.h; times count from the iteration's start.
// Cost:      linear in the ops of the run; at most some thousands of spans a row.

#include <nlohmann/json.hpp>

#include "sim/run/simulate.h"

namespace lockstep {

// Null where a run has no plan (asynchronous strategies).
nlohmann::ordered_json timeline_picture(const Simulation& simulation);

}  // namespace lockstep
