#pragma once

// Ranks as threads of which one runs at a time.
//
// Problem:   threads that run as the machine pleases make a test that fails once in a hundred runs, and a
//            hang that only a timeout ends.
// Idea:      a thread runs while it has the turn and passes it at every call into the stand-in. Whoever waits
//            states its condition; when nobody can go on, the world moves (a GPU does some work), and where
//            it cannot, that is a hang and known at once.
// Invariant: who runs next is the chooser's decision alone, so a seed decides a run.
// Errors:    `hang` must end what is waited for.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace lockstep::harness::stand_in {

class Turns {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using Condition = std::function<bool()>;

  struct Hooks {
    std::function<int(const std::vector<int>& ready)> choose;
    // The world goes one step on by itself, if it can or wants to; `ready` may go on before it.
    std::function<bool(const std::vector<int>& ready)> move_world;
    std::function<void(int rank)> woken;  // what this rank waits for has come
    std::function<void()> hang;
  };

  Turns(int ranks, Hooks hooks) : hooks_(std::move(hooks)), threads_(static_cast<std::size_t>(ranks)) {}

  // Of everything that ranks share; threads that are no ranks take it too.
  Lock lock() { return Lock(mutex_); }

  // A rank's thread begins: returns once all have, and it is this one's turn.
  void begin(Lock& lock, int rank);
  void end(Lock& lock, int rank);
  void pass(Lock& lock, int rank);
  void wait(Lock& lock, int rank, Condition condition);

 private:
  enum class State { absent, running, waiting, ended };
  struct Thread {
    State state = State::absent;
    Condition condition = {};
  };

  bool all_have_begun() const;
  std::vector<int> ready_ranks();
  void give_turn();
  void take_turn(Lock& lock, int rank);
  Thread& thread(int rank) { return threads_[static_cast<std::size_t>(rank)]; }

  Hooks hooks_;
  std::mutex mutex_;
  std::condition_variable turned_;
  std::vector<Thread> threads_;
  int turn_ = -1;
};

}  // namespace lockstep::harness::stand_in
