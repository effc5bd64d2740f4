#include "sim/engine/event_queue.h"

#include <algorithm>

namespace lockstep {

bool EventQueue::advance() {
  if (taken_ < buckets_[0].size())
    return true;
  buckets_[0].clear();
  taken_ = 0;
  if (occupied_ == 0)
    return false;
  const auto first = static_cast<std::size_t>(std::countr_zero(occupied_));
  occupied_ &= ~(std::uint64_t{1} << first);
  std::vector<Event>& source = buckets_[first];
  const auto [earliest, latest] = std::minmax_element(
      source.begin(), source.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  now_ = earliest->time;
  if (earliest->time == latest->time) {
    source.swap(buckets_[0]);
    return true;
  }
  for (const Event& event : source) {
    const std::size_t index = bucket_of(event.time);
    buckets_[index].push_back(event);
    occupied_ |= index == 0 ? 0 : std::uint64_t{1} << index;
  }
  source.clear();
  return true;
}

}  // namespace lockstep
