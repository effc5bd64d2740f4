#include "sim/training/schedules/stage_passes.h"

#include <array>

#include "sim/base/check.h"
#include "sim/training/host_lane.h"
#include "sim/training/pausing_layer.h"
#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

std::vector<std::int64_t> last_by_chunk(std::span<const Pass> passes, std::int64_t chunks) {
  std::vector<std::int64_t> last(static_cast<std::size_t>(chunks));
  for (const Pass& pass : passes)
    if (completes_gradients(pass))
      last[static_cast<std::size_t>(pass.chunk)] = pass.micro_batch;
  return last;
}

}  // namespace

StagePasses::StagePasses(const PipelineStage& stage, std::span<const Pass> passes)
    : stage_(stage),
      context_(*stage.context),
      synchroniser_(*stage.synchroniser),
      chunks_(std::ssize(context_.job.stage->chunks)),
      last_micro_batches_(last_by_chunk(passes, chunks_)) {
  LOCKSTEP_CHECK(chunks_ == 1 || !synchroniser_.reduces_every_micro_batch(),
                 "chunks are at different micro-batches: load refuses strategies that reduce each");
}

void StagePasses::begin() {
  const CohortScope scope = enter();
  synchroniser_.begin();
}

void StagePasses::take_batch() {
  const CohortScope scope = enter();
  write_batch(context_);
}

void StagePasses::wait_for(std::string_view what, std::span<const OpId> arrived) {
  if (arrived.empty())
    return;
  const CohortScope scope = enter();
  write_wait(context_, what, arrived, Category::pipeline_bubble);
}

std::vector<OpId> StagePasses::write_forward_pass(const Pass& pass) {
  const CohortScope scope = enter();
  const MicroBatch micro = micro_batch_of(pass);
  const LayerRange& layers = layers_of(pass);
  std::vector<OpId> done;
  write_pass_begin(context_);
  for (std::size_t layer = layers.first; layer < layers.last; ++layer) {
    synchroniser_.pre_forward(micro, layer);
    done = write_forward_of(context_, context_.job.layers[layer]);
    synchroniser_.post_forward(micro, layer, done);
  }
  return done.empty() ? write_mark(context_) : done;
}

std::vector<OpId> StagePasses::write_backward_pass(const Pass& pass) {
  const CohortScope scope = enter();
  const MicroBatch micro = micro_batch_of(pass);
  const LayerRange& layers = layers_of(pass);
  std::vector<OpId> done;
  write_pass_begin(context_);
  for (std::size_t layer = layers.last; layer-- > layers.first;) {
    const LayerWork& work = context_.job.layers[layer];
    synchroniser_.pre_backward(micro, layer);
    if (pass.kind == PassKind::backward_input) {
      done = write_backward_input(context_, work);
      continue;
    }
    done = write_backward(context_, work);
    hear_of_gradients(micro, layer, done);
  }
  if (done.empty())
    done = write_mark(context_);
  if (pass.kind == PassKind::backward)
    end_backward(micro);
  return done;
}

void StagePasses::write_weights_pass(const Pass& pass) {
  const CohortScope scope = enter();
  write_weights_of(pass);
}

void StagePasses::write_weights_of(const Pass& pass) {
  const MicroBatch micro = micro_batch_of(pass);
  const LayerRange& layers = layers_of(pass);
  write_pass_begin(context_);
  for (std::size_t layer = layers.last; layer-- > layers.first;)
    hear_of_gradients(micro, layer, write_backward_weights(context_, context_.job.layers[layer]));
  end_backward(micro);
}

Pausing StagePasses::pausing_forward_pass(const Pass& pass, PausesAt at) {
  const MicroBatch micro = micro_batch_of(pass);
  const LayerRange& layers = layers_of(pass);
  write_pass_begin(context_);
  for (std::size_t layer = layers.first; layer < layers.last; ++layer) {
    std::vector<OpId> done;
    synchroniser_.pre_forward(micro, layer);
    Pausing written = pausing_forward(context_, at, context_.job.layers[layer], done);
    while (written.resume()) co_await pause();
    synchroniser_.post_forward(micro, layer, done);
  }
}

Pausing StagePasses::pausing_backwards(std::span<const Pass> passes, PausesAt at) {
  for (const Pass& pass : passes) {
    if (pass.kind == PassKind::backward_weights) {
      write_weights_of(pass);
      continue;
    }
    const MicroBatch micro = micro_batch_of(pass);
    const LayerRange& layers = layers_of(pass);
    write_pass_begin(context_);
    for (std::size_t layer = layers.last; layer-- > layers.first;) {
      std::vector<OpId> done;
      const LayerWork& work = context_.job.layers[layer];
      synchroniser_.pre_backward(micro, layer);
      Pausing written = pass.kind == PassKind::backward ? pausing_backward(context_, at, work, done)
                                                        : pausing_backward_input(context_, at, work, done);
      while (written.resume()) co_await pause();
      if (pass.kind == PassKind::backward)
        hear_of_gradients(micro, layer, done);
    }
    if (pass.kind == PassKind::backward)
      end_backward(micro);
  }
}

// The host issues the kernels of the forward first.
void StagePasses::write_beside(const Pass& forward, std::span<const Pass> backwards, PausesAt at) {
  const CohortScope scope = enter();
  const LayerRange& layers = layers_of(forward);
  const std::size_t first = context_.host != nullptr ? context_.host->kernel() : 0;
  std::array<std::size_t, 2> kernel{first, first + layers.last - layers.first};
  std::array<Pausing, 2> passes{pausing_forward_pass(forward, at), pausing_backwards(backwards, at)};
  std::array<bool, 2> goes_on{true, true};
  while (goes_on[0] || goes_on[1])
    for (std::size_t one = 0; one < passes.size(); ++one) {
      if (!goes_on[one])
        continue;
      if (context_.host != nullptr)
        context_.host->go_to(kernel[one]);
      goes_on[one] = passes[one].resume();
      if (context_.host != nullptr)
        kernel[one] = context_.host->kernel();
    }
  if (context_.host != nullptr)
    context_.host->go_to(kernel[1]);
}

std::vector<OpId> StagePasses::mark() {
  const CohortScope scope = enter();
  return write_mark(context_);
}

void StagePasses::clip() {
  const CohortScope scope = enter();
  write_partial_sums(context_);
  synchroniser_.clip();
}

void StagePasses::update() {
  const CohortScope scope = enter();
  synchroniser_.update();
}

MicroBatch StagePasses::micro_batch_of(const Pass& pass) const {
  const std::int64_t last = last_micro_batches_[static_cast<std::size_t>(pass.chunk)];
  return {.index = pass.micro_batch,
          .is_reduced = pass.micro_batch == last || synchroniser_.reduces_every_micro_batch()};
}

const LayerRange& StagePasses::layers_of(const Pass& pass) const {
  return context_.job.stage->chunks[static_cast<std::size_t>(pass.chunk)];
}

void StagePasses::hear_of_gradients(const MicroBatch& micro, std::size_t layer,
                                    const std::vector<OpId>& done) {
  if (micro.is_reduced)
    for (const std::uint32_t gradient : context_.job.layers[layer].gradients)
      synchroniser_.gradient_ready(gradient, done);
  synchroniser_.post_backward(micro, layer, done);
}

// The gradients of a reduced micro-batch are all there once each chunk has done with its last.
void StagePasses::end_backward(const MicroBatch& micro) {
  if (!micro.is_reduced)
    return;
  if (++reduced_ % chunks_ == 0)
    synchroniser_.finish();
}

}  // namespace lockstep
