#pragma once

// Numbered tasks, run by several processes as if by one.
//
// Problem:   a grid takes longer than one machine has; machines differ, tasks differ a thousandfold, and over a
//            night one of the machines dies.
// Idea:      every process is asked the same and comes to the same sections of tasks, so that a task is a number
//            and its outcome bytes. Rank 0, the manager, deals them out one by one to whoever has room, and
//            runs some itself; a section ends for everybody once all its tasks have run. Where what follows rests
//            on the outcomes, everybody is told all of them, and decides alike. Who has given no sign for ten
//            seconds counts as lost, and its tasks go to others; each process beats on a thread of its own,
//            however long its tasks are.
// Invariant: each task is taken note of once by the manager. Outcomes do not depend on who ran a task, so that
//            the answer is that of one process. Workers print nothing and write no file. Without the manager
//            nobody goes on.
// Limits:    the manager may not be lost; what it has kept on disk by then stays.
// Cost:      a message a task each way, a millisecond of delay, which queued tasks hide.
// Reference: Gropp and Lusk, Fault Tolerance in Message Passing Interface Programs (2004), managers and workers.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/team/transport.h"

namespace lockstep {

inline constexpr std::chrono::milliseconds team_beats_every{1'000};
inline constexpr std::chrono::milliseconds team_lost_after{10'000};

// What a process with nothing left to do unwinds by: the manager has ended the command.
struct TeamDissolved {};

// All functions may be called from any thread, `take` by one at a time.
struct SharedTasks {
  std::size_t count = 0;
  std::string question = {};  // a fingerprint of what was asked and read, alike in all processes
  std::function<void(std::size_t)> run = {};                     // here, and nobody else hears of it
  std::function<std::string(std::size_t)> tell = {};             // runs it; what it found, as bytes
  std::function<void(std::size_t, std::string_view)> take = {};  // what it found elsewhere
  std::function<bool(std::size_t)> has_run = {};  // before this section; asked by the manager alone
  bool is_for_all = true;                         // else the manager alone takes outcomes
};

class Team {
 public:
  virtual ~Team() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns when all tasks of the section have run and this process has taken what it is to take. On so many threads
  // here; 0: one for each core. Throws what a task threw; TeamDissolved and EnvironmentError in workers.
  virtual void share(const SharedTasks& tasks, int jobs) = 0;
  // Of a process that failed: true where the manager is told why and goes on without it; false where it has to say
  // so itself.
  virtual bool excuse(const std::string& reason) = 0;
  // Called once, last: waits for the others.
  virtual void leave() = 0;
};

// `warn` hears, in the manager, of processes that are lost.
std::unique_ptr<Team> make_team(std::unique_ptr<Transport> transport,
                                std::function<void(const std::string&)> warn);

// With a team, or without one on threads alone.
void run_shared(Team* team, int jobs, const SharedTasks& tasks);

}  // namespace lockstep
