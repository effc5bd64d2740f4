#pragma once

// Processes of a team as objects of one test, whose time passes as the test says.

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sim/study/team/team.h"

namespace lockstep::testing {

class ProcessHub {
 public:
  explicit ProcessHub(int size) : processes_(static_cast<std::size_t>(size)) {}

  std::unique_ptr<Transport> transport_of(int rank) { return std::make_unique<End>(*this, rank); }

  // From here on it is neither heard nor does it hear.
  void kill(int rank) {
    const std::scoped_lock lock(mutex_);
    of(rank).is_alive = false;
  }

  // Everybody who lives looks for messages between one part of a second and the next, as in a run.
  void let_pass(std::chrono::milliseconds time) {
    constexpr std::chrono::milliseconds step{500};
    for (std::chrono::milliseconds passed{0}; passed < time; passed += step) {
      now_ += step.count();
      let_all_look();
      let_all_look();
    }
  }

 private:
  struct Process {
    bool is_alive = true;
    bool is_closed = false;
    std::size_t looks = 0;  // that found nothing
    std::deque<Letter> letters;
  };

  class End final : public Transport {
   public:
    End(ProcessHub& hub, int rank) : hub_(hub), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(hub_.processes_.size()); }
    std::chrono::milliseconds now() const override { return std::chrono::milliseconds(hub_.now_); }
    void send(int to, std::string bytes) override { hub_.send(rank_, to, std::move(bytes)); }
    std::optional<Letter> receive() override { return hub_.receive(rank_); }
    void close(bool) override { hub_.close(rank_); }

   private:
    ProcessHub& hub_;
    int rank_;
  };

  Process& of(int rank) { return processes_[static_cast<std::size_t>(rank)]; }

  void send(int from, int to, std::string bytes) {
    const std::scoped_lock lock(mutex_);
    if (of(from).is_alive && of(to).is_alive)
      of(to).letters.push_back({from, std::move(bytes)});
  }

  std::optional<Letter> receive(int rank) {
    const std::scoped_lock lock(mutex_);
    Process& process = of(rank);
    if (process.letters.empty()) {
      ++process.looks;
      return std::nullopt;
    }
    Letter letter = std::move(process.letters.front());
    process.letters.pop_front();
    return letter;
  }

  void close(int rank) {
    const std::scoped_lock lock(mutex_);
    of(rank).is_closed = true;
  }

  void let_all_look() {
    std::vector<std::size_t> before;
    {
      const std::scoped_lock lock(mutex_);
      for (const Process& process : processes_) before.push_back(process.looks);
    }
    while (!have_looked_since(before)) std::this_thread::yield();
  }

  bool have_looked_since(const std::vector<std::size_t>& before) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      const Process& process = processes_[rank];
      if (process.is_alive && !process.is_closed && process.looks == before[rank])
        return false;
    }
    return true;
  }

  std::mutex mutex_;
  std::vector<Process> processes_;
  std::atomic<std::int64_t> now_ = 0;  // milliseconds
};

}  // namespace lockstep::testing
