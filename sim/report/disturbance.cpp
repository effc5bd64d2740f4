#include "sim/report/disturbance.h"

#include <algorithm>

#include "sim/base/quantity_text.h"

namespace lockstep {

Waiting mean_waiting(const std::vector<TimeAccount>& accounts, const Roles& roles, std::int64_t iterations) {
  Waiting waiting;
  Unsigned128 sum = 0;
  for (std::size_t role = 0; role < accounts.size(); ++role) {
    const std::int64_t mean = accounts[role].straggler_wait.picoseconds() / iterations;
    sum += static_cast<Unsigned128>(mean) * static_cast<Unsigned128>(roles.members[role]);
    waiting.max = std::max(waiting.max, Duration::picoseconds(mean));
  }
  waiting.mean =
      Duration::picoseconds(static_cast<std::int64_t>(sum / static_cast<Unsigned128>(roles.ranks())));
  return waiting;
}

std::string timeout_warning(const TimedOut& timed_out, Duration allowed) {
  return "the run ends in iteration " + std::to_string(timed_out.iteration) +
         ": a rank was in collective \"" + timed_out.collective + "\" for " +
         format_duration(timed_out.waited) + ", longer than communication.timeout " +
         format_duration(allowed) +
         "; the figures are of the iterations before, or of the first one measured where there are none";
}

}  // namespace lockstep
