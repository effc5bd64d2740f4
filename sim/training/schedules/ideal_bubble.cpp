#include "sim/training/schedules/ideal_bubble.h"

#include "sim/training/schedules/free_pipeline.h"

namespace lockstep {

IdealBubble ideal_bubble(std::string_view schedule, const PipelineShape& shape) {
  constexpr Duration turn = Duration::picoseconds(1);
  const std::vector<PassTime> alike(static_cast<std::size_t>(shape.chunks), {turn, turn, turn});
  const std::vector<std::vector<PassTime>> times(static_cast<std::size_t>(shape.stages), alike);
  IdealBubble longest;
  for (const FreeSpan& stage : run_freely(pipeline_schedule_named(schedule), shape, times)) {
    const std::int64_t span = (stage.end - stage.begin).picoseconds();
    if (span > longest.span)
      longest = {.idle = span - stage.busy.picoseconds(), .span = span};
  }
  return longest;
}

}  // namespace lockstep
