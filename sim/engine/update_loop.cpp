#include "sim/engine/update_loop.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace lockstep {
namespace {

__extension__ typedef __int128 Signed128;

// A server's jobs: a worker's pull, its push, or the update that ends a round.
constexpr std::uint32_t round_job = UINT32_MAX;

constexpr std::uint32_t pull_job(std::uint32_t worker) {
  return 2 * worker;
}
constexpr std::uint32_t push_job(std::uint32_t worker) {
  return 2 * worker + 1;
}

// How much of `moving` and of computing at this speed the slowest path takes.
Duration longest(const std::vector<Overlap>& paths, Duration moving, std::int64_t factor_ppm) {
  Duration longest;
  for (const Overlap& path : paths)
    longest = std::max(longest,
                       scaled(moving, path.share_ppm, million) + scaled(path.compute, factor_ppm, million));
  return longest;
}

// Whether `middle` is never the longest of three paths, whatever the ratio of moving to computing: it lies
// below the line from one to the other. Shares grow from left to right.
bool is_hidden(const Overlap& left, const Overlap& middle, const Overlap& right) {
  const auto area = [](std::int64_t share, Duration compute) {
    return static_cast<Signed128>(share) * static_cast<Signed128>(compute.picoseconds());
  };
  return area(right.share_ppm - left.share_ppm, middle.compute - left.compute) <=
         area(middle.share_ppm - left.share_ppm, right.compute - left.compute);
}

// Only the paths that can ever be the longest: the upper hull of points (share, compute).
std::vector<Overlap> upper_hull(std::vector<Overlap> paths) {
  std::stable_sort(paths.begin(), paths.end(), [](const Overlap& left, const Overlap& right) {
    return left.share_ppm != right.share_ppm ? left.share_ppm < right.share_ppm
                                             : left.compute < right.compute;
  });
  std::vector<Overlap> hull;
  for (const Overlap& path : paths) {
    while (hull.size() > 1 && is_hidden(hull[hull.size() - 2], hull.back(), path)) hull.pop_back();
    hull.push_back(path);
  }
  return hull;
}

}  // namespace

UpdateLoop::UpdateLoop(UpdateLoopInput input)
    : input_(std::move(input)),
      pulls_(input_.pull.width_ppm, input_.pull.pieces),
      pushes_(input_.push.width_ppm, input_.push.pieces),
      server_(input_.server.takes_turns, input_.server.width_ppm),
      workers_(input_.slowdown_ppm.size() / static_cast<std::size_t>(input_.ranks_per_worker)) {
  LOCKSTEP_CHECK(!workers_.empty() && input_.rounds > 0, "somebody works for at least a round");
  LOCKSTEP_CHECK(needed() > 0, "a round needs at least one gradient");
  input_.step.after_pull = upper_hull(std::move(input_.step.after_pull));
  input_.step.before_push = upper_hull(std::move(input_.step.before_push));
  if (input_.staleness_bound)
    bound_.emplace(*input_.staleness_bound);
  if (input_.warm_up == 0)
    window_begin_ = Time{};
  totals_.workers.resize(workers_.size());
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) begin(worker);
}

bool UpdateLoop::has_server() const {
  return input_.rule == UpdateRule::asynchronous || input_.rule == UpdateRule::synchronous;
}

bool UpdateLoop::next(LearningEvent& event) {
  Event due;
  while (happened_.empty() && !is_done_)
    if (queue_.next(due)) {
      ++totals_.events;
      handle(due);
    } else {
      LOCKSTEP_CHECK(queue_.advance(), "somebody always has something left to do");
    }
  if (happened_.empty())
    return false;
  event = happened_.front();
  happened_.pop_front();
  return true;
}

void UpdateLoop::handle(const Event& event) {
  switch (event.tag) {
    case pulls_tag:
      return wake(pulls_, pulls_alarm_, pulls_tag, [&](const PortFlow& flow) {
        workers_[flow.id].pull_begin = flow.begin;
        pulled(flow.id);
      });
    case pushes_tag:
      return wake(pushes_, pushes_alarm_, pushes_tag, [&](const PortFlow& flow) {
        workers_[flow.id].push_begin = flow.begin;
        leave(flow.id);
      });
    case server_tag:
      return wake(server_, server_alarm_, server_tag, [&](const ServedJob& job) { served(job); });
    case push_tag:
      return push(event.subject);
    case arrival_tag:
      return arrive(event.subject);
    case computed_tag:
      return reach_barrier(event.subject);
    default:
      return end_round();
  }
}

// ---- a worker's way round ----

void UpdateLoop::begin(std::uint32_t worker) {
  if (!has_server())
    return compute_on_own_weights(worker);
  if (!bound_)
    return read(worker);
  readers_.push_back(worker);
  let_readers_in();
}

void UpdateLoop::let_readers_in() {
  while (!readers_.empty() && bound_->may_read()) {
    const std::uint32_t worker = readers_.front();
    readers_.pop_front();
    bound_->read(worker);
    read(worker);
  }
}

void UpdateLoop::read(std::uint32_t worker) {
  account(worker, Activity::waiting, queue_.now());
  workers_[worker].doing = Activity::communicating;
  workers_[worker].version = version_;
  ++workers_[worker].iteration;
  emit(LearningKind::read, worker);
  serve(pull_job(worker));
  if (goes_along())
    pull(worker);
}

void UpdateLoop::pull(std::uint32_t worker) {
  workers_[worker].pull_begin = queue_.now();
  if (input_.pull.alone == Duration::zero())
    return pulled(worker);
  pulls_.start(worker, input_.pull.alone, queue_.now());
  set_alarm(pulls_, pulls_alarm_, pulls_tag);
}

// Of two things that go along with each other the later one counts.
bool UpdateLoop::is_second(std::uint32_t worker) {
  bool& is_half_done = workers_[worker].is_half_done;
  is_half_done = !is_half_done;
  return !is_half_done;
}

void UpdateLoop::pulled(std::uint32_t worker) {
  if (!goes_along() || is_second(worker))
    compute_after_pull(worker);
}

// The last of the weights have left. The forward pass went along with those that came before, and gradients
// begin to leave when backward has the first of them.
void UpdateLoop::compute_after_pull(std::uint32_t index) {
  Worker& worker = workers_[index];
  draw_speed(worker, index);
  const Duration pulling = queue_.now() - worker.pull_begin + input_.pull.latency;
  const Duration before_backward = std::max(longest(input_.step.after_pull, pulling, worker.factor_ppm),
                                            scaled(input_.step.until_backward, worker.factor_ppm, million));
  set_step(worker, worker.pull_begin, before_backward);
  hide(pulling - (worker.compute_begin - worker.pull_begin));
  const auto& gradients = input_.step.before_push;  // the first has all bytes before it
  const Duration first = gradients.empty() ? input_.step.backward : gradients.back().compute;
  queue_.push(worker.pull_begin + before_backward + scaled(first, worker.factor_ppm, million), index,
              push_tag);
}

void UpdateLoop::compute_on_own_weights(std::uint32_t index) {
  Worker& worker = workers_[index];
  account(index, Activity::communicating, queue_.now());
  ++worker.iteration;
  if (input_.rule == UpdateRule::reduced)
    emit(LearningKind::read, index);
  draw_speed(worker, index);
  set_step(worker, queue_.now(), scaled(input_.step.until_backward, worker.factor_ppm, million));
  queue_.push(worker.compute_end, index, computed_tag);
}

void UpdateLoop::push(std::uint32_t worker) {
  workers_[worker].push_begin = queue_.now();
  if (goes_along()) {
    began_applying();
    serve(push_job(worker));
  }
  if (input_.push.alone == Duration::zero())
    return leave(worker);
  pushes_.start(worker, input_.push.alone, queue_.now());
  set_alarm(pushes_, pushes_alarm_, pushes_tag);
}

// At the rate that the port gave, the bytes that were ready last may have left later than the port thinks.
void UpdateLoop::leave(std::uint32_t index) {
  const Worker& worker = workers_[index];
  const Time backward_begin = worker.compute_end - scaled(input_.step.backward, worker.factor_ppm, million);
  const Duration pushing = queue_.now() - worker.push_begin;
  const Time left = backward_begin + longest(input_.step.before_push, pushing, worker.factor_ppm);
  queue_.push(std::max({queue_.now(), worker.compute_end, left}) + input_.push.latency, index, arrival_tag);
}

void UpdateLoop::arrive(std::uint32_t worker) {
  hide(workers_[worker].compute_end - workers_[worker].push_begin);
  account_step(worker);
  account(worker, Activity::communicating, queue_.now());
  if (goes_along()) {
    workers_[worker].doing = Activity::communicating;
    return is_second(worker) ? use(worker) : void();
  }
  if (input_.rule == UpdateRule::synchronous)
    return serve(push_job(worker));
  workers_[worker].doing = Activity::waiting;
  if (!bound_)
    return admit(worker);
  bound_->arrive(worker);
  while (const auto next = bound_->admit()) admit(*next);
}

void UpdateLoop::admit(std::uint32_t worker) {
  account(worker, Activity::waiting, queue_.now());
  workers_[worker].doing = Activity::communicating;
  began_applying();
  serve(push_job(worker));
}

void UpdateLoop::began_applying() {
  if (input_.rule != UpdateRule::asynchronous)
    return;
  if (applying_ > 0 && !server_.takes_turns() && window_begin_)
    ++totals_.conflicts;
  ++applying_;
}

Duration UpdateLoop::work_of(std::uint32_t job) const {
  const ServerWork& server = input_.server;
  if (job == round_job)
    return server.update;
  if (job % 2 == 0)
    return server.pull;
  return input_.rule == UpdateRule::asynchronous ? server.push + server.update : server.push;
}

// What is no work need not wait for its turn.
void UpdateLoop::serve(std::uint32_t job) {
  const Duration work = work_of(job);
  if (work == Duration::zero())
    return served({job, queue_.now()});
  server_.start(job, work, queue_.now());
  set_alarm(server_, server_alarm_, server_tag);
}

void UpdateLoop::served(const ServedJob& job) {
  if (window_begin_)
    totals_.server_work += work_of(job.id);
  if (job.id == round_job)
    return end_round();
  const std::uint32_t worker = job.id / 2;
  if (goes_along() && !is_second(worker))
    return;
  if (input_.rule == UpdateRule::asynchronous && !goes_along())
    account(worker, Activity::waiting, job.begin);
  if (job.id != pull_job(worker))
    return use(worker);
  if (goes_along())
    return compute_after_pull(worker);
  account(worker, Activity::communicating, queue_.now());
  pull(worker);
}

// All of a gradient has come and was handled.
void UpdateLoop::use(std::uint32_t worker) {
  account(worker, Activity::communicating, queue_.now());
  input_.rule == UpdateRule::asynchronous ? apply(worker) : contribute(worker);
}

void UpdateLoop::apply(std::uint32_t worker) {
  const std::int64_t staleness = version_ - workers_[worker].version;
  ++version_;
  --applying_;
  if (bound_)
    bound_->applied();
  if (window_begin_)
    totals_.staleness.add(staleness);
  workers_[worker].doing = Activity::waiting;
  end_step(worker);
  emit(LearningKind::apply, worker, staleness);
  count(1, version_ % static_cast<std::int64_t>(workers_.size()) == 0 ? 1 : 0);
  begin(worker);
}

// A gradient that comes when the round has all it needs is dropped, one that comes later still at once.
void UpdateLoop::contribute(std::uint32_t worker) {
  workers_[worker].doing = Activity::waiting;
  if (workers_[worker].version != version_)
    return begin(worker);
  held_.push_back(worker);
  if (in_round_ == needed())
    return;
  emit(LearningKind::contribute, worker);
  if (++in_round_ == needed())
    serve(round_job);
}

void UpdateLoop::reach_barrier(std::uint32_t worker) {
  account_step(worker);
  workers_[worker].doing = Activity::waiting;
  emit(input_.rule == UpdateRule::reduced ? LearningKind::contribute : LearningKind::local_step, worker);
  if (input_.rule == UpdateRule::averaged && (workers_[worker].iteration + 1) % input_.local_steps != 0)
    return begin(worker);
  held_.push_back(worker);
  if (++in_round_ < needed())
    return;
  for (const std::uint32_t ready : held_) {
    account(ready, Activity::waiting, queue_.now());
    workers_[ready].doing = Activity::communicating;
  }
  queue_.push(queue_.now() + input_.all_reduce, 0, round_tag);
}

void UpdateLoop::end_round() {
  const std::int64_t steps = input_.rule == UpdateRule::averaged ? input_.local_steps : 1;
  ++version_;
  emit(input_.rule == UpdateRule::averaged ? LearningKind::average : LearningKind::step, 0);
  const std::int64_t used = std::exchange(in_round_, 0);
  count(used * steps, steps);
  const std::vector<std::uint32_t> held = std::exchange(held_, {});
  for (const std::uint32_t worker : held) end_step(worker);
  for (const std::uint32_t worker : held) begin(worker);
}

// ---- queues ----

template <class Queue>
void UpdateLoop::set_alarm(const Queue& queue, Alarm& alarm, Tag tag) {
  const std::optional<Time> next = queue.next_finish();
  if (!next || (alarm && *alarm <= *next))
    return;
  alarm = next;
  queue_.push(*next, 0, tag);
}

template <class Queue, class Done>
void UpdateLoop::wake(Queue& queue, Alarm& alarm, Tag tag, Done done) {
  if (alarm != queue_.now())
    return;
  alarm.reset();
  while (queue.next_finish() && *queue.next_finish() <= queue_.now()) done(queue.finish(queue_.now()));
  set_alarm(queue, alarm, tag);
}

// ---- what everybody did with the time ----

// By rank and iteration: how fast somebody is does not depend on what the others do.
void UpdateLoop::draw_speed(Worker& worker, std::uint32_t index) {
  const std::int64_t first = index * input_.ranks_per_worker;
  worker.factor_ppm = 0;
  for (std::int64_t rank = first; rank < first + input_.ranks_per_worker; ++rank) {
    std::int64_t factor = input_.slowdown_ppm[static_cast<std::size_t>(rank)];
    if (input_.jitter != nullptr)
      factor = arithmetic::product_divided_up(
          factor, input_.jitter->factor_ppm(static_cast<std::uint32_t>(rank), worker.iteration), million);
    worker.factor_ppm = std::max(worker.factor_ppm, factor);
  }
}

void UpdateLoop::hide(Duration duration) {
  if (window_begin_ && duration > Duration::zero())
    totals_.hidden += duration;
}

void UpdateLoop::end_step(std::uint32_t worker) {
  const Time before = std::exchange(workers_[worker].updated, queue_.now());
  if (window_begin_)
    totals_.steps.add((queue_.now() - before).picoseconds());
}

// Computing is laid at the end of the time until backward begins: it makes no difference to any sum.
void UpdateLoop::set_step(Worker& worker, Time begin, Duration before_backward) {
  const Time backward_begin = begin + before_backward;
  worker.compute_begin = backward_begin - scaled(input_.step.until_backward, worker.factor_ppm, million);
  worker.compute_end = backward_begin + scaled(input_.step.backward, worker.factor_ppm, million);
  worker.doing = Activity::computing;
}

void UpdateLoop::account(std::uint32_t index, Activity activity, Time until) {
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

void UpdateLoop::account_step(std::uint32_t worker) {
  const Time now = queue_.now();
  account(worker, Activity::communicating, std::min(workers_[worker].compute_begin, now));
  account(worker, Activity::computing, std::min(workers_[worker].compute_end, now));
  workers_[worker].doing = Activity::communicating;
}

void UpdateLoop::count(std::int64_t updates, std::int64_t rounds) {
  rounds_ += rounds;
  if (window_begin_)
    updates_ += updates;
  if (!window_begin_ && rounds_ >= input_.warm_up)
    window_begin_ = queue_.now();
  if (rounds_ >= input_.warm_up + input_.rounds && !is_done_)
    close();
}

void UpdateLoop::close() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].doing == Activity::computing)
      account_step(worker);
    account(worker, workers_[worker].doing, queue_.now());
  }
  totals_.window = queue_.now() - *window_begin_;
  totals_.updates = updates_;
  is_done_ = true;
}

void UpdateLoop::emit(LearningKind kind, std::uint32_t worker, std::int64_t staleness) {
  happened_.push_back({.kind = kind,
                       .worker = worker,
                       .iteration = workers_[worker].iteration,
                       .staleness = staleness,
                       .time = queue_.now()});
}

}  // namespace lockstep
