#pragma once

// A row of passes that pauses where its compute lane would wait for a message.
//
// Problem:   two passes that run beside each other hide one's messages behind the other's kernels: what is written of
//            them has to alternate wherever one of them would wait.
// Idea:      a coroutine writes as far as its next wait and pauses before it; whoever holds two of them resumes them in
//            turn, so that a wait stands behind what the other wrote meanwhile.
// Invariant: resumed to its end by itself it writes what the same passes write without pauses.
// Cost:      a frame for each layer that is written so, none while the plan runs.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include "sim/base/check.h"

namespace lockstep {

class Pausing {
 public:
  struct promise_type {
    Pausing get_return_object() { return Pausing(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failed = std::current_exception(); }

    std::exception_ptr failed;
  };

  Pausing(Pausing&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Pausing(const Pausing&) = delete;
  Pausing& operator=(const Pausing&) = delete;
  ~Pausing() {
    if (handle_)
      handle_.destroy();
  }

  // Goes on to the next pause. False: it has ended instead.
  bool resume() {
    LOCKSTEP_CHECK(!handle_.done(), "who has ended does not go on");
    handle_.resume();
    if (handle_.promise().failed)
      std::rethrow_exception(handle_.promise().failed);
    return !handle_.done();
  }

 private:
  using Handle = std::coroutine_handle<promise_type>;
  explicit Pausing(Handle handle) : handle_(handle) {}

  Handle handle_;
};

// Which waits are such that the other goes on meanwhile.
enum class PausesAt : std::uint8_t { every_exchange, exchanges_of_experts };

inline std::suspend_always pause() {
  return {};
}

}  // namespace lockstep
