#include "validate/harness/measure/turns.h"

#include <algorithm>

namespace lockstep::harness {

void take_turns(const std::vector<TakesTurns*>& measurements) {
  const auto is_done = [](const TakesTurns* one) { return one->is_done(); };
  while (!std::all_of(measurements.begin(), measurements.end(), is_done))
    for (TakesTurns* one : measurements)
      if (!one->is_done())
        one->run_block();
}

}  // namespace lockstep::harness
