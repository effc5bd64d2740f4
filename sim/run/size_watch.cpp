#include "sim/run/size_watch.h"

namespace lockstep {
namespace {

// Some hundredths of a second: what sharing takes then shows.
constexpr std::uint64_t first_look = 1 << 18;

double events_of(const Plan& plan) {
  return events_per_op * static_cast<double>(plan.step_count());
}

}  // namespace

Timeline SizeWatch::run(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes) {
  PlanRun running(plan, capacities, routes);
  for (std::uint64_t until = first_look; running.advance(until); until = 2 * running.counted())
    look(running.progress(), events_of(plan));
  Timeline timeline = running.finish();
  if (timeline.events > 0)
    expect(static_cast<double>(timeline.shared), events_of(plan));
  return timeline;
}

// Before anything is sent nothing is known of sharing.
void SizeWatch::look(const RunProgress& progress, double events) {
  if (progress.sent == 0)
    return;
  const double part = static_cast<double>(progress.sent) / static_cast<double>(progress.to_send);
  expect(static_cast<double>(progress.shared) / part, events);
}

// So much is shared among so many events of one plan.
void SizeWatch::expect(double shared, double events) {
  RunSize found = size_;
  found.shared = shared / events * (size_.events + size_.long_run.merged);
  found.has_seen_sharing = true;
  if (events > events_seen_) {
    events_seen_ = events;
    size_ = found;
  }
  refuse_if_large(scenario_, found);
}

}  // namespace lockstep
