#include "sim/plan/plan.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/plan/timeline.h"

namespace lockstep {

const Section& section_of(const Plan& plan, OpId op) {
  const auto after = std::upper_bound(plan.sections.begin(), plan.sections.end(), op,
                                      [](OpId wanted, const Section& s) { return wanted < s.first; });
  LOCKSTEP_CHECK(after != plan.sections.begin(), "every op is written in a section");
  return *std::prev(after);
}

std::uint32_t relay_index(const Plan& plan, OpId op) {
  const auto found = std::lower_bound(plan.relays.begin(), plan.relays.end(), op,
                                      [](const Relay& relay, OpId wanted) { return relay.op < wanted; });
  LOCKSTEP_CHECK(found != plan.relays.end() && found->op == op, "a relay's messages are written with it");
  return static_cast<std::uint32_t>(found - plan.relays.begin());
}

const Relay& relay_of(const Plan& plan, OpId op) {
  return plan.relays[relay_index(plan, op)];
}

std::int64_t flow_count(const Traffic& traffic) {
  std::int64_t flows = std::ssize(traffic.flows) + std::ssize(traffic.alike);
  for (const std::vector<Flow>& round : traffic.rounds) flows += std::ssize(round);
  return flows;
}

Time Timeline::finish() const {
  return end.empty() ? Time{} : *std::max_element(end.begin(), end.end());
}

}  // namespace lockstep
