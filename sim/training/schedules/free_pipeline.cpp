#include "sim/training/schedules/free_pipeline.h"

#include <algorithm>
#include <optional>
#include <span>

#include "sim/base/check.h"

namespace lockstep {
namespace {

class FreePipeline {
 public:
  FreePipeline(const PipelineSchedule& schedule, const PipelineShape& shape,
               const std::vector<std::vector<PassTime>>& times)
      : schedule_(schedule),
        shape_(shape),
        times_(times),
        forward_ends_(static_cast<std::size_t>(shape.parts() * shape.micro_batches)),
        backward_ends_(forward_ends_.size()),
        spans_(times.size()),
        next_(times.size()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage)
      passes_.push_back(schedule.passes(shape, stage));
  }

  std::vector<FreeSpan> run() {
    while (run_what_is_ready()) {
    }
    for (std::size_t stage = 0; stage < passes_.size(); ++stage)
      LOCKSTEP_CHECK(next_[stage] == passes_[stage].size(), "a schedule waits for nothing that never comes");
    return std::move(spans_);
  }

 private:
  using End = std::optional<Duration>;

  bool run_what_is_ready() {
    bool has_run = false;
    for (std::size_t stage = 0; stage < passes_.size(); ++stage)
      while (next_[stage] < passes_[stage].size() && run_joined(stage)) has_run = true;
    return has_run;
  }

  std::int64_t part_of(std::size_t stage, const Pass& pass) const {
    return schedule_.part(shape_, static_cast<std::int64_t>(stage), pass.chunk);
  }
  End& end_of(std::vector<End>& ends, std::int64_t part, const Pass& pass) const {
    return ends[static_cast<std::size_t>(part * shape_.micro_batches + pass.micro_batch)];
  }

  // When what the pass waits for is there; none: it has not run yet.
  End ready(const Pass& pass, std::int64_t part) {
    if (pass.kind == PassKind::forward)
      return schedule_.begins_model(shape_, part) ? Duration::zero() : end_of(forward_ends_, part - 1, pass);
    const bool waits_for_own = pass.kind == PassKind::backward_weights || schedule_.ends_model(shape_, part);
    return waits_for_own ? Duration::zero() : end_of(backward_ends_, part + 1, pass);
  }

  // The next pass of the stage and those that are joined with it.
  bool run_joined(std::size_t stage) {
    const std::size_t end = end_of_joined(passes_[stage], next_[stage]);
    const std::span joined = std::span(passes_[stage]).subspan(next_[stage], end - next_[stage]);
    FreeSpan& span = spans_[stage];
    Duration start = span.end;
    for (const Pass& pass : joined) {
      const End needed = ready(pass, part_of(stage, pass));
      if (!needed)
        return false;
      start = std::max(start, *needed);
    }
    if (next_[stage] == 0)
      span.begin = start;
    span.end = start;
    for (const Pass& pass : joined) {
      const Duration time = times_[stage][static_cast<std::size_t>(pass.chunk)].of(pass.kind);
      span.end += time;
      span.busy += time;
    }
    for (const Pass& pass : joined) hand_on(pass, part_of(stage, pass), span.end);
    next_[stage] = end;
    return true;
  }

  void hand_on(const Pass& pass, std::int64_t part, Duration at) {
    if (pass.kind != PassKind::backward_weights)
      end_of(pass.kind == PassKind::forward ? forward_ends_ : backward_ends_, part, pass) = at;
  }

  const PipelineSchedule& schedule_;
  PipelineShape shape_;
  const std::vector<std::vector<PassTime>>& times_;
  std::vector<End> forward_ends_;  // by part and micro-batch; none: has not run yet
  std::vector<End> backward_ends_;
  std::vector<FreeSpan> spans_;  // by stage, of what has run so far
  std::vector<std::size_t> next_;
  std::vector<std::vector<Pass>> passes_;  // by stage
};

}  // namespace

Duration PassTime::of(PassKind kind) const {
  switch (kind) {
    case PassKind::forward:
      return forward;
    case PassKind::backward:
      return backward_input + backward_weights;
    case PassKind::backward_input:
      return backward_input;
    case PassKind::backward_weights:
      break;
  }
  return backward_weights;
}

std::vector<FreeSpan> run_freely(const PipelineSchedule& schedule, const PipelineShape& shape,
                                 const std::vector<std::vector<PassTime>>& times) {
  return FreePipeline(schedule, shape, times).run();
}

}  // namespace lockstep
