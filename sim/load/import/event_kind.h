#pragma once

// What an event of a trace is, by its category and name.
//
// Problem:   categories were renamed over the years, and what an event means stands in its name alone.
// Idea:      the names of all releases in one place.
// Invariant: a name that is not known is an operator like any other.
// Reference: torch/autograd/profiler.py and torch/optim/optimizer.py (ProfilerStep#, Optimizer.step#),
//            torch/csrc/autograd/engine.cpp (evaluate_function), torch/csrc/distributed/c10d/reducer.cpp,
//            libkineto/include/ActivityType.h (categories).

#include <optional>
#include <string_view>

#include "sim/load/import/trace_file.h"

namespace lockstep {

enum class EventCategory : std::uint8_t { cpu, launch, kernel, other };

EventCategory category_of(std::string_view category);

// Of an event on the CPU; empty: an operator that is only asked for its name.
std::optional<SpanKind> span_kind_of(std::string_view name);

// Operators that know the size of the collective they start.
bool sends_messages(std::string_view name);

bool is_collective_kernel(std::string_view name);

}  // namespace lockstep
