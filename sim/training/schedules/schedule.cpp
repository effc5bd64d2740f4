#include "sim/training/schedules/schedule.h"

#include "sim/training/expert_synchroniser.h"
#include "sim/training/schedules/plain.h"

namespace lockstep {

// Who is alone leads nobody.
void write_scheduled_iteration(const Strategy& strategy, const StrategyContext& context) {
  if (strategy.write_iteration != nullptr && context.group.members() > 1)
    return strategy.write_iteration(context);
  write_plain_schedule(context, *synchroniser_of(strategy, context));
}

}  // namespace lockstep
