#include "sim/training/element_buckets.h"

namespace lockstep {

std::vector<Bucket> assign_element_buckets(std::span<const std::int64_t> elements,
                                           std::span<const std::uint32_t> order, std::int64_t limit) {
  std::vector<Bucket> buckets;
  std::int64_t filled = 0;
  for (const std::uint32_t tensor : order) {
    if (buckets.empty() || filled + elements[tensor] > limit) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(tensor);
    filled += elements[tensor];
  }
  return buckets;
}

}  // namespace lockstep
