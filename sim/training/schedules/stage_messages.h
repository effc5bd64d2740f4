#pragma once

// What stages of a pipeline send each other.
//
// Problem:   a stage's ranks each send to the rank of another stage that holds the same copy of the model, as the
//            library moves messages between two ranks, beside both stages' computing.
// Idea:      one message along every line of ranks that hold a copy; all of them are one entry of the iteration's
//            list, in which senders and receivers take part.
//            What all stages have to know is added up along each line, as one collective.
// Invariant: a representative of the receiver has one message, that of its own line. Lanes are the sender's.
// Cost:      five ops a line (collectives/message.h).
// Reference: Megatron-LM core/pipeline_parallel/p2p_communication.py.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/message.h"
#include "sim/plan/cohort.h"
#include "sim/plan/group.h"
#include "sim/training/schedules/stage_passes.h"

namespace lockstep {

// Messages between stages, by representative of the whole plan.
struct PipelineLinks {
  std::vector<WrittenGroup>
      lines;  // ranks that hold one copy of the model, stage by stage; roles as in the plan
  Communications* communications = nullptr;  // filled
};

struct StageMessage {
  std::string name;
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes bytes;
  std::span<const LaneId> lanes;  // by representative of the sender
};

class StageMessages {
 public:
  // All must outlive it.
  StageMessages(PlanWriter& writer, std::span<const PipelineStage> stages, const PipelineLinks& links)
      : writer_(writer), stages_(stages), links_(links) {}

  // `ready`: by representative of the sender. Returns when each of the receiver has it.
  std::vector<OpId> send(const StageMessage& message, std::span<const OpId> ready);
  // An all-reduce of all stages; `ready` and what it returns by stage and its representative.
  std::vector<std::vector<OpId>> add_up(std::string_view name, Bytes bytes,
                                        const std::vector<std::vector<OpId>>& ready);

 private:
  const Cohort& cohort_of(std::int64_t stage) const;
  Communication entry_of(std::string_view name, CollectiveOp op, Bytes bytes, std::int64_t ranks) const;
  CollectiveOps add_up_along(const WrittenGroup& line, Bytes bytes, std::span<const LaneId> lanes,
                             std::span<const OpId> after, Communication& entry);
  MessageOps write_along(const WrittenGroup& line, const StageMessage& message, LaneId lane, OpId after,
                         Communication& entry);

  PlanWriter& writer_;
  std::span<const PipelineStage> stages_;
  const PipelineLinks& links_;
};

}  // namespace lockstep
