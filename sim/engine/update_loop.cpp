#include "sim/engine/update_loop.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace lockstep {
namespace {

// A server's jobs: a worker's pull, its push, or the update that ends a round.
constexpr std::uint32_t round_job = UINT32_MAX;

constexpr std::uint32_t pull_job(std::uint32_t worker) {
  return 2 * worker;
}
constexpr std::uint32_t push_job(std::uint32_t worker) {
  return 2 * worker + 1;
}

}  // namespace

UpdateLoop::UpdateLoop(UpdateLoopInput input)
    : input_(std::move(input)),
      pulls_(pulls_tag, input_.pull.width, input_.pull.pieces),
      pushes_(pushes_tag, input_.push.width, input_.push.pieces),
      server_(server_tag, input_.server.takes_turns, input_.server.width),
      workers_(input_.slowdown.size() / static_cast<std::size_t>(input_.ranks_per_worker)),
      account_(workers_.size(), input_.warm_up, input_.rounds) {
  LOCKSTEP_CHECK(!workers_.empty() && input_.rounds > 0, "somebody works for at least a round");
  LOCKSTEP_CHECK(needed() > 0, "a round needs at least one gradient");
  input_.step.after_pull = upper_hull(std::move(input_.step.after_pull));
  input_.step.before_push = upper_hull(std::move(input_.step.before_push));
  if (input_.staleness_bound)
    bound_.emplace(*input_.staleness_bound);
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) begin(worker);
}

bool UpdateLoop::has_server() const {
  return input_.rule == UpdateRule::asynchronous || input_.rule == UpdateRule::synchronous;
}

bool UpdateLoop::next(LearningEvent& event) {
  Event due;
  while (happened_.empty() && !account_.is_complete())
    if (queue_.next(due)) {
      account_.take_event();
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
      return pulls_.wake(queue_, [&](const PortFlow& flow) {
        workers_[flow.id].pull_begin = flow.begin;
        pulled(flow.id);
      });
    case pushes_tag:
      return pushes_.wake(queue_, [&](const PortFlow& flow) {
        workers_[flow.id].push_begin = flow.begin;
        leave(flow.id);
      });
    case server_tag:
      return server_.wake(queue_, [&](const ServedJob& job) { served(job); });
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
  account_.spend(worker, Activity::waiting, queue_.now());
  account_.turn_to(worker, Activity::communicating);
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
  pulls_.start(worker, input_.pull.alone, queue_);
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
  const Duration before_backward = std::max(longest(input_.step.after_pull, pulling, worker.factor),
                                            scaled(input_.step.until_backward, worker.factor));
  set_step(index, worker.pull_begin, before_backward);
  account_.hide(pulling - (account_.computing(index).begin - worker.pull_begin));
  const auto& gradients = input_.step.before_push;  // the first has all bytes before it
  const Duration first = gradients.empty() ? input_.step.backward : gradients.back().compute;
  queue_.push(worker.pull_begin + before_backward + scaled(first, worker.factor), index, push_tag);
}

void UpdateLoop::compute_on_own_weights(std::uint32_t index) {
  Worker& worker = workers_[index];
  account_.spend(index, Activity::communicating, queue_.now());
  ++worker.iteration;
  if (input_.rule == UpdateRule::reduced)
    emit(LearningKind::read, index);
  draw_speed(worker, index);
  set_step(index, queue_.now(), scaled(input_.step.until_backward, worker.factor));
  queue_.push(account_.computing(index).end, index, computed_tag);
}

void UpdateLoop::push(std::uint32_t worker) {
  workers_[worker].push_begin = queue_.now();
  if (goes_along()) {
    began_applying();
    serve(push_job(worker));
  }
  if (input_.push.alone == Duration::zero())
    return leave(worker);
  pushes_.start(worker, input_.push.alone, queue_);
}

// At the rate that the port gave, the bytes that were ready last may have left later than the port thinks.
void UpdateLoop::leave(std::uint32_t index) {
  const Worker& worker = workers_[index];
  const Time computed = account_.computing(index).end;
  const Time backward_begin = computed - scaled(input_.step.backward, worker.factor);
  const Duration pushing = queue_.now() - worker.push_begin;
  const Time left = backward_begin + longest(input_.step.before_push, pushing, worker.factor);
  queue_.push(std::max({queue_.now(), computed, left}) + input_.push.latency, index, arrival_tag);
}

void UpdateLoop::arrive(std::uint32_t worker) {
  account_.hide(account_.computing(worker).end - workers_[worker].push_begin);
  account_.spend_step(worker, queue_.now());
  account_.spend(worker, Activity::communicating, queue_.now());
  if (goes_along()) {
    account_.turn_to(worker, Activity::communicating);
    return is_second(worker) ? use(worker) : void();
  }
  if (input_.rule == UpdateRule::synchronous)
    return serve(push_job(worker));
  account_.turn_to(worker, Activity::waiting);
  if (!bound_)
    return admit(worker);
  bound_->arrive(worker);
  while (const auto next = bound_->admit()) admit(*next);
}

void UpdateLoop::admit(std::uint32_t worker) {
  account_.spend(worker, Activity::waiting, queue_.now());
  account_.turn_to(worker, Activity::communicating);
  began_applying();
  serve(push_job(worker));
}

void UpdateLoop::began_applying() {
  if (input_.rule != UpdateRule::asynchronous)
    return;
  if (applying_ > 0 && !server_.queue().takes_turns())
    account_.add_conflict();
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
  server_.start(job, work, queue_);
}

void UpdateLoop::served(const ServedJob& job) {
  account_.add_server_work(work_of(job.id));
  if (job.id == round_job)
    return end_round();
  const std::uint32_t worker = job.id / 2;
  if (goes_along() && !is_second(worker))
    return;
  if (input_.rule == UpdateRule::asynchronous && !goes_along())
    account_.spend(worker, Activity::waiting, job.begin);
  if (job.id != pull_job(worker))
    return use(worker);
  if (goes_along())
    return compute_after_pull(worker);
  account_.spend(worker, Activity::communicating, queue_.now());
  pull(worker);
}

// All of a gradient has come and was handled.
void UpdateLoop::use(std::uint32_t worker) {
  account_.spend(worker, Activity::communicating, queue_.now());
  input_.rule == UpdateRule::asynchronous ? apply(worker) : contribute(worker);
}

void UpdateLoop::apply(std::uint32_t worker) {
  const std::int64_t staleness = version_ - workers_[worker].version;
  ++version_;
  --applying_;
  if (bound_)
    bound_->applied();
  account_.add_staleness(staleness);
  account_.turn_to(worker, Activity::waiting);
  account_.end_step(worker, queue_.now());
  emit(LearningKind::apply, worker, staleness);
  account_.count(1, version_ % static_cast<std::int64_t>(workers_.size()) == 0 ? 1 : 0, queue_.now());
  begin(worker);
}

// A gradient that comes when the round has all it needs is dropped, one that comes later still at once.
void UpdateLoop::contribute(std::uint32_t worker) {
  account_.turn_to(worker, Activity::waiting);
  if (workers_[worker].version != version_)
    return begin(worker);
  round_.held.push_back(worker);
  if (round_.gradients == needed())
    return;
  emit(LearningKind::contribute, worker);
  if (++round_.gradients == needed())
    serve(round_job);
}

void UpdateLoop::reach_barrier(std::uint32_t worker) {
  account_.spend_step(worker, queue_.now());
  account_.turn_to(worker, Activity::waiting);
  emit(input_.rule == UpdateRule::reduced ? LearningKind::contribute : LearningKind::local_step, worker);
  if (input_.rule == UpdateRule::averaged && (workers_[worker].iteration + 1) % input_.local_steps != 0)
    return begin(worker);
  round_.held.push_back(worker);
  if (++round_.gradients < needed())
    return;
  for (const std::uint32_t ready : round_.held) {
    account_.spend(ready, Activity::waiting, queue_.now());
    account_.turn_to(ready, Activity::communicating);
  }
  queue_.push(queue_.now() + input_.all_reduce, 0, round_tag);
}

void UpdateLoop::end_round() {
  const std::int64_t steps = input_.rule == UpdateRule::averaged ? input_.local_steps : 1;
  ++version_;
  emit(input_.rule == UpdateRule::averaged ? LearningKind::average : LearningKind::step, 0);
  const Round ended = std::exchange(round_, {});
  account_.count(ended.gradients * steps, steps, queue_.now());
  for (const std::uint32_t worker : ended.held) account_.end_step(worker, queue_.now());
  for (const std::uint32_t worker : ended.held) begin(worker);
}

// By rank and iteration: how fast somebody is does not depend on what the others do.
void UpdateLoop::draw_speed(Worker& worker, std::uint32_t index) {
  const std::int64_t first = index * input_.ranks_per_worker;
  worker.factor = Ratio{};
  for (std::int64_t rank = first; rank < first + input_.ranks_per_worker; ++rank) {
    Ratio factor = input_.slowdown[static_cast<std::size_t>(rank)];
    if (input_.jitter != nullptr)
      factor = scaled_up(factor, input_.jitter->factor(static_cast<std::uint32_t>(rank), worker.iteration));
    worker.factor = std::max(worker.factor, factor);
  }
}

// Computing is laid at the end of the time until backward begins: it makes no difference to any sum.
void UpdateLoop::set_step(std::uint32_t worker, Time begin, Duration before_backward) {
  const Time backward_begin = begin + before_backward;
  const auto own = [&](Duration time) { return scaled(time, workers_[worker].factor); };
  account_.compute(worker, {.begin = backward_begin - own(input_.step.until_backward),
                            .end = backward_begin + own(input_.step.backward)});
}

void UpdateLoop::emit(LearningKind kind, std::uint32_t worker, std::int64_t staleness) {
  happened_.push_back({.kind = kind,
                       .worker = worker,
                       .iteration = workers_[worker].iteration,
                       .staleness = staleness,
                       .time = queue_.now()});
}

}  // namespace lockstep
