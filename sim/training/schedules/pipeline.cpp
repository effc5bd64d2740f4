#include "sim/training/schedules/pipeline.h"

#include <algorithm>
#include <string>

#include "sim/base/check.h"
#include "sim/collectives/message.h"
#include "sim/training/step_writer.h"

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
        writer_(writer),
        stages_(stages),
        links_(links),
        shape_(shape_of(stages)),
        places_(places_of_parts(schedule, shape_)),
        activations_(shape_.parts(), shape_.micro_batches),
        gradients_(shape_.parts(), shape_.micro_batches),
        reduced_(stages.size()) {
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage)
      passes_.push_back(schedule.passes(shape_, stage));
    for (const std::vector<Pass>& passes : passes_) last_micro_batches_.push_back(last_by_chunk(passes));
    next_.resize(stages.size());
  }

  void write() {
    for (const PipelineStage& stage : stages_) {
      LOCKSTEP_CHECK(shape_.chunks == 1 || !stage.synchroniser->reduces_every_micro_batch(),
                     "chunks are at different micro-batches: load refuses strategies that reduce each");
      const CohortScope scope(writer_, stage.cohort);
      stage.synchroniser->begin();
    }
    while (write_what_is_ready()) {
    }
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      LOCKSTEP_CHECK(next_[stage] == passes_[stage].size(), "a schedule waits for nothing that never comes");
    exchange_tied_gradient();
    for (const PipelineStage& stage : stages_) {
      const CohortScope scope(writer_, stage.cohort);
      write_partial_sums(*stage.context);
      stage.synchroniser->update();
    }
  }

 private:
  static PipelineShape shape_of(std::span<const PipelineStage> stages) {
    const Job& job = stages.front().context->job;
    return {.stages = std::ssize(stages),
            .chunks = std::ssize(job.stage->chunks),
            .micro_batches = job.training.gradient_accumulation};
  }

  const PipelineStage& stage_at(std::int64_t stage) const { return stages_[static_cast<std::size_t>(stage)]; }

  // Whose backward is the last of each chunk: what it completes is reduced.
  std::vector<std::int64_t> last_by_chunk(const std::vector<Pass>& passes) const {
    std::vector<std::int64_t> last(static_cast<std::size_t>(shape_.chunks));
    for (const Pass& pass : passes)
      if (completes_gradients(pass))
        last[static_cast<std::size_t>(pass.chunk)] = pass.micro_batch;
    return last;
  }

  // Of every stage the passes that wait for nothing more. False: there was none.
  bool write_what_is_ready() {
    bool has_written = false;
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      const auto index = static_cast<std::size_t>(stage);
      while (next_[index] < passes_[index].size() && is_ready(stage, passes_[index][next_[index]])) {
        write_pass(stage, passes_[index][next_[index]]);
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

  void write_pass(std::int64_t stage, const Pass& pass) {
    switch (pass.kind) {
      case PassKind::forward:
        return write_forward_pass(stage, pass);
      case PassKind::backward:
      case PassKind::backward_input:
        return write_backward_pass(stage, pass);
      case PassKind::backward_weights:
        return write_weights_pass(stage, pass);
    }
  }

  MicroBatch micro_batch_of(std::int64_t stage, const Pass& pass) const {
    const std::int64_t last =
        last_micro_batches_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass.chunk)];
    return {
        .index = pass.micro_batch,
        .is_reduced = pass.micro_batch == last || stage_at(stage).synchroniser->reduces_every_micro_batch()};
  }

  const LayerRange& layers_of(const PipelineStage& stage, const Pass& pass) const {
    return stage.context->job.stage->chunks[static_cast<std::size_t>(pass.chunk)];
  }

  void write_forward_pass(std::int64_t number, const Pass& pass) {
    const PipelineStage& stage = stage_at(number);
    const std::int64_t part = schedule_.part(shape_, number, pass.chunk);
    const MicroBatch micro = micro_batch_of(number, pass);
    std::vector<OpId> done;
    {
      const CohortScope scope(writer_, stage.cohort);
      if (part == 0)
        write_batch(*stage.context);
      else
        wait_for_neighbour(stage, "wait for activations", activations_.arrived(part - 1, pass.micro_batch));
      write_pass_begin(*stage.context);
      const LayerRange& layers = layers_of(stage, pass);
      for (std::size_t layer = layers.first; layer < layers.last; ++layer) {
        stage.synchroniser->pre_forward(micro, layer);
        done = write_forward_of(*stage.context, stage.context->job.layers[layer]);
        stage.synchroniser->post_forward(micro, layer, done);
      }
      if (done.empty())
        done = write_mark(*stage.context);
    }
    if (part + 1 < shape_.parts())
      hand_on({.from = {number, pass.chunk}, .to = place_of(part + 1), .pass = pass}, std::move(done));
  }

  void write_backward_pass(std::int64_t number, const Pass& pass) {
    const PipelineStage& stage = stage_at(number);
    const std::int64_t part = schedule_.part(shape_, number, pass.chunk);
    const MicroBatch micro = micro_batch_of(number, pass);
    std::vector<OpId> done;
    {
      const CohortScope scope(writer_, stage.cohort);
      if (part + 1 < shape_.parts())
        wait_for_neighbour(stage, "wait for gradients", gradients_.arrived(part + 1, pass.micro_batch));
      write_pass_begin(*stage.context);
      const LayerRange& layers = layers_of(stage, pass);
      for (std::size_t layer = layers.last; layer-- > layers.first;) {
        const LayerWork& work = stage.context->job.layers[layer];
        stage.synchroniser->pre_backward(micro, layer);
        if (pass.kind == PassKind::backward_input) {
          done = write_backward_input(*stage.context, work);
          continue;
        }
        done = write_backward(*stage.context, work);
        hear_of_gradients(stage, micro, layer, done);
      }
      if (done.empty())
        done = write_mark(*stage.context);
      if (pass.kind == PassKind::backward)
        end_backward(number, micro);
    }
    if (part > 0)
      hand_on({.from = {number, pass.chunk}, .to = place_of(part - 1), .pass = pass}, std::move(done));
  }

  void write_weights_pass(std::int64_t number, const Pass& pass) {
    const PipelineStage& stage = stage_at(number);
    const MicroBatch micro = micro_batch_of(number, pass);
    const CohortScope scope(writer_, stage.cohort);
    write_pass_begin(*stage.context);
    const LayerRange& layers = layers_of(stage, pass);
    for (std::size_t layer = layers.last; layer-- > layers.first;)
      hear_of_gradients(stage, micro, layer,
                        write_backward_weights(*stage.context, stage.context->job.layers[layer]));
    end_backward(number, micro);
  }

  static void hear_of_gradients(const PipelineStage& stage, const MicroBatch& micro, std::size_t layer,
                                const std::vector<OpId>& done) {
    if (micro.is_reduced)
      for (const std::uint32_t gradient : stage.context->job.layers[layer].gradients)
        stage.synchroniser->gradient_ready(gradient, done);
    stage.synchroniser->post_backward(micro, layer, done);
  }

  // The gradients of a reduced micro-batch are all there once each chunk has done with its last.
  void end_backward(std::int64_t number, const MicroBatch& micro) {
    if (!micro.is_reduced)
      return;
    std::int64_t& count = reduced_[static_cast<std::size_t>(number)];
    if (++count % shape_.chunks == 0)
      stage_at(number).synchroniser->finish();
  }

  static void wait_for_neighbour(const PipelineStage& stage, std::string_view what,
                                 const std::vector<OpId>& arrived) {
    if (!arrived.empty())  // else it is its own
      write_wait(*stage.context, what, arrived, Category::pipeline_bubble);
  }

  const PartPlace& place_of(std::int64_t part) const { return places_[static_cast<std::size_t>(part)]; }

  struct HandOn {
    PartPlace from;
    PartPlace to;
    Pass pass;
  };

  // The output of a part, or the gradient of its input, to the stage that waits for it.
  void hand_on(const HandOn& handed, std::vector<OpId> done) {
    const bool goes_forward = is_forward(handed.pass);
    const std::int64_t part = schedule_.part(shape_, handed.from.stage, handed.from.chunk);
    Deliveries& deliveries = goes_forward ? activations_ : gradients_;
    if (handed.from.stage == handed.to.stage)
      return deliveries.set(part, handed.pass.micro_batch, {});
    const PartPlace& owner =
        goes_forward ? handed.from : handed.to;  // of what is as large as the gradient of it
    const PipelineStage& sender = stage_at(handed.from.stage);
    const Bytes bytes =
        stage_at(owner.stage).context->job.stage->handed_on[static_cast<std::size_t>(owner.chunk)];
    deliveries.set(part, handed.pass.micro_batch,
                   send({.name = goes_forward ? "send activations" : "send gradients",
                         .from = handed.from.stage,
                         .to = handed.to.stage,
                         .bytes = bytes,
                         .lanes = goes_forward ? sender.forward_sends : sender.backward_sends},
                        done));
  }

  struct Sending {
    std::string name;
    std::int64_t from = 0;
    std::int64_t to = 0;
    Bytes bytes;
    std::span<const LaneId> lanes;  // by representative of the sender
  };

  // Along every line; returns when each representative of the receiver has it.
  std::vector<OpId> send(const Sending& sending, const std::vector<OpId>& ready) {
    writer_.section(sending.name, Category::communication);
    const Cohort& from = *stage_at(sending.from).cohort;
    const Cohort& to = *stage_at(sending.to).cohort;
    Communication entry = entry_of(sending);
    std::vector<std::uint32_t> roles;
    std::vector<Participation> parts;  // of these
    std::vector<OpId> arrived(to.representatives.size(), no_op);
    for (const WrittenGroup& line : links_.lines) {
      const std::uint32_t role = line.roles[static_cast<std::size_t>(sending.from)];
      const std::uint32_t receiver = line.roles[static_cast<std::size_t>(sending.to)];
      const std::uint32_t place = from.place_of[role];
      const MessageOps ops = write_along(line, sending, sending.lanes[place], ready[place], entry);
      arrived[to.place_of[receiver]] = ops.end;
      roles.push_back(role);
      parts.push_back({ready[place], ops.begin, ops.end});
      roles.push_back(receiver);
      parts.push_back({no_op, ops.begin, ops.end});
    }
    take_part(entry, roles.size(), roles, [&](std::size_t place) { return parts[place]; });
    links_.communications->push_back(std::move(entry));
    return arrived;
  }

  Communication entry_of(const Sending& sending) const {
    Communication entry;
    entry.name = writer_.text(sending.name);
    entry.payload = Payload::activations;
    entry.op = CollectiveOp::send_recv;
    entry.bytes = entry.bytes_on_wire = sending.bytes;
    entry.ranks = 2;
    entry.dimension = "pipeline";
    entry.algorithm = "direct";
    return entry;
  }

  MessageOps write_along(const WrittenGroup& line, const Sending& sending, LaneId lane, OpId after,
                         Communication& entry) {
    const Job& job = stages_.front().context->job;
    const GroupScope scope(writer_, line);
    const Choice choice =
        choose_in(*stages_.front().context, {.world = *line.communicator,
                                             .op = CollectiveOp::send_recv,
                                             .bytes = sending.bytes,
                                             .library = job.communication.library,
                                             .library_version = job.communication.library_version,
                                             .protocol = job.communication.protocol});
    entry.protocol = writer_.text(choice.protocol_name);
    return write_message(writer_, {.bytes = sending.bytes,
                                   .world = *line.communicator,
                                   .from = Rank{static_cast<std::uint32_t>(sending.from)},
                                   .to = Rank{static_cast<std::uint32_t>(sending.to)},
                                   .fidelity = job.fidelity,
                                   .protocol = choice.protocol,
                                   .lane = lane,
                                   .after = after});
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
    const std::vector<OpId> there = send({"tied gradient", 0, end, bytes, first.forward_sends}, mark(first));
    const std::vector<OpId> back = send({"tied gradient", end, 0, bytes, last.backward_sends}, mark(last));
    wait_for_tied(first, back);
    wait_for_tied(last, there);
  }

  std::vector<OpId> mark(const PipelineStage& stage) {
    const CohortScope scope(writer_, stage.cohort);
    return write_mark(*stage.context);
  }

  void wait_for_tied(const PipelineStage& stage, const std::vector<OpId>& arrived) {
    const CohortScope scope(writer_, stage.cohort);
    wait_for_neighbour(stage, "wait for the tied gradient", arrived);
  }

  const PipelineSchedule& schedule_;
  PlanWriter& writer_;
  std::span<const PipelineStage> stages_;
  const PipelineLinks& links_;
  PipelineShape shape_;
  std::vector<PartPlace> places_;  // by part of the model
  Deliveries activations_;
  Deliveries gradients_;
  std::vector<std::vector<Pass>> passes_;                      // by stage
  std::vector<std::size_t> next_;                              // by stage: the pass to come
  std::vector<std::vector<std::int64_t>> last_micro_batches_;  // by stage and chunk
  std::vector<std::int64_t> reduced_;                          // by stage: backwards that were reduced
};

}  // namespace

void write_pipeline(const PipelineSchedule& schedule, PlanWriter& writer,
                    std::span<const PipelineStage> stages, const PipelineLinks& links) {
  PipelineWriter(schedule, writer, stages, links).write();
}

}  // namespace lockstep
