#pragma once

// How far a long verb is, on stderr.
//
// Invariant: nothing is written unless stderr is a terminal and --quiet was not said; the line is gone when
//            the bar is. One caller at a time.

#include <chrono>
#include <cstddef>
#include <string>

namespace lockstep {

class ProgressBar {
 public:
  ProgressBar(std::string noun, bool is_quiet);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void show(std::size_t finished, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;

  std::string noun_;
  bool is_shown_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_;
};

}  // namespace lockstep
