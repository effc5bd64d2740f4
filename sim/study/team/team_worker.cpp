#include "sim/study/team/team_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "sim/base/error.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

constexpr int manager = 0;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "a host without a name";
}

}  // namespace

TeamWorker::TeamWorker(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      heard_(transport_->now()),
      looked_(heard_),
      beaten_(heard_),
      pulse_(mutex_, [this] { look_after_manager(); }) {}

void TeamWorker::share(const SharedTasks& tasks, int jobs) {
  const int threads = threads_for(jobs);
  begin(tasks, threads);
  run_in_parallel(threads, static_cast<std::size_t>(threads), [this](std::size_t) { work(); });
  end();
}

void TeamWorker::begin(const SharedTasks& tasks, int threads) {
  const std::scoped_lock lock(mutex_);
  section_ = {.tasks = &tasks, .number = section_.number};
  say({.word = TeamWord::ready,
       .section = section_.number,
       .number = static_cast<std::uint64_t>(threads),
       .text = tasks.question + "\n" + host_name()});
}

void TeamWorker::end() {
  const std::scoped_lock lock(mutex_);
  section_.tasks = nullptr;
  if (section_.failure)
    std::rethrow_exception(section_.failure);
  if (state_ == State::abandoned)
    throw EnvironmentError(
        fmt::format("rank {}: the manager, rank 0, has given no sign for {} s", transport_->rank(),
                    std::chrono::duration_cast<std::chrono::seconds>(team_lost_after).count()));
  if (!section_.is_over)
    throw TeamDissolved();
  ++section_.number;
}

bool TeamWorker::is_over() const {
  return section_.is_over || section_.failure || state_ != State::at_work;
}

// A thread of this process.
void TeamWorker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over() || !section_.given.empty(); });
    if (is_over())
      return;
    const std::size_t task = section_.given.front();
    section_.given.pop_front();
    run_one(task, lock);
  }
}

void TeamWorker::run_one(std::size_t task, std::unique_lock<std::mutex>& lock) {
  std::string bytes;
  std::exception_ptr failure;
  lock.unlock();
  try {
    bytes = section_.tasks->tell(task);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure) {
    section_.failure = failure;
    changed_.notify_all();
    return;
  }
  say({.word = TeamWord::outcome, .section = section_.number, .number = task, .text = std::move(bytes)});
}

void TeamWorker::look_after_manager() {
  const std::chrono::milliseconds now = transport_->now();
  const bool stood_still = now - std::exchange(looked_, now) > team_beats_every;
  heard_ = stood_still ? now : heard_;
  hear_all();
  if (state_ != State::parting && now - heard_ > team_lost_after) {
    state_ = State::abandoned;
    changed_.notify_all();
  }
  if (now - beaten_ >= team_beats_every) {
    beaten_ = now;
    say({.word = TeamWord::beat});
  }
}

void TeamWorker::hear_all() {
  while (const auto letter = transport_->receive()) {
    heard_ = transport_->now();
    inbox_.push_back(read_team_message(letter->bytes));
  }
  while (!inbox_.empty() && hear(inbox_.front())) inbox_.pop_front();
}

// False: not yet.
bool TeamWorker::hear(const TeamMessage& message) {
  switch (message.word) {
    case TeamWord::goodbye:
      state_ = State::dissolved;
      break;
    case TeamWord::part:
      state_ = State::parting;
      all_are_here_ = message.number == 1;
      break;
    case TeamWord::task:
    case TeamWord::outcome:
    case TeamWord::section_ends:
      return is_leaving_ || hear_of_section(message);
    default:
      return true;
  }
  changed_.notify_all();
  return true;
}

bool TeamWorker::hear_of_section(const TeamMessage& message) {
  if (section_.tasks == nullptr || section_.is_over || message.section != section_.number)
    return false;
  if (message.word == TeamWord::outcome)
    take(message);
  else if (message.word == TeamWord::task)
    section_.given.push_back(message.number);
  else
    section_.is_over = true;
  changed_.notify_all();
  return true;
}

void TeamWorker::take(const TeamMessage& message) {
  try {
    section_.tasks->take(message.number, message.text);
  } catch (...) {
    section_.failure = std::current_exception();
  }
}

void TeamWorker::say(const TeamMessage& message) {
  transport_->send(manager, to_bytes(message));
}

bool TeamWorker::excuse(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (state_ == State::abandoned)
    return false;
  is_leaving_ = true;
  say({.word = TeamWord::excuse, .text = reason});
  return true;
}

void TeamWorker::leave() {
  std::unique_lock lock(mutex_);
  is_leaving_ = true;
  changed_.wait(lock, [this] { return state_ != State::at_work; });
  if (state_ == State::dissolved)
    say({.word = TeamWord::bye});
  changed_.wait(lock, [this] { return state_ == State::parting || state_ == State::abandoned; });
  lock.unlock();
  pulse_.stop();
  transport_->close(all_are_here_);
}

}  // namespace lockstep
