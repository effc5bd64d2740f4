#include "sim/training/schedules/pass_list.h"

namespace lockstep {

PassList::PassList(const PipelineShape& shape)
    : micro_batches_(shape.micro_batches), next_(static_cast<std::size_t>(shape.chunks)) {}

void PassList::add(PassKind kind, std::int64_t chunk) {
  std::int64_t& next = next_[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(kind)];
  if (next < micro_batches_)
    passes_.push_back({kind, next++, chunk});
}

void PassList::add_times(std::int64_t times, PassKind kind, std::int64_t chunk) {
  for (std::int64_t time = 0; time < times; ++time) add(kind, chunk);
}

}  // namespace lockstep
