#pragma once

// What a PyTorch profiler's trace says of a training loop, read in one pass.
//
// Problem:   a trace holds millions of events, of which a few kinds matter here and most keys of those do not.
// Idea:      a parser that never builds the document hands each event to a classifier by category and name, which keeps
//            a record of a few numbers: spans of the loop on the CPU (steps, autograd's nodes, gradients, optimizer,
//            loader, collectives of CPU libraries), launches, kernels, and names of operators by their id.
// Invariant: times are whole nanoseconds. Nothing is kept of other events but a count by category.
// Cost:      8 to 40 bytes for each event that is kept; names once.
// Errors:    ConfigError with the file and the byte or the event (/traceEvents/N).
// Reference: Chrome's Trace Event Format; pytorch/kineto libkineto/src/output_json.cpp (what Kineto writes);
//            torch/autograd/profiler_util.py (what a build without Kineto writes).

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/load/import/importer.h"

namespace lockstep {

using Nanoseconds = std::int64_t;

enum class SpanKind : std::uint8_t {
  step,           // ProfilerStep#
  optimizer,      // Optimizer.step#
  input,          // the loader's next batch
  backward_node,  // a node of autograd's graph, with its hooks
  gradient_node,  // the one that ends with a parameter's gradient, with its hooks
  gradient,       // that node without its hooks
  gradient_mark,  // validate/measure_model.py's own
  wrapper_copy,   // DistributedDataParallel between bucket and gradient
  collective,     // of a library on the CPU, as long as it takes
};

inline constexpr std::uint32_t no_facts = std::numeric_limits<std::uint32_t>::max();

// Of a tensor that an event names.
struct TensorFacts {
  std::int64_t elements = 0;  // 0: not recorded
  std::uint32_t type = 0;     // a name: "float", "c10::BFloat16"; 0: not recorded
  std::uint32_t collective = 0;
  std::int32_t group = 0;  // ranks; 0: not recorded
};

struct TraceSpan {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  std::uint32_t name = 0;
  std::uint32_t facts = no_facts;
  std::uint32_t sequence = 0;  // of the operator that a node is of, counted over the loop; 0: not recorded
  std::uint16_t lane = 0;
  SpanKind kind = SpanKind::step;
};

struct TraceLaunch {
  Nanoseconds start = 0;
  std::uint32_t correlation = 0;
  std::uint16_t lane = 0;
};

struct TraceKernel {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  std::uint32_t name = 0;
  std::uint32_t correlation = 0;
  std::uint32_t external = 0;  // id of the operator that launched it; 0: not recorded
  std::uint32_t facts = no_facts;
  std::uint32_t step = 0;  // filled in by who finds steps
  std::uint16_t stream = 0;
  std::uint16_t device = 0;
};

struct TraceOperator {
  std::uint32_t external = 0;
  std::uint32_t name = 0;
  std::uint32_t facts = no_facts;
};

struct TraceFile {
  std::vector<std::string> names;  // 0 is ""
  std::deque<TraceSpan> spans;
  std::deque<TraceLaunch> launches;
  std::deque<TraceKernel> kernels;
  std::deque<TraceOperator> operators;
  std::deque<TensorFacts> facts;
  std::vector<std::string> devices;             // as CUDA or HIP names them
  std::map<std::string, std::int64_t> ignored;  // events that say nothing here, by category
  std::map<std::string, bool> keys;             // outermost keys, and those of events: whether they are read
  std::int64_t world_size = 0;                  // 0: not recorded
  std::string backend;
  bool is_distributed_data_parallel = false;
  bool is_fully_sharded = false;
};

TraceFile read_trace(const ImportRequest& request);

}  // namespace lockstep
