#include "sim/training/schedules/interleaved_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/training/schedules/pass_list.h"

namespace lockstep {
namespace {

// Whose forward a stage runs in a turn; backwards come from the last chunk in the same turns.
std::int64_t chunk_in(const PipelineShape& shape, std::int64_t turn) {
  return turn / shape.stages % shape.chunks;
}

std::int64_t needed_first(const PipelineShape& shape, std::int64_t stage) {
  return 2 * (shape.stages - stage - 1) + (shape.chunks - 1) * shape.stages;
}

std::string full_groups_near(const PipelineShape& shape) {
  const std::int64_t below = shape.micro_batches / shape.stages * shape.stages;
  const std::int64_t above = below + shape.stages;
  return below > 0 ? fmt::format("{} or {} would do", below, above) : fmt::format("{} would do", above);
}

}  // namespace

std::vector<Pass> interleaved_passes(const PipelineShape& shape, std::int64_t stage,
                                     const InterleavedOrder& order) {
  const std::int64_t turns = shape.micro_batches * shape.chunks;
  const std::int64_t warm_up = std::min(needed_first(shape, stage) + order.forwards_first, turns);
  PassList list(shape);
  for (std::int64_t turn = 0; turn < warm_up; ++turn) list.add(PassKind::forward, chunk_in(shape, turn));
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    if (warm_up + turn < turns) {
      list.add(PassKind::forward, chunk_in(shape, warm_up + turn));
      if (order.joins_pairs)
        list.join_next();
    }
    list.add(PassKind::backward, shape.chunks - 1 - chunk_in(shape, turn));
  }
  return std::move(list).passes();
}

std::vector<ShapeProblem> problems_of_groups(const PipelineShape& shape) {
  if (shape.micro_batches % shape.stages == 0)
    return {};
  return {
      {"gradient_accumulation",
       fmt::format(
           "interleaved schedules take micro-batches in groups of {}, one for each stage; {} would leave a "
           "group that is not full: {}",
           shape.stages, shape.micro_batches, full_groups_near(shape))}};
}

}  // namespace lockstep
