#pragma once

// Rank 0 of a team: deals tasks out, takes outcomes, finds out who is lost.
//
// Idea:      a worker holds as many tasks as it has threads, and four times as many while there are plenty, so that
//            none of its threads waits for a message. What a lost worker held goes back.
// Invariant: a task is held by one process at a time; who was lost once is never heard again.

#include <cstdint>
#include <exception>
#include <set>

#include "sim/study/team/pulse.h"
#include "sim/study/team/team.h"
#include "sim/study/team/team_message.h"

namespace lockstep {

class TeamManager final : public Team {
 public:
  TeamManager(std::unique_ptr<Transport> transport, std::function<void(const std::string&)> warn);

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(workers_.size()) + 1; }
  void share(const SharedTasks& tasks, int jobs) override;
  bool excuse(const std::string&) override { return false; }
  void leave() override;

 private:
  enum class State : std::uint8_t { coming, working, excused, lost, gone };

  struct Worker {
    int rank = 0;
    State state = State::coming;
    std::uint32_t section = 0;  // that it has come to
    std::size_t threads = 0;
    std::string question = {};  // that it was asked there
    std::string host = {};
    std::set<std::size_t> held = {};
    std::chrono::milliseconds heard{};

    bool is_there() const { return state == State::coming || state == State::working; }
  };

  // One section's tasks on their way.
  struct Section {
    const SharedTasks* tasks = nullptr;  // none between sections
    std::uint32_t number = 0;
    std::size_t next = 0;                    // that was never dealt
    std::vector<std::size_t> returned = {};  // by who was lost
    std::size_t finished = 0;
    std::exception_ptr failure = {};
  };

  static std::vector<Worker> workers_of(const Transport& transport);

  void begin(const SharedTasks& tasks);
  void end();
  // What follows, under the lock.
  bool has_task() const;
  std::size_t take_task();
  bool is_over() const;
  void skip_what_has_run();
  void serve_all();
  void check_question(const Worker& worker);
  std::size_t most_held(const Worker& worker) const;
  void work();
  void run_one(std::size_t task, std::unique_lock<std::mutex>& lock);
  void finish(std::size_t task, std::string bytes, const Worker* by);
  void look_after_workers();
  void hear(Worker& worker, TeamMessage message);
  void hear_ready(Worker& worker, const TeamMessage& message);
  void hear_outcome(Worker& worker, TeamMessage message);
  void drop(Worker& worker, State state, const std::string& why);
  void find_lost();
  void say(const Worker& worker, const TeamMessage& message);
  std::string name_of(const Worker& worker) const;

  std::unique_ptr<Transport> transport_;
  std::function<void(const std::string&)> warn_;
  std::vector<Worker> workers_;
  std::vector<std::string> unsaid_;  // until this process has come to a section itself
  Section section_;
  std::chrono::milliseconds looked_;
  std::chrono::milliseconds beaten_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Pulse pulse_;  // last: it uses all of the above
};

}  // namespace lockstep
