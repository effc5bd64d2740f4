// DualPipe: two copies of the model, whose micro-batches go through the stages from both ends at once.
//
// Stage s holds parts s and p - 1 - s, one for each direction; half of the micro-batches enter at either end. In the
// steady state each forward of one direction is joined with a backward of the other: a stage takes both inputs, runs
// the two beside each other and hands both on. What is put off of backwards by weights fills ramp and end. With d
// stages between a stage and the middle, e = p / 2 - d:
//   2 d forwards of the own direction, e of each, d backwards of the other with their weights' half between them and a
//   forward; m / 2 - p + e turns of two pairs; d times a backward and a pair; e backwards of each, the later half of
//   them by input alone; d times a weights' half and a backward by input; the e weights' halves that are left.
// The bubble is (p / 2 - 1) (F&B + B - 3 W), with B the whole backward and F&B a pair; counted so where F is as long as
// the backward by input, which the authors' formula is for. A stage holds p + 1 micro-batches' parts, and parameters
// twice. The two stages that hold the same parts add their gradients up before they are updated.
// Reference: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 3.2.1 and table 2; the order as in
//            deepseek-ai/DualPipe, dualpipe/dualpipe.py (step).

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "sim/training/schedules/pass_list.h"

namespace lockstep {
namespace {

constexpr std::int64_t directions = 2;

class DualPipeOrder {
 public:
  DualPipeOrder(const PipelineShape& shape, std::int64_t stage)
      : list_({.stages = shape.stages,
               .chunks = directions,
               .micro_batches = shape.micro_batches / directions}),
        from_end_(std::min(stage, shape.stages - 1 - stage) + 1),
        from_middle_(shape.stages / 2 - from_end_),
        turns_(shape.micro_batches / directions - shape.stages + from_end_),
        own_(stage < shape.stages / 2 ? 0 : 1),
        other_(1 - own_) {}

  std::vector<Pass> passes() {
    add_ramp();
    add_turns();
    add_end();
    return std::move(list_).passes();
  }

 private:
  void add_ramp() {
    list_.add_times(2 * from_middle_, PassKind::forward, own_);
    for (std::int64_t turn = 0; turn < from_end_; ++turn)
      for (const std::int64_t direction : {own_, other_}) list_.add(PassKind::forward, direction);
    for (std::int64_t turn = 0; turn < from_middle_; ++turn) {
      add_backward_input(other_);
      add_weights();
      list_.add(PassKind::forward, other_);
    }
  }

  // In the middle the first two are not joined: what the backward waits for comes from the neighbour's forward.
  void add_turns() {
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      add_forward_and_backward(own_, turn > 0 || from_middle_ > 0);
      add_forward_and_backward(other_, true);
    }
  }

  void add_end() {
    for (std::int64_t turn = 0; turn < from_middle_; ++turn) {
      add_backward(other_);
      add_forward_and_backward(other_, true);
    }
    for (std::int64_t backward = 0; backward < directions * from_end_; ++backward) {
      const std::int64_t direction = backward % directions == 0 ? other_ : own_;
      if (backward < from_end_)
        add_backward(direction);
      else
        add_backward_input(direction);
    }
    for (std::int64_t turn = 0; turn < from_middle_; ++turn) {
      add_weights();
      add_backward_input(own_);
    }
    for (std::int64_t turn = 0; turn < from_end_; ++turn) add_weights();
  }

  void add_forward_and_backward(std::int64_t forward, bool are_joined) {
    list_.add(PassKind::forward, forward);
    if (are_joined)
      list_.join_next();
    add_backward(1 - forward);
  }

  void add_backward(std::int64_t direction) {
    list_.add(PassKind::backward_input, direction);
    list_.join_next();
    list_.add(PassKind::backward_weights, direction);
  }

  void add_backward_input(std::int64_t direction) {
    list_.add(PassKind::backward_input, direction);
    put_off_.push_back(direction);
  }

  void add_weights() {
    list_.add(PassKind::backward_weights, put_off_.front());
    put_off_.pop_front();
  }

  PassList list_;
  std::int64_t from_end_;     // stages from the nearer end to this, both counted
  std::int64_t from_middle_;  // between it and the middle
  std::int64_t turns_;
  std::int64_t own_;  // the direction that enters at the nearer end
  std::int64_t other_;
  std::deque<std::int64_t> put_off_;  // directions of the backwards whose weights' half is to come
};

std::vector<Pass> dualpipe_passes(const PipelineShape& shape, std::int64_t stage) {
  return DualPipeOrder(shape, stage).passes();
}

std::string even_near(std::int64_t stages) {
  return stages == 1 ? "2 would do" : fmt::format("{} or {} would do", stages - 1, stages + 1);
}

std::vector<ShapeProblem> dualpipe_problems(const PipelineShape& shape) {
  if (shape.stages % 2 != 0)
    return {{"pipeline_parallel", fmt::format("dualpipe has two halves of stages; {} are not even: {}",
                                              shape.stages, even_near(shape.stages))}};
  const std::int64_t least = 2 * shape.stages;
  if (shape.micro_batches >= least && shape.micro_batches % 2 == 0)
    return {};
  return {{"gradient_accumulation",
           fmt::format(
               "dualpipe takes an even number of micro-batches, two or more for each of {} stages; found {}: "
               "{} would do",
               shape.stages, shape.micro_batches, std::max(least, shape.micro_batches + 1))}};
}

const Registration<PipelineSchedule> dualpipe_registration{
    "dualpipe",
    {.passes = dualpipe_passes,
     .description = "two copies of the model, micro-batches from both ends; less than half the bubble, twice "
                    "the parameters",
     .source = "DeepSeek-AI 2024, arXiv 2412.19437",
     .chunks = {.least = directions, .most = directions},
     .splits_backward = true,
     .copies = directions,
     .part = part_in_v,
     .problems = dualpipe_problems}};

}  // namespace
}  // namespace lockstep
