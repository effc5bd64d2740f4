#include "sim/training/schedules/interleaved_groups.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string full_groups_near(const PipelineShape& shape) {
  const std::int64_t below = shape.micro_batches / shape.stages * shape.stages;
  const std::int64_t above = below + shape.stages;
  return below > 0 ? fmt::format("{} or {} would do", below, above) : fmt::format("{} would do", above);
}

}  // namespace

std::int64_t interleaved_chunk(const PipelineShape& shape, std::int64_t turn) {
  return turn / shape.stages % shape.chunks;
}

std::int64_t interleaved_warm_up(const PipelineShape& shape, std::int64_t stage) {
  return 2 * (shape.stages - stage - 1) + (shape.chunks - 1) * shape.stages;
}

std::vector<ShapeProblem> problems_of_groups(const PipelineShape& shape) {
  if (shape.micro_batches % shape.stages == 0)
    return {};
  return {
      {"gradient_accumulation",
       fmt::format("interleaved takes micro-batches in groups of {}, one for each stage; {} would leave a "
                   "group that is not full: {}",
                   shape.stages, shape.micro_batches, full_groups_near(shape))}};
}

}  // namespace lockstep
