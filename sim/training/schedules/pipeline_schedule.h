#pragma once

// In which order the stages of a pipeline run their passes.
//
// Problem:   a stage waits for the stage before it going forward and for the one behind it going backward.
//            The order in which it takes micro-batches decides how long it waits and how many it holds
//            meanwhile.
// Idea:      a schedule is a pure function from a shape and a stage to that stage's passes; it knows no time,
//            no bytes and no links. A rank holds one part of the model or several, its chunks. Whoever runs
//            the passes keeps three rules: a part's forward waits for the forward of the part before, its
//            backward (or backward_input) for that of the part behind and for its own forward, and
//            backward_weights for its own backward_input. Passes that are joined begin once all that they
//            wait for is there, and hand on when all are done. Where there are two copies of the model, each
//            takes half of the micro-batches.
// Invariant: of every micro-batch each stage runs each chunk forward once and backward once, whole or in
//            halves; a chunk takes micro-batches in ascending order in every kind of pass, so that the last
//            micro-batch's gradients are the last. Every shape without problems runs through under the rules.
// Cost:      two or three passes for each micro-batch and chunk, made once.
// Reference: of each schedule in its own file. A bubble is counted as in Qi et al. 2024 (arXiv 2401.10241):
//            what the stage with the longest span, from its first pass to the end of its last, idles in it.
//            No schedule lets all stages begin and end together: "no bubble" leaves the ramp by which they
//            are shifted against each other, a loss wherever the optimizer waits for all of them.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/registry.h"
#include "sim/base/units.h"
#include "sim/training/pausing.h"

namespace lockstep {

enum class PassKind : std::uint8_t {
  forward,
  backward,         // both halves at once
  backward_input,   // the gradient of what came in, for which the part before waits
  backward_weights  // the gradients of the weights, for which nobody does
};

struct Pass {
  PassKind kind = PassKind::forward;
  std::int64_t micro_batch = 0;  // of those that its chunk takes
  std::int64_t chunk = 0;
  bool joins_next = false;  // the pass after it belongs to it

  friend bool operator==(const Pass&, const Pass&) = default;
};

struct PipelineShape {
  std::int64_t stages = 1;
  std::int64_t chunks = 1;  // parts of the model a rank holds, its virtual stages
  std::int64_t micro_batches = 1;

  std::int64_t parts() const { return stages * chunks; }  // of all copies
};

struct ChunkRange {
  std::int64_t least = 1;
  std::int64_t most = 1;

  static constexpr ChunkRange from(std::int64_t least) {
    return {least, std::numeric_limits<std::int64_t>::max()};
  }
  constexpr bool holds(std::int64_t count) const { return least <= count && count <= most; }
};

// What is wrong with a shape, and the nearest that works; by the scenario's key.
struct ShapeProblem {
  std::string_view key;
  std::string text;
};

// The model's parts are dealt to the stages in turn, chunk after chunk; or down the stages and up again.
std::int64_t part_in_turn(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk);
std::int64_t part_in_v(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk);

struct PipelineSchedule {
  // Of a shape without problems, in the order in which the stage's compute lane runs them.
  std::vector<Pass> (*passes)(const PipelineShape& shape, std::int64_t stage);
  std::string description;
  std::string source;
  ChunkRange chunks = {};
  bool splits_backward = false;
  std::int64_t copies = 1;       // of the model, each of which all stages hold together
  PausesAt pauses_at = PausesAt::every_exchange;  // of two joined passes, to go on with the other
  bool sends_apart = false;  // where a framework has the choice: its messages are not batched, nor waited for
  // Which part a chunk is, counted in forward order, copy after copy.
  std::int64_t (*part)(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) = part_in_turn;
  // What the schedule asks beyond positive counts and its range of chunks. Null: nothing.
  std::vector<ShapeProblem> (*problems)(const PipelineShape& shape) = nullptr;

  std::int64_t parts_of_model(const PipelineShape& shape) const { return shape.parts() / copies; }
  // Whether micro-batches enter, or leave, the model with the part of this number.
  bool begins_model(const PipelineShape& shape, std::int64_t number) const {
    return number % parts_of_model(shape) == 0;
  }
  bool ends_model(const PipelineShape& shape, std::int64_t number) const {
    return (number + 1) % parts_of_model(shape) == 0;
  }
};

// Behind the last of the passes that are joined with the one at `first`.
std::size_t end_of_joined(std::span<const Pass> passes, std::size_t first);

// Of a name that load has accepted.
const PipelineSchedule& pipeline_schedule_named(std::string_view name);

// All that keeps the named schedule from running this shape; none: it runs.
std::vector<ShapeProblem> problems_of_shape(std::string_view name, const PipelineShape& shape);

struct PartPlace {
  std::int64_t stage = 0;
  std::int64_t chunk = 0;

  friend bool operator==(const PartPlace&, const PartPlace&) = default;
};

// Who holds which part, by part: the inverse of PipelineSchedule::part.
std::vector<PartPlace> places_of_parts(const PipelineSchedule& schedule, const PipelineShape& shape);

// After which the gradients of a micro-batch's weights are there.
bool completes_gradients(const Pass& pass);

// The chunks of a stage in the order in which the last of their gradients come.
std::vector<std::int64_t> chunks_by_completion(std::span<const Pass> passes, std::int64_t chunks);

// Micro-batches that a stage holds at most, each chunk counted by itself: from the end of a forward until its
// backward, or its backward_weights, is done.
std::int64_t most_in_flight(std::span<const Pass> passes);

// So many micro-batches show the most that stages hold of all: two rounds of them, unless that is fewer than they hold.
std::int64_t telling_micro_batches(const PipelineSchedule& schedule, const PipelineShape& shape);

// What a chunk's forward leaves for its backward, and what of it backward_input leaves for backward_weights.
struct KeptActivations {
  Bytes by_forward;
  Bytes for_weights;
};

// The most that a stage keeps at once, by what each of its chunks keeps.
Bytes most_kept(std::span<const Pass> passes, std::span<const KeptActivations> chunks);

}  // namespace lockstep
