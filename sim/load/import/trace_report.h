#pragma once

// What a trace shows beside the model that is made of it, for people.
//
// Idea:      figures are medians over steps; those with collectives and those without are told apart. What is many
//            (kernels, late operators) is cut to the longest, collectives are put together by kind and size.
// Invariant: names are printable and of a width that a terminal bears.

#include <string>

#include "sim/load/import/trace_file.h"
#include "sim/load/import/trace_steps.h"

namespace lockstep {

// The figures that medians are taken of: each of the steps' times.
Nanoseconds median_of(const std::vector<TracedStep>& steps, Nanoseconds StepTimes::*time);

// "123.456 us", to the nanosecond.
std::string microseconds(Nanoseconds time);

// Steps and their spread, where a step's time goes, kernels by stream, collectives, who kept the GPU waiting.
std::string trace_report(const TraceFile& trace, const TracedRun& run);

}  // namespace lockstep
