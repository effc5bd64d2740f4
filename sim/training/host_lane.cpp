#include "sim/training/host_lane.h"

#include "sim/base/check.h"

namespace lockstep {

void HostLane::hold() {
  LOCKSTEP_CHECK(next_ < work_.issuing.size(), "an iteration has the kernels that its host was told of");
  const Duration issuing = work_.issuing[next_++];
  if (issuing == Duration::zero())
    return;
  if (work_.waits_for_kernels)
    wait_for_gpu(Duration::zero());
  writer_.section(host_wait_section, Category::host_overhead);
  for (std::size_t i = 0; i < compute_.size(); ++i) {
    const OpId issued = writer_.delay(issue_[i], issuing);
    writer_.join(compute_[i], std::span(&issued, 1));
  }
}

void HostLane::begin_pass() {
  if (!work_.pass_waits.empty())
    wait_for_gpu(work_.pass_waits[next_pass_++]);
}

void HostLane::count_rows() {
  if (work_.count_waits.empty())
    return;
  LOCKSTEP_CHECK(next_ < work_.count_waits.size(), "a kernel follows whose rows its host counts");
  wait_for_gpu(work_.count_waits[next_]);
}

void HostLane::read_back() {
  wait_for_gpu(work_.reads_back);
}

void HostLane::wait_for_gpu(std::optional<Duration> issuing) {
  if (!issuing)
    return;
  writer_.section("read back", Category::host_overhead);
  for (std::size_t i = 0; i < compute_.size(); ++i) {
    const OpId done = writer_.join(compute_[i]);
    if (*issuing > Duration::zero())
      writer_.delay(issue_[i], *issuing);
    writer_.join(issue_[i], std::span(&done, 1));
  }
}

}  // namespace lockstep
