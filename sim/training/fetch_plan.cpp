#include "sim/training/fetch_plan.h"

#include <algorithm>

namespace lockstep {
namespace {

class FetchWalk {
 public:
  FetchWalk(std::span<const std::uint32_t> uses, std::span<const std::int64_t> elements,
            const FetchLimits& limits)
      : uses_(uses), elements_(elements), limits_(limits), is_there_(elements.size()) {}

  std::vector<Fetch> run() {
    std::vector<Fetch> fetches(uses_.size());
    for (std::size_t use = 0; use < uses_.size(); ++use) {
      fetches[use].own = fetch(uses_[use]);
      next_ = std::max(next_, use + 1);
      prefetch(fetches[use]);
      fetches[use].is_released_after = !is_reused_soon(use);
      if (fetches[use].is_released_after)
        release(uses_[use]);
    }
    return fetches;
  }

 private:
  // True when it was missing.
  bool fetch(std::uint32_t module) {
    if (is_there_[module])
      return false;
    is_there_[module] = true;
    live_ += elements_[module];
    return true;
  }

  void release(std::uint32_t module) {
    is_there_[module] = false;
    live_ -= elements_[module];
  }

  void prefetch(Fetch& fetched) {
    const std::int64_t most = std::min(limits_.max_live - live_, limits_.prefetch_bucket);
    std::int64_t asked = 0;
    for (; next_ < uses_.size() && asked < most; ++next_) {
      const std::uint32_t module = uses_[next_];
      if (!fetch(module))
        continue;
      fetched.ahead.push_back(module);
      asked += elements_[module];
    }
  }

  bool is_reused_soon(std::size_t use) const {
    std::int64_t between = 0;
    for (std::size_t later = use + 1; later < uses_.size() && between < limits_.max_reuse_distance; ++later) {
      if (uses_[later] == uses_[use])
        return true;
      between += elements_[uses_[later]];
    }
    return false;
  }

  std::span<const std::uint32_t> uses_;
  std::span<const std::int64_t> elements_;
  const FetchLimits& limits_;
  std::vector<bool> is_there_;
  std::int64_t live_ = 0;
  std::size_t next_ = 0;  // the first use nothing was prefetched for
};

}  // namespace

std::vector<Fetch> plan_fetches(std::span<const std::uint32_t> uses, std::span<const std::int64_t> elements,
                                const FetchLimits& limits) {
  return FetchWalk(uses, elements, limits).run();
}

}  // namespace lockstep
