#pragma once

// The thread that launches a rank's kernels, where the GPU may have to wait for it.
//
// Problem:   a framework issues operators one after another; small kernels are over before the next one is there.
// Idea:      a lane beside each compute lane that walks the iteration in the order in which it is written. Before
//            a kernel that the GPU may be ready for too soon, the lane spends what issuing takes up to there, and
//            the compute lane waits for it. It runs ahead as far as it can, from one iteration into the next,
//            but for what the training loop reads back: there it waits for the GPU.
// Invariant: nothing is written where nothing ever waits. Before each of the model's kernels `hold` is called
//            once, in the order of the job's list.
// Cost:      two ops a rank for each kernel that may wait.
// Reference: PyTorch, "CUDA semantics", asynchronous execution.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/plan/plan_writer.h"
#include "sim/training/job.h"

namespace lockstep {

// As reports name it.
inline constexpr std::string_view host_wait_section = "wait for the host";

class HostLane {
 public:
  // Lanes by representative.
  HostLane(PlanWriter& writer, const std::vector<LaneId>& compute, const std::vector<LaneId>& issue,
           const HostWork& work)
      : writer_(writer), compute_(compute), issue_(issue), work_(work) {}

  void begin_iteration() { next_ = next_pass_ = 0; }
  // The next pass, before which the host may wait for the GPU.
  void begin_pass();
  // Before the model's next kernel and its messages, where the host has to read how many rows these have.
  void count_rows();
  // Holds the compute lanes until the model's next kernel is issued.
  void hold();
  // Holds the host until all that stands on the compute lanes so far has ended.
  void read_back();
  // How many of the iteration's kernels it has held for; passes beside each other are each at their own.
  std::size_t kernel() const { return next_; }
  void go_to(std::size_t kernel) { next_ = kernel; }

 private:
  PlanWriter& writer_;
  const std::vector<LaneId>& compute_;
  const std::vector<LaneId>& issue_;
  const HostWork& work_;
  void wait_for_gpu(std::optional<Duration> issuing);

  std::size_t next_ = 0;
  std::size_t next_pass_ = 0;
};

}  // namespace lockstep
