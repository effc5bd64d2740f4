#pragma once

// A thread that looks after messages while others compute.
//
// Idea:      it calls `step` under the lock every millisecond: a library of messages is asked, not waited for,
//            since its waiting takes a core.
// Invariant: once stopped it calls no more.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep {

class Pulse {
 public:
  Pulse(std::mutex& mutex, std::function<void()> step)
      : mutex_(mutex), step_(std::move(step)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void stop() {
    thread_.request_stop();
    if (thread_.joinable())
      thread_.join();
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      step_();
      woken_.wait_for(lock, stop, std::chrono::milliseconds(1), [] { return false; });
    }
  }

  std::mutex& mutex_;
  std::function<void()> step_;
  std::condition_variable_any woken_;
  std::jthread thread_;
};

}  // namespace lockstep
