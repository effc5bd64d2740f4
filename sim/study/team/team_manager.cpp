#include "sim/study/team/team_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.h"
#include "sim/study/parallel.h"

namespace lockstep {

TeamManager::TeamManager(std::unique_ptr<Transport> transport, std::function<void(const std::string&)> warn)
    : transport_(std::move(transport)),
      warn_(std::move(warn)),
      workers_(workers_of(*transport_)),
      looked_(transport_->now()),
      beaten_(looked_),
      pulse_(mutex_, [this] { look_after_workers(); }) {}

std::vector<TeamManager::Worker> TeamManager::workers_of(const Transport& transport) {
  std::vector<Worker> workers;
  for (int rank = 1; rank < transport.size(); ++rank)
    workers.push_back({.rank = rank, .heard = transport.now()});
  return workers;
}

void TeamManager::share(const SharedTasks& tasks, int jobs) {
  begin(tasks);
  const int threads = threads_for(jobs);
  run_in_parallel(threads, static_cast<std::size_t>(threads), [this](std::size_t) { work(); });
  end();
}

void TeamManager::begin(const SharedTasks& tasks) {
  const std::scoped_lock lock(mutex_);
  section_ = {.tasks = &tasks, .number = section_.number};
  for (const std::string& line : std::exchange(unsaid_, {})) warn_(line);
  skip_what_has_run();
  serve_all();
}

void TeamManager::end() {
  const std::scoped_lock lock(mutex_);
  const std::exception_ptr failure = section_.failure;
  section_.tasks = nullptr;
  if (failure)
    std::rethrow_exception(failure);
  for (const Worker& worker : workers_)
    if (worker.is_there())
      say(worker, {.word = TeamWord::section_ends, .section = section_.number});
  ++section_.number;
}

// What the journal of an earlier run held counts as finished when its turn comes.
void TeamManager::skip_what_has_run() {
  const SharedTasks& tasks = *section_.tasks;
  while (section_.next < tasks.count && tasks.has_run && tasks.has_run(section_.next)) {
    ++section_.next;
    ++section_.finished;
  }
}

bool TeamManager::has_task() const {
  return !section_.returned.empty() || section_.next < section_.tasks->count;
}

std::size_t TeamManager::take_task() {
  if (!section_.returned.empty()) {
    const std::size_t task = section_.returned.back();
    section_.returned.pop_back();
    return task;
  }
  const std::size_t task = section_.next++;
  skip_what_has_run();
  return task;
}

// Who was asked something else must show it before anybody believes the answer.
bool TeamManager::is_over() const {
  const bool all_have_come = std::none_of(workers_.begin(), workers_.end(),
                                          [](const Worker& worker) { return worker.state == State::coming; });
  return section_.finished == section_.tasks->count && all_have_come;
}

std::size_t TeamManager::most_held(const Worker& worker) const {
  std::size_t threads = 0;
  for (const Worker& one : workers_) threads += one.is_there() ? one.threads : 0;
  const bool are_plenty = section_.tasks->count - section_.next > 4 * threads;
  return worker.threads * (are_plenty ? 4 : 1);
}

void TeamManager::serve_all() {
  changed_.notify_all();
  if (section_.tasks == nullptr)
    return;
  for (Worker& worker : workers_) {
    const bool is_ready = worker.state == State::working && worker.section == section_.number;
    if (is_ready)
      check_question(worker);
    while (is_ready && !section_.failure && has_task() && worker.held.size() < most_held(worker)) {
      const std::size_t task = take_task();
      worker.held.insert(task);
      say(worker, {.word = TeamWord::task, .section = section_.number, .number = task});
    }
  }
}

void TeamManager::check_question(const Worker& worker) {
  if (worker.question != section_.tasks->question && !section_.failure)
    section_.failure = std::make_exception_ptr(
        ConfigError(fmt::format("{} was asked something else, read other files or is another build than rank "
                                "0; expected the same command, "
                                "files and program everywhere",
                                name_of(worker))));
}

// A thread of this process.
void TeamManager::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return section_.failure || has_task() || is_over(); });
    if (section_.failure || !has_task())
      return;
    run_one(take_task(), lock);
  }
}

void TeamManager::run_one(std::size_t task, std::unique_lock<std::mutex>& lock) {
  const SharedTasks& tasks = *section_.tasks;
  std::string bytes;
  std::exception_ptr failure;
  lock.unlock();
  try {
    if (tasks.is_for_all)
      bytes = tasks.tell(task);
    else
      tasks.run(task);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure && !section_.failure)
    section_.failure = failure;
  finish(task, std::move(bytes), nullptr);
}

void TeamManager::finish(std::size_t task, std::string bytes, const Worker* by) {
  ++section_.finished;
  TeamMessage message{
      .word = TeamWord::outcome, .section = section_.number, .number = task, .text = std::move(bytes)};
  for (const Worker& worker : workers_)
    if (section_.tasks->is_for_all && worker.is_there() && &worker != by)
      say(worker, message);
  serve_all();
}

void TeamManager::look_after_workers() {
  while (const auto letter = transport_->receive()) {
    Worker& worker = workers_[static_cast<std::size_t>(letter->from - 1)];
    worker.heard = transport_->now();
    if (worker.state != State::lost)
      hear(worker, read_team_message(letter->bytes));
  }
  find_lost();
  if (transport_->now() - beaten_ < team_beats_every)
    return;
  beaten_ = transport_->now();
  for (const Worker& worker : workers_)
    if (worker.state != State::lost && worker.state != State::gone)
      say(worker, {.word = TeamWord::beat});
}

void TeamManager::hear(Worker& worker, TeamMessage message) {
  if (message.word == TeamWord::ready)
    hear_ready(worker, message);
  else if (message.word == TeamWord::outcome)
    hear_outcome(worker, std::move(message));
  else if (message.word == TeamWord::excuse)
    drop(worker, State::excused, message.text);
  else if (message.word == TeamWord::bye)
    drop(worker, State::gone, "");
}

void TeamManager::hear_ready(Worker& worker, const TeamMessage& message) {
  const std::size_t line_end = message.text.find('\n');
  worker.host = message.text.substr(line_end + 1);
  worker.section = message.section;
  worker.threads = message.number;
  worker.state = State::working;
  worker.question = message.text.substr(0, line_end);
  serve_all();
}

void TeamManager::hear_outcome(Worker& worker, TeamMessage message) {
  const bool is_awaited = section_.tasks != nullptr && message.section == section_.number &&
                          worker.held.erase(message.number) == 1;
  if (!is_awaited)
    return;
  try {
    section_.tasks->take(message.number, message.text);
  } catch (...) {
    section_.failure = section_.failure ? section_.failure : std::current_exception();
  }
  finish(message.number, std::move(message.text), &worker);
}

// Its tasks go to others.
void TeamManager::drop(Worker& worker, State state, const std::string& why) {
  if (!why.empty()) {
    const std::string line = fmt::format("{} takes no further part: {}; its {} tasks are run by others",
                                         name_of(worker), why, worker.held.size());
    if (section_.tasks != nullptr)
      warn_(line);
    else
      unsaid_.push_back(line);
  }
  worker.state = state;
  section_.returned.insert(section_.returned.end(), worker.held.begin(), worker.held.end());
  worker.held.clear();
  serve_all();
}

// Where this process itself stood still for long, nobody could be heard.
void TeamManager::find_lost() {
  const std::chrono::milliseconds now = transport_->now();
  const bool stood_still = now - std::exchange(looked_, now) > team_beats_every;
  for (Worker& worker : workers_) {
    worker.heard = stood_still ? now : worker.heard;
    if (worker.state != State::lost && worker.state != State::gone && now - worker.heard > team_lost_after)
      drop(worker, State::lost,
           fmt::format("it has given no sign for {} s",
                       std::chrono::duration_cast<std::chrono::seconds>(team_lost_after).count()));
  }
}

void TeamManager::say(const Worker& worker, const TeamMessage& message) {
  transport_->send(worker.rank, to_bytes(message));
}

std::string TeamManager::name_of(const Worker& worker) const {
  return fmt::format("rank {}{}{}", worker.rank, worker.host.empty() ? "" : " on ", worker.host);
}

void TeamManager::leave() {
  std::unique_lock lock(mutex_);
  for (const Worker& worker : workers_) say(worker, {.word = TeamWord::goodbye});
  const auto is_away = [](const Worker& worker) {
    return worker.state == State::gone || worker.state == State::lost;
  };
  changed_.wait(lock, [&] { return std::all_of(workers_.begin(), workers_.end(), is_away); });
  const bool all_are_here = std::none_of(workers_.begin(), workers_.end(),
                                         [](const Worker& worker) { return worker.state == State::lost; });
  for (const Worker& worker : workers_)
    say(worker, {.word = TeamWord::part, .number = all_are_here ? 1U : 0U});
  lock.unlock();
  pulse_.stop();
  transport_->close(all_are_here);
}

}  // namespace lockstep
