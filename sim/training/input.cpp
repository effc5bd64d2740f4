#include "sim/training/input.h"

namespace lockstep {

InputPipeline::InputPipeline(PlanWriter& writer, std::span<const LaneId> compute, const InputWork& work,
                             Beginning beginning)
    : writer_(writer), compute_(compute.begin(), compute.end()), work_(work), beginning_(beginning) {
  for (const Rank rank : writer.representatives()) {
    const auto lane = [&](LaneKind kind, std::uint32_t index) {
      return writer.lane({.rank = rank, .kind = kind, .index = index});
    };
    Loader loader{.workers = {},
                  .storage = lane(LaneKind::host, storage_lane),
                  .copy = lane(LaneKind::copy, batch_copy_lane)};
    for (std::uint32_t worker = 0; worker < work_.workers; ++worker)
      loader.workers.push_back(lane(LaneKind::host, first_worker_lane + worker));
    loaders_.push_back(std::move(loader));
  }
}

void InputPipeline::write_batch() {
  begins_.push_back(OpId{static_cast<std::uint32_t>(writer_.size())});
  for (std::size_t i = 0; i < compute_.size(); ++i) {
    if (work_.workers == 0)
      write_on_compute_lane(compute_[i]);
    else
      write_beside(compute_[i], loaders_[i]);
  }
}

void InputPipeline::write_on_compute_lane(LaneId compute) {
  writer_.section("load the batch", Category::input_stall);
  writer_.delay(compute, work_.reading + work_.preparing);
  writer_.section("copy the batch", Category::input_stall);
  writer_.delay(compute, work_.copying);
}

// The next batch by the worker whose turn it is; returns when it lies in the queue.
OpId InputPipeline::write_loading(Loader& loader) {
  const auto batch = static_cast<std::int64_t>(loader.taken.size());
  const LaneId worker = loader.workers[static_cast<std::size_t>(batch % work_.workers)];
  if (beginning_ == Beginning::steady && batch < work_.workers) {
    writer_.section("batches before the first", Category::other);
    writer_.delay(worker, scaled(work_.reading + work_.preparing, batch, work_.workers));
  }
  writer_.section("load the batch", Category::input_stall);
  const std::int64_t ahead = work_.workers * work_.prefetch_factor;
  const OpId room = batch < ahead ? no_op : loader.taken[static_cast<std::size_t>(batch - ahead)];
  const OpId begun = writer_.join(worker, After{room});
  const OpId read = writer_.delay(loader.storage, work_.reading, After{begun});
  return writer_.delay(worker, work_.preparing, After{read});
}

void InputPipeline::write_beside(LaneId compute, Loader& loader) {
  const OpId loaded = write_loading(loader);
  OpId there = loaded;
  if (work_.copies_beside) {
    // The prefetcher takes the next batch as soon as it has handed over the one before.
    writer_.section("copy the batch", Category::input_stall);
    loader.taken.push_back(writer_.join(loader.copy, After{loaded, loader.waited}));
    there = writer_.delay(loader.copy, work_.copying);
  }
  writer_.section("wait for the batch", Category::input_stall);
  loader.waited = writer_.join(compute, After{there});
  if (!work_.copies_beside) {
    loader.taken.push_back(loader.waited);
    writer_.section("copy the batch", Category::input_stall);
    writer_.delay(compute, work_.copying);
  }
}

}  // namespace lockstep
