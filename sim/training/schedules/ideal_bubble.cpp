#include "sim/training/schedules/ideal_bubble.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::int64_t not_done = -1;

// By part and micro-batch: when a pass has ended.
class Ends {
 public:
  explicit Ends(const PipelineShape& shape)
      : micro_batches_(shape.micro_batches),
        ends_(static_cast<std::size_t>(shape.parts() * shape.micro_batches), not_done) {}

  std::int64_t& of(std::int64_t part, std::int64_t micro_batch) {
    return ends_[static_cast<std::size_t>(part * micro_batches_ + micro_batch)];
  }

 private:
  std::int64_t micro_batches_;
  std::vector<std::int64_t> ends_;
};

struct StageTurns {
  std::vector<Pass> passes;
  std::size_t next = 0;
  std::int64_t begin = not_done;
  std::int64_t end = 0;
  std::int64_t busy = 0;
};

std::int64_t turns_of(PassKind kind) {
  return kind == PassKind::backward ? 2 : 1;
}

class BubbleFinder {
 public:
  BubbleFinder(const PipelineSchedule& schedule, const PipelineShape& shape)
      : schedule_(schedule), shape_(shape), forwards_(shape), backwards_(shape) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage)
      stages_.push_back({.passes = schedule.passes(shape, stage)});
  }

  IdealBubble find() {
    while (run_what_is_ready()) {
    }
    IdealBubble longest;
    for (const StageTurns& stage : stages_) {
      LOCKSTEP_CHECK(stage.next == stage.passes.size(), "a schedule waits for nothing that never comes");
      if (const std::int64_t span = stage.end - stage.begin; span > longest.span)
        longest = {.idle = span - stage.busy, .span = span};
    }
    return longest;
  }

 private:
  bool run_what_is_ready() {
    bool has_run = false;
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      StageTurns& turns = stages_[static_cast<std::size_t>(stage)];
      for (; turns.next < turns.passes.size() && run(turns, turns.passes[turns.next], stage); ++turns.next)
        has_run = true;
    }
    return has_run;
  }

  // When what the pass waits for is there; the start where it waits for nothing.
  std::int64_t ready(const Pass& pass, std::int64_t part) {
    if (pass.kind == PassKind::forward)
      return part == 0 ? 0 : forwards_.of(part - 1, pass.micro_batch);
    const bool waits_for_own = pass.kind == PassKind::backward_weights || part + 1 == shape_.parts();
    return waits_for_own ? 0 : backwards_.of(part + 1, pass.micro_batch);
  }

  bool run(StageTurns& turns, const Pass& pass, std::int64_t stage) {
    const std::int64_t part = schedule_.part(shape_, stage, pass.chunk);
    const std::int64_t needed = ready(pass, part);
    if (needed == not_done)
      return false;
    const std::int64_t start = std::max(turns.end, needed);
    if (turns.begin == not_done)
      turns.begin = start;
    turns.busy += turns_of(pass.kind);
    turns.end = start + turns_of(pass.kind);
    if (pass.kind != PassKind::backward_weights)
      (pass.kind == PassKind::forward ? forwards_ : backwards_).of(part, pass.micro_batch) = turns.end;
    return true;
  }

  const PipelineSchedule& schedule_;
  PipelineShape shape_;
  Ends forwards_;
  Ends backwards_;
  std::vector<StageTurns> stages_;
};

}  // namespace

IdealBubble ideal_bubble(std::string_view schedule, const PipelineShape& shape) {
  return BubbleFinder(pipeline_schedule_named(schedule), shape).find();
}

}  // namespace lockstep
