#include "validate/harness/stand_in/turns.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace lockstep::harness::stand_in {

bool Turns::all_have_begun() const {
  return std::none_of(threads_.begin(), threads_.end(),
                      [](const Thread& thread) { return thread.state == State::absent; });
}

std::vector<int> Turns::ready_ranks() {
  std::vector<int> ready;
  for (int rank = 0; rank < static_cast<int>(threads_.size()); ++rank) {
    Thread& candidate = thread(rank);
    if (candidate.state == State::waiting && candidate.condition()) {
      candidate.state = State::running;
      hooks_.woken(rank);
    }
    if (candidate.state == State::running)
      ready.push_back(rank);
  }
  return ready;
}

void Turns::give_turn() {
  const auto is_ended = [](const Thread& thread) { return thread.state == State::ended; };
  if (std::all_of(threads_.begin(), threads_.end(), is_ended))
    return;
  std::vector<int> ready = ready_ranks();
  while (hooks_.move_world(ready)) ready = ready_ranks();
  if (ready.empty()) {
    hooks_.hang();
    ready = ready_ranks();
    LOCKSTEP_CHECK(!ready.empty(), "a hang ends what is waited for");
  }
  turn_ = hooks_.choose(ready);
  turned_.notify_all();
}

void Turns::take_turn(Lock& lock, int rank) {
  turned_.wait(lock, [&] { return turn_ == rank; });
}

void Turns::begin(Lock& lock, int rank) {
  thread(rank).state = State::running;
  if (all_have_begun())
    give_turn();
  take_turn(lock, rank);
}

void Turns::end(Lock& /*lock*/, int rank) {
  thread(rank).state = State::ended;
  give_turn();
}

void Turns::pass(Lock& lock, int rank) {
  give_turn();
  take_turn(lock, rank);
}

void Turns::wait(Lock& lock, int rank, Condition condition) {
  thread(rank) = {.state = State::waiting, .condition = std::move(condition)};
  give_turn();
  take_turn(lock, rank);
}

}  // namespace lockstep::harness::stand_in
