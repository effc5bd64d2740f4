#pragma once

// Any other rank of a team: runs the tasks that it is given.
//
// Idea:      what the manager says is read in its order, and what is of a section that this process has not come to
//            yet waits, so that a process that is late goes through the same sections after the others.
// Invariant: nothing is said to anybody but the manager.

#include <deque>
#include <exception>

#include "sim/study/team/pulse.h"
#include "sim/study/team/team.h"
#include "sim/study/team/team_message.h"

namespace lockstep {

class TeamWorker final : public Team {
 public:
  explicit TeamWorker(std::unique_ptr<Transport> transport);

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  void share(const SharedTasks& tasks, int jobs) override;
  bool excuse(const std::string& reason) override;
  void leave() override;

 private:
  // What the manager has said of this process as a whole.
  enum class State : std::uint8_t { at_work, dissolved, parting, abandoned };

  struct Section {
    const SharedTasks* tasks = nullptr;  // none between sections
    std::uint32_t number = 0;
    std::deque<std::size_t> given = {};
    bool is_over = false;
    std::exception_ptr failure = {};
  };

  void begin(const SharedTasks& tasks, int threads);
  void end();
  // What follows, under the lock.
  bool is_over() const;
  void work();
  void run_one(std::size_t task, std::unique_lock<std::mutex>& lock);
  void look_after_manager();
  void hear_all();
  bool hear(const TeamMessage& message);
  bool hear_of_section(const TeamMessage& message);
  void take(const TeamMessage& message);
  void say(const TeamMessage& message);

  std::unique_ptr<Transport> transport_;
  State state_ = State::at_work;
  bool is_leaving_ = false;
  bool all_are_here_ = false;
  Section section_;
  std::deque<TeamMessage> inbox_;
  std::chrono::milliseconds heard_;
  std::chrono::milliseconds looked_;
  std::chrono::milliseconds beaten_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Pulse pulse_;  // last: it uses all of the above
};

}  // namespace lockstep
