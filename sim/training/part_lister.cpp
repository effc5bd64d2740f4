#include "sim/training/part_lister.h"

namespace lockstep {
namespace {

// After `asked`, by representative; none: after what the host does.
std::vector<OpId> write_lists(const StrategyContext& context, std::int64_t tensors,
                              const std::vector<OpId>& asked) {
  PlanWriter& writer = context.writer;
  writer.section("list parts", Category::host_overhead);
  const Duration listing = context.job.part_listing * (tensors * context.group.members());
  std::vector<OpId> listed;
  for (const Rank rank : writer.representatives()) {
    const LaneId host = writer.lane({.rank = rank, .kind = LaneKind::host});
    const auto after = asked.empty() ? std::span<const OpId>{} : std::span(asked).subspan(listed.size(), 1);
    listed.push_back(writer.delay(host, listing, after));
  }
  return listed;
}

bool lists_nothing(const StrategyContext& context) {
  return context.job.part_listing == Duration::zero();
}

}  // namespace

void list_for_gather(const StrategyContext& context, std::int64_t tensors) {
  if (lists_nothing(context))
    return;
  const std::vector<OpId> computed = write_mark(context);
  write_wait(context, "wait for lists of parts", write_lists(context, tensors, computed),
             Category::host_overhead);
}

std::vector<OpId> list_for_reduction(const StrategyContext& context, std::int64_t tensors) {
  return lists_nothing(context) ? std::vector<OpId>{} : write_lists(context, tensors, {});
}

}  // namespace lockstep
