#include "sim/training/schedules/pipeline.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/training/memory.h"

namespace lockstep {
namespace {

// By part and micro-batch: when each representative of the stage that waits for it has it. Empty: not written yet.
class Deliveries {
 public:
  Deliveries(std::int64_t parts, std::int64_t micro_batches)
      : micro_batches_(static_cast<std::size_t>(micro_batches)),
        arrived_(static_cast<std::size_t>(parts) * micro_batches_),
        is_written_(arrived_.size()) {}

  void set(std::int64_t part, std::int64_t micro_batch, std::vector<OpId> arrived) {
    is_written_[index(part, micro_batch)] = true;
    arrived_[index(part, micro_batch)] = std::move(arrived);
  }
  bool is_written(std::int64_t part, std::int64_t micro_batch) const {
    return is_written_[index(part, micro_batch)];
  }
  const std::vector<OpId>& arrived(std::int64_t part, std::int64_t micro_batch) const {
    return arrived_[index(part, micro_batch)];
  }

 private:
  std::size_t index(std::int64_t part, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(part) * micro_batches_ + static_cast<std::size_t>(micro_batch);
  }

  std::size_t micro_batches_;
  std::vector<std::vector<OpId>> arrived_;
  std::vector<bool> is_written_;
};

bool is_forward(const Pass& pass) {
  return pass.kind == PassKind::forward;
}

class PipelineWriter {
 public:
  PipelineWriter(const PipelineSchedule& schedule, PlanWriter& writer, std::span<const PipelineStage> stages,
                 const PipelineLinks& links)
      : schedule_(schedule),
        stages_(stages),
        messages_(writer, stages, links),
        shape_(shape_of(stages)),
        places_(places_of_parts(schedule, shape_)),
        activations_(shape_.parts(), shape_.micro_batches),
        gradients_(shape_.parts(), shape_.micro_batches),
        next_(stages.size()) {
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      orders_.push_back(schedule.passes(shape_, stage));
      passes_.emplace_back(stage_at(stage), orders_.back());
    }
  }

  void write() {
    for (StagePasses& stage : passes_) stage.begin();
    while (write_what_is_ready()) {
    }
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      LOCKSTEP_CHECK(next_[stage] == orders_[stage].size(), "a schedule waits for nothing that never comes");
    if (schedule_.copies > 1)
      exchange_copies();
    else
      exchange_tied_gradient();
    for (StagePasses& stage : passes_) stage.clip();
    add_up_norms();
    for (StagePasses& stage : passes_) stage.update();
  }

 private:
  static PipelineShape shape_of(std::span<const PipelineStage> stages) {
    const Job& job = stages.front().context->job;
    return {.stages = std::ssize(stages),
            .chunks = std::ssize(job.stage->chunks),
            .micro_batches = job.training.gradient_accumulation};
  }

  const PipelineStage& stage_at(std::int64_t stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  const PartPlace& place_of(std::int64_t part) const { return places_[static_cast<std::size_t>(part)]; }

  // Of every stage the passes that wait for nothing more. False: there was none.
  bool write_what_is_ready() {
    bool has_written = false;
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      const auto index = static_cast<std::size_t>(stage);
      while (next_[index] < orders_[index].size() && are_ready(stage, joined(index))) {
        write_joined(stage, joined(index));
        next_[index] += joined(index).size();
        has_written = true;
      }
    }
    return has_written;
  }

  // The next pass of a stage and those that belong to it.
  std::span<const Pass> joined(std::size_t stage) const {
    const std::size_t first = next_[stage];
    return std::span(orders_[stage]).subspan(first, end_of_joined(orders_[stage], first) - first);
  }

  bool are_ready(std::int64_t stage, std::span<const Pass> passes) const {
    return std::all_of(passes.begin(), passes.end(), [&](const Pass& pass) { return is_ready(stage, pass); });
  }

  bool is_ready(std::int64_t stage, const Pass& pass) const {
    const std::int64_t part = schedule_.part(shape_, stage, pass.chunk);
    if (is_forward(pass))
      return schedule_.begins_model(shape_, part) || activations_.is_written(part - 1, pass.micro_batch);
    return pass.kind == PassKind::backward_weights || schedule_.ends_model(shape_, part) ||
           gradients_.is_written(part + 1, pass.micro_batch);
  }

  // One pass hands on what it has made as soon as that is there, joined ones when all are done.
  void write_joined(std::int64_t number, std::span<const Pass> passes) {
    StagePasses& stage = passes_[static_cast<std::size_t>(number)];
    for (const Pass& pass : passes) wait_for_input(stage, schedule_.part(shape_, number, pass.chunk), pass);
    std::vector<OpId> done;
    if (passes.size() > 1 && is_forward(passes.front()))
      stage.write_beside(passes.front(), passes.subspan(1), schedule_.pauses_at);
    else
      for (const Pass& pass : passes) done = write_pass(stage, pass);
    if (passes.size() > 1)
      done = stage.mark();
    for (const Pass& pass : passes) hand_on(schedule_.part(shape_, number, pass.chunk), pass, done);
  }

  void wait_for_input(StagePasses& stage, std::int64_t part, const Pass& pass) {
    if (is_forward(pass) && schedule_.begins_model(shape_, part))
      stage.take_batch();
    else if (is_forward(pass))
      stage.wait_for("wait for activations", activations_.arrived(part - 1, pass.micro_batch));
    else if (pass.kind != PassKind::backward_weights && !schedule_.ends_model(shape_, part))
      stage.wait_for("wait for gradients", gradients_.arrived(part + 1, pass.micro_batch));
  }

  // Returns what a neighbour waits for.
  static std::vector<OpId> write_pass(StagePasses& stage, const Pass& pass) {
    switch (pass.kind) {
      case PassKind::forward:
        return stage.write_forward_pass(pass);
      case PassKind::backward:
      case PassKind::backward_input:
        return stage.write_backward_pass(pass);
      case PassKind::backward_weights:
        break;
    }
    stage.write_weights_pass(pass);
    return {};
  }

  void hand_on(std::int64_t part, const Pass& pass, const std::vector<OpId>& done) {
    if (is_forward(pass) && !schedule_.ends_model(shape_, part))
      hand_on({.part = part, .to = part + 1, .micro_batch = pass.micro_batch}, done);
    if (!is_forward(pass) && pass.kind != PassKind::backward_weights && !schedule_.begins_model(shape_, part))
      hand_on({.part = part, .to = part - 1, .micro_batch = pass.micro_batch}, done);
  }

  struct HandOn {
    std::int64_t part = 0;
    std::int64_t to = 0;  // the part behind or before
    std::int64_t micro_batch = 0;
  };

  // The output of a part, or the gradient of its input, to the stage that waits for it.
  void hand_on(const HandOn& handed, const std::vector<OpId>& done) {
    const bool goes_forward = handed.to > handed.part;
    const PartPlace& from = place_of(handed.part);
    const PartPlace& to = place_of(handed.to);
    Deliveries& deliveries = goes_forward ? activations_ : gradients_;
    if (from.stage == to.stage)
      return deliveries.set(handed.part, handed.micro_batch, {});
    const PartPlace& owner = goes_forward ? from : to;  // of what is as large as the gradient of it
    const PipelineStage& sender = stage_at(from.stage);
    const Bytes bytes =
        stage_at(owner.stage).context->job.stage->handed_on[static_cast<std::size_t>(owner.chunk)];
    deliveries.set(handed.part, handed.micro_batch,
                   messages_.send({.name = goes_forward ? "send activations" : "send gradients",
                                   .from = from.stage,
                                   .to = to.stage,
                                   .bytes = bytes,
                                   .lanes = goes_forward ? sender.forward_sends : sender.backward_sends},
                                  done));
  }

  // No stage clips its gradients before it knows the norm of all.
  void add_up_norms() {
    if (!stage_at(0).context->job.training.gradient_clipping || shape_.stages == 1)
      return;
    std::vector<std::vector<OpId>> found;
    for (StagePasses& stage : passes_) found.push_back(stage.mark());
    const std::vector<std::vector<OpId>> sums = messages_.add_up("sum of norms", Bytes{4}, found);
    for (std::size_t stage = 0; stage < passes_.size(); ++stage)
      passes_[stage].wait_for("wait for the norm", sums[stage]);
  }

  // The first and the last stage have the same weights, and add up what each found: an all-reduce of two.
  void exchange_tied_gradient() {
    const PipelineStage& first = stages_.front();
    const auto& tied = first.context->job.stage->tied;
    if (tied && stages_.size() > 1)
      add_up({"tied gradient", 0, shape_.stages - 1}, first.context->job.gradients[*tied].bytes);
  }

  // Stages s and p - 1 - s hold the same parts, each for its own micro-batches.
  void exchange_copies() {
    for (std::int64_t stage = 0; stage < shape_.stages / 2; ++stage)
      add_up({"gradients of the other copy", stage, shape_.stages - 1 - stage},
             reduced_gradients(*stage_at(stage).context));
  }

  // What the other ranks of the group leave to a rank, which is what it updates.
  static Bytes reduced_gradients(const StrategyContext& context) {
    return divided_up(gradient_bytes(context.job), update_parts(context.job, context.group.members()));
  }

  struct Pair {
    std::string_view what;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  void add_up(const Pair& pair, Bytes bytes) {
    StagePasses& first = passes_[static_cast<std::size_t>(pair.first)];
    StagePasses& last = passes_[static_cast<std::size_t>(pair.last)];
    const std::string name(pair.what);
    const std::vector<OpId> there = messages_.send(
        {name, pair.first, pair.last, bytes, stage_at(pair.first).forward_sends}, first.mark());
    const std::vector<OpId> back =
        messages_.send({name, pair.last, pair.first, bytes, stage_at(pair.last).backward_sends}, last.mark());
    first.wait_for("wait for the " + name, back);
    last.wait_for("wait for the " + name, there);
  }

  const PipelineSchedule& schedule_;
  std::span<const PipelineStage> stages_;
  StageMessages messages_;
  PipelineShape shape_;
  std::vector<PartPlace> places_;  // by part of the model
  Deliveries activations_;
  Deliveries gradients_;
  std::vector<std::vector<Pass>> orders_;  // by stage
  std::vector<StagePasses> passes_;        // by stage
  std::vector<std::size_t> next_;          // by stage: the pass to come
};

}  // namespace

void write_pipeline(const PipelineSchedule& schedule, PlanWriter& writer,
                    std::span<const PipelineStage> stages, const PipelineLinks& links) {
  PipelineWriter(schedule, writer, stages, links).write();
}

}  // namespace lockstep
