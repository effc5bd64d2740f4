#pragma once

// A device with a host in virtual time, for tests of how kernels are timed.
//
// Idea:      the host's clock moves by what a launch costs it, the device's by what kernels take; a kernel
//            begins when it has been launched and the one before it has ended. Nothing reads a real clock.

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/harness/models/no_device.h"
#include "validate/harness/gpu_bench/stage.h"

namespace lockstep::harness {

class VirtualQueue final : public NoDevice {
 public:
  explicit VirtualQueue(double launch_seconds) : launch_seconds_(launch_seconds) {}

  void launch(double seconds) {
    host_ += launch_seconds_;
    device_ = std::max(device_, host_) + seconds;
  }
  Mark mark() override {
    launch(0);
    marks_.push_back(device_);
    return {static_cast<std::uint32_t>(marks_.size() - 1)};
  }
  double seconds_between(Mark from, Mark to) override { return marks_[to.index] - marks_[from.index]; }
  void forget_marks() override { marks_.clear(); }
  void synchronize() override { host_ = std::max(host_, device_); }
  bool has_passed(Mark mark) const { return marks_[mark.index] <= host_; }

 private:
  double launch_seconds_;
  double host_ = 0;
  double device_ = 0;
  std::vector<double> marks_;
};

class VirtualStage final : public Stage {
 public:
  explicit VirtualStage(double launch_seconds) : queue_(launch_seconds) {}

  VirtualQueue& device() override { return queue_; }
  void hold(double seconds) override {
    ++holds;
    queue_.launch(seconds);
  }
  bool has_passed(Mark mark) override { return queue_.has_passed(mark); }
  std::optional<double> clock_mhz() override { return 1980; }

  int holds = 0;

 private:
  VirtualQueue queue_;
};

}  // namespace lockstep::harness
