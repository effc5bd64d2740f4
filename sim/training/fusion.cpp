#include "sim/training/fusion.h"

#include <algorithm>

namespace lockstep {
namespace {

using Queue = std::vector<std::uint32_t>;
using Gradients = std::span<const AnnouncedGradient>;

// Takes the next group off the queue.
Queue take_group(Gradients gradients, Queue& queue, Bytes threshold) {
  Queue group{queue.front()};
  Queue left;
  Bytes fused = gradients[queue.front()].bytes;
  Bytes passed_over;
  std::size_t next = 1;
  for (; next < queue.size() && fused + passed_over <= threshold; ++next) {
    const AnnouncedGradient& gradient = gradients[queue[next]];
    const bool fits = gradient.type == gradients[group.front()].type && fused + gradient.bytes <= threshold;
    (fits ? group : left).push_back(queue[next]);
    (fits ? fused : passed_over) += gradient.bytes;
  }
  left.insert(left.end(), queue.begin() + static_cast<std::ptrdiff_t>(next), queue.end());
  queue = std::move(left);
  return group;
}

std::int64_t periods_of(Duration time, Duration period) {
  return divided_up(time.picoseconds(), period.picoseconds());
}

class FusionThread {
 public:
  FusionThread(Gradients gradients, const FusionRule& rule)
      : gradients_(gradients),
        rule_(rule),
        period_(std::max({rule.cycle, rule.negotiation, Duration::picoseconds(1)})) {}

  void wake_first(Duration announced) {
    wakes_ = announced + Duration::picoseconds(rule_.cycle.picoseconds() / 2);
  }

  // The first time it wakes with something to do.
  Duration wake_for(Duration announced) {
    if (announced > wakes_)
      wakes_ += period_ * periods_of(announced - wakes_, period_);
    return wakes_;
  }

  void send(Queue queue, std::vector<FusedGroup>& groups) {
    const Duration agreed = wakes_ + rule_.negotiation;
    Duration free = agreed;
    while (!queue.empty()) {
      groups.push_back({take_group(gradients_, queue, rule_.threshold), agreed});
      free = free_after(groups.back(), free);
    }
    wakes_ = std::max(wakes_ + rule_.cycle, free);
  }

 private:
  Duration free_after(const FusedGroup& group, Duration free) const {
    Bytes bytes;
    for (const std::uint32_t gradient : group.gradients) {
      free = std::max(free, gradients_[gradient].ready);
      bytes += gradients_[gradient].bytes;
    }
    return rule_.blocked_at ? free + time_to_move(bytes, *rule_.blocked_at) : free;
  }

  Gradients gradients_;
  const FusionRule& rule_;
  Duration period_;  // of cycles that find nothing
  Duration wakes_;
};

}  // namespace

std::vector<FusedGroup> fuse(std::span<const AnnouncedGradient> gradients,
                             std::span<const std::uint32_t> order, const FusionRule& rule) {
  Queue queue(order.begin(), order.end());
  const auto announced = [&](std::uint32_t gradient) { return gradients[gradient].announced; };
  std::stable_sort(queue.begin(), queue.end(), [&](auto a, auto b) { return announced(a) < announced(b); });
  std::vector<FusedGroup> groups;
  FusionThread thread(gradients, rule);
  if (!queue.empty())
    thread.wake_first(announced(queue.front()));
  for (auto from = queue.begin(); from != queue.end();) {
    const Duration wakes = thread.wake_for(announced(*from));
    const auto to =
        std::find_if(from, queue.end(), [&](auto gradient) { return announced(gradient) > wakes; });
    thread.send(Queue(from, to), groups);
    from = to;
  }
  return groups;
}

bool same_groups(std::span<const FusedGroup> a, std::span<const FusedGroup> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.gradients == y.gradients; });
}

}  // namespace lockstep
