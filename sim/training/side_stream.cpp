#include "sim/training/side_stream.h"

namespace lockstep {

std::vector<OpId> SideStream::write(const KernelWork& work, std::span<const OpId> after) {
  std::vector<OpId> ops;
  for (const LaneId lane : lanes())
    ops.push_back(context_.writer.kernel(lane, work, after.subspan(ops.size(), 1)));
  return ops;
}

void SideStream::follow(std::span<const OpId> ops) {
  for (const LaneId lane : lanes()) {
    context_.writer.join(lane, ops.first(1));
    ops = ops.subspan(1);
  }
}

const std::vector<LaneId>& SideStream::lanes() {
  if (lanes_.empty())
    for (const Rank rank : context_.writer.representatives())
      lanes_.push_back(context_.writer.new_channel_lane(rank));
  return lanes_;
}

}  // namespace lockstep
