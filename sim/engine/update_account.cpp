#include "sim/engine/update_account.h"

#include <algorithm>
#include <utility>

namespace lockstep {

UpdateAccount::UpdateAccount(std::size_t workers, std::int64_t warm_up, std::int64_t rounds)
    : warm_up_(warm_up), most_rounds_(warm_up + rounds), workers_(workers) {
  if (warm_up == 0)
    window_begin_ = Time{};
  totals_.workers.resize(workers);
}

void UpdateAccount::compute(std::uint32_t worker, Computing when) {
  workers_[worker].computing = when;
  workers_[worker].doing = Activity::computing;
}

void UpdateAccount::spend(std::uint32_t index, Activity activity, Time until) {
  Worker& worker = workers_[index];
  if (until <= worker.accounted)
    return;
  const Time from = std::max(std::exchange(worker.accounted, until), window_begin_.value_or(until));
  if (from >= until)
    return;
  WorkerTime& time = totals_.workers[index];
  (activity == Activity::computing       ? time.computing
   : activity == Activity::communicating ? time.communicating
                                         : time.waiting) += until - from;
}

void UpdateAccount::spend_step(std::uint32_t worker, Time now) {
  const Computing step = workers_[worker].computing;
  spend(worker, Activity::communicating, std::min(step.begin, now));
  spend(worker, Activity::computing, std::min(step.end, now));
  workers_[worker].doing = Activity::communicating;
}

void UpdateAccount::end_step(std::uint32_t worker, Time now) {
  const Time before = std::exchange(workers_[worker].updated, now);
  if (is_measuring())
    totals_.steps.add((now - before).picoseconds());
}

void UpdateAccount::hide(Duration duration) {
  if (is_measuring() && duration > Duration::zero())
    totals_.hidden += duration;
}

void UpdateAccount::add_server_work(Duration work) {
  if (is_measuring())
    totals_.server_work += work;
}

void UpdateAccount::add_staleness(std::int64_t staleness) {
  if (is_measuring())
    totals_.staleness.add(staleness);
}

void UpdateAccount::add_conflict() {
  if (is_measuring())
    ++totals_.conflicts;
}

void UpdateAccount::count(std::int64_t updates, std::int64_t rounds, Time now) {
  if (is_complete_)
    return;
  rounds_ += rounds;
  if (is_measuring())
    totals_.updates += updates;
  else if (rounds_ >= warm_up_)
    window_begin_ = now;
  if (rounds_ >= most_rounds_)
    close(now);
}

void UpdateAccount::close(Time now) {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].doing == Activity::computing)
      spend_step(worker, now);
    spend(worker, workers_[worker].doing, now);
  }
  totals_.window = now - *window_begin_;
  is_complete_ = true;
}

}  // namespace lockstep
