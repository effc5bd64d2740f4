// A pipeline whose messages cost nothing: when each pass of a schedule runs, by the rules alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {

// Of one part of the model; a whole backward takes the sum of its halves.
struct PassTimes {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weights = 1;

  std::int64_t backward() const { return backward_input + backward_weights; }
  std::int64_t micro_batch() const { return forward + backward(); }

  std::int64_t of(PassKind kind) const {
    switch (kind) {
      case PassKind::forward:
        return forward;
      case PassKind::backward:
        return backward();
      case PassKind::backward_input:
        return backward_input;
      case PassKind::backward_weights:
        break;
    }
    return backward_weights;
  }
};

struct StageSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t busy = 0;

  std::int64_t idle() const { return end - begin - busy; }
};

using StagePasses = std::vector<std::vector<Pass>>;

inline StagePasses passes_by_stage(const PipelineSchedule& schedule, const PipelineShape& shape) {
  StagePasses passes;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) passes.push_back(schedule.passes(shape, stage));
  return passes;
}

class IdealPipeline {
 public:
  IdealPipeline(const PipelineSchedule& schedule, const PipelineShape& shape, const PassTimes& times)
      : schedule_(schedule), shape_(shape), times_(times) {}

  // Null: the stages wait for one another for ever.
  std::optional<std::vector<StageSpan>> run(const StagePasses& passes) {
    std::vector<StageSpan> spans(passes.size());
    std::vector<std::size_t> next(passes.size());
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::size_t stage = 0; stage < passes.size(); ++stage)
        while (next[stage] < passes[stage].size()) {
          const std::vector<Pass> joined = joined_from(passes[stage], next[stage]);
          if (!run_joined(joined, stage, spans[stage]))
            break;
          next[stage] += joined.size();
          has_moved = true;
        }
    }
    for (std::size_t stage = 0; stage < passes.size(); ++stage)
      if (next[stage] < passes[stage].size())
        return std::nullopt;
    return spans;
  }

 private:
  enum class Done : std::uint8_t { forward, backward_input, backward_weights };
  using Key = std::tuple<Done, std::int64_t, std::int64_t>;  // micro-batch, part

  static Done done_by(PassKind kind) {
    if (kind == PassKind::forward)
      return Done::forward;
    return kind == PassKind::backward_weights ? Done::backward_weights : Done::backward_input;
  }

  static std::vector<Pass> joined_from(const std::vector<Pass>& passes, std::size_t first) {
    std::vector<Pass> joined{passes[first]};
    while (joined.back().joins_next) joined.push_back(passes[first + joined.size()]);
    return joined;
  }

  std::vector<Key> needs(Done done, std::int64_t micro, std::int64_t part) const {
    const std::int64_t of_copy = shape_.parts() / schedule_.copies;
    if (done == Done::backward_weights)
      return {{Done::backward_input, micro, part}};
    if (done == Done::forward)
      return part % of_copy == 0 ? std::vector<Key>{} : std::vector<Key>{{Done::forward, micro, part - 1}};
    std::vector<Key> needed{{Done::forward, micro, part}};
    if (part % of_copy + 1 < of_copy)
      needed.push_back({Done::backward_input, micro, part + 1});
    return needed;
  }

  // Joined passes begin once each of them could, but for what they make themselves; all end together.
  bool run_joined(const std::vector<Pass>& joined, std::size_t stage, StageSpan& span) {
    std::int64_t start = span.end;
    std::int64_t takes = 0;
    std::vector<Key> made;
    for (const Pass& pass : joined) {
      const std::int64_t part = schedule_.part(shape_, static_cast<std::int64_t>(stage), pass.chunk);
      for (const Key& needed : needs(done_by(pass.kind), pass.micro_batch, part)) {
        if (std::find(made.begin(), made.end(), needed) != made.end())
          continue;
        const auto found = end_of_.find(needed);
        if (found == end_of_.end())
          return false;
        start = std::max(start, found->second);
      }
      made.push_back({done_by(pass.kind), pass.micro_batch, part});
      takes += times_.of(pass.kind);
    }
    if (span.busy == 0)
      span.begin = start;
    span.end = start + takes;
    span.busy += takes;
    for (const Key& key : made) end_of_[key] = span.end;
    return true;
  }

  const PipelineSchedule& schedule_;
  PipelineShape shape_;
  PassTimes times_;
  std::map<Key, std::int64_t> end_of_;
};

}  // namespace lockstep
