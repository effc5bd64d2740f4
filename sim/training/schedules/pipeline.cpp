#include "sim/training/schedules/pipeline.h"

#include <utility>
#include <vector>

#include "sim/base/check.h"

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
    exchange_tied_gradient();
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
      while (next_[index] < orders_[index].size() && is_ready(stage, orders_[index][next_[index]])) {
        write_pass(stage, orders_[index][next_[index]]);
        ++next_[index];
        has_written = true;
      }
    }
    return has_written;
  }

  bool is_ready(std::int64_t stage, const Pass& pass) const {
    const std::int64_t part = schedule_.part(shape_, stage, pass.chunk);
    if (is_forward(pass))
      return part == 0 || activations_.is_written(part - 1, pass.micro_batch);
    return pass.kind == PassKind::backward_weights || part + 1 == shape_.parts() ||
           gradients_.is_written(part + 1, pass.micro_batch);
  }

  void write_pass(std::int64_t number, const Pass& pass) {
    StagePasses& stage = passes_[static_cast<std::size_t>(number)];
    const std::int64_t part = schedule_.part(shape_, number, pass.chunk);
    switch (pass.kind) {
      case PassKind::forward:
        return write_forward_pass(stage, part, pass);
      case PassKind::backward:
      case PassKind::backward_input:
        return write_backward_pass(stage, part, pass);
      case PassKind::backward_weights:
        return stage.write_weights_pass(pass);
    }
  }

  void write_forward_pass(StagePasses& stage, std::int64_t part, const Pass& pass) {
    if (part == 0)
      stage.take_batch();
    else
      stage.wait_for("wait for activations", activations_.arrived(part - 1, pass.micro_batch));
    const std::vector<OpId> done = stage.write_forward_pass(pass);
    if (part + 1 < shape_.parts())
      hand_on({.part = part, .to = part + 1, .micro_batch = pass.micro_batch}, done);
  }

  void write_backward_pass(StagePasses& stage, std::int64_t part, const Pass& pass) {
    if (part + 1 < shape_.parts())
      stage.wait_for("wait for gradients", gradients_.arrived(part + 1, pass.micro_batch));
    const std::vector<OpId> done = stage.write_backward_pass(pass);
    if (part > 0)
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

  // The first and the last stage have the same weights, and add up what each found: an all-reduce of two.
  void exchange_tied_gradient() {
    const PipelineStage& first = stages_.front();
    const PipelineStage& last = stages_.back();
    const auto& tied = first.context->job.stage->tied;
    if (!tied || stages_.size() == 1)
      return;
    const Bytes bytes = first.context->job.gradients[*tied].bytes;
    const std::int64_t end = shape_.stages - 1;
    const std::vector<OpId> there =
        messages_.send({"tied gradient", 0, end, bytes, first.forward_sends}, passes_.front().mark());
    const std::vector<OpId> back =
        messages_.send({"tied gradient", end, 0, bytes, last.backward_sends}, passes_.back().mark());
    passes_.front().wait_for("wait for the tied gradient", back);
    passes_.back().wait_for("wait for the tied gradient", there);
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
