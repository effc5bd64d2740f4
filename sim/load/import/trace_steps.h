#pragma once

// Training steps found in a profiler's trace: what each computed, and what it waited for.
//
// Problem:   a simulator wants computing without communication, and a trace shows both at once, with what the profiler
//            and the host add; the steps of one trace differ.
// Idea:      each step is a stretch of one clock, the GPU's where there are kernels, else the CPU's, cut where backward
//            begins and ends. From it is taken out what the simulator adds itself: waiting for collectives or for the
//            loader, and a wrapper's copies. Gaps in which the GPU had nothing to do because its host had not launched
//            anything stay, by the name of the operator that was late. What is said of the trace are medians.
// Invariant: forward + backward + optimizer + what was taken out is the step; a gradient is ready within backward.
//            Where some steps ran without collectives (no_sync), computing is theirs and waiting is the others'.
// Cost:      a sort of what was kept of the trace.
// Errors:    ConfigError where there are no steps, no backward passes or no gradients.

#include <string>
#include <vector>

#include "sim/load/import/trace_file.h"

namespace lockstep {

struct TracedCollective {
  std::uint32_t name = 0;  // as TraceFile numbers names
  std::uint32_t facts = no_facts;
  Nanoseconds start = 0;  // after backward's beginning
  Nanoseconds duration = 0;
};

struct StepTimes {
  Nanoseconds iteration = 0;
  Nanoseconds forward = 0;
  Nanoseconds backward = 0;
  Nanoseconds optimizer = 0;
  Nanoseconds communication = 0;  // waited for
  Nanoseconds input = 0;          // waited for
  Nanoseconds copies = 0;         // of a wrapper
  Nanoseconds host = 0;           // the GPU had nothing to do, within the first three
};

struct TracedGradient {
  std::uint32_t name = 0;
  std::uint32_t facts = no_facts;
  Nanoseconds ready = 0;
};

// What a gradient's name or facts say of it.
struct GradientFacts {
  std::string name;  // empty: not recorded
  std::int64_t elements = 0;
  std::string type;        // as the trace spells it; empty: not recorded
  std::int64_t index = 0;  // in the order of registration, where that is recorded
};

GradientFacts describe(const TracedGradient& gradient, const TraceFile& trace);

struct TracedStep {
  StepTimes times;
  std::vector<TracedGradient> gradients;  // in the order in which they are ready
  std::vector<TracedCollective> collectives;
  bool has_update = false;
};

struct KernelUse {
  std::string name;
  std::string launched_by;  // the operator; empty: not recorded
  int stream = 0;
  std::int64_t calls = 0;
  Nanoseconds time = 0;
};

struct LateOperator {
  std::string name;
  std::int64_t gaps = 0;
  Nanoseconds time = 0;
};

struct TracedRun {
  std::vector<TracedStep> steps;
  std::vector<KernelUse> kernels;  // the longest first
  std::vector<LateOperator> late;  // the longest first
  std::string optimizer;           // "SGD", "AdamW"
  bool is_of_gpu = false;
  bool names_gradients = false;  // by marks of validate/measure_model.py
  bool has_step_marks = true;    // else steps end with the optimizer
  std::int64_t unlaunched_kernels = 0;
  std::vector<std::string> warnings;
};

TracedRun find_steps(TraceFile& trace, const std::string& file_name);

}  // namespace lockstep
