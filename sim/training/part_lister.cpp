#include "sim/training/part_lister.h"

namespace lockstep {

void PartLister::list_for_gather(std::int64_t tensors) {
  if (lists_nothing())
    return;
  const std::vector<OpId> computed = write_mark(context_);
  write_wait(context_, "wait for lists of parts", list(tensors, computed), Category::host_overhead);
}

std::vector<OpId> PartLister::list_for_reduction(std::int64_t tensors) {
  return lists_nothing() ? std::vector<OpId>{} : list(tensors, {});
}

std::vector<OpId> PartLister::list(std::int64_t tensors, const std::vector<OpId>& asked) {
  PlanWriter& writer = context_.writer;
  writer.section("list parts", Category::host_overhead);
  const Duration listing = context_.job.part_listing * (tensors * context_.group.members());
  std::vector<OpId> listed;
  for (const Rank rank : writer.representatives()) {
    const LaneId host = writer.lane({.rank = rank, .kind = LaneKind::host});
    const auto after = asked.empty() ? std::span<const OpId>{} : std::span(asked).subspan(listed.size(), 1);
    listed.push_back(writer.delay(host, listing, after));
  }
  return listed;
}

}  // namespace lockstep
