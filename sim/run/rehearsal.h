#pragma once

// Strategies that decide while they run, decided before: run, look, write again.
//
// Problem:   what Horovod sends together depends on when gradients are ready, and that on what is sent; a
//            plan knows no times.
// Idea:      rehearse a couple of iterations, ask the strategy what it would send together had it seen these
//            times, and write the plan anew with the answer, until the answer stays the same.
// Invariant: strategies that do not ask for it are run once, and the engine never hears of it.
// Cost:      usually three short runs, at most six; a strategy with variants pays that for each.

#include <functional>
#include <string>
#include <vector>

#include "sim/run/simulate.h"

namespace lockstep {

// Runs two iterations of the job.
using RunBriefly = std::function<Run(const Job&)>;

// Fills in what the strategy wants decided, in place; returns what the user should know.
std::vector<std::string> rehearse(Job& job, std::int64_t ranks, const RunBriefly& run);

}  // namespace lockstep
