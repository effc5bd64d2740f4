#include "sim/training/bucketing.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep {
namespace {

// The bucket being filled for one element type. Each type starts with the first bucket's limit.
struct OpenBucket {
  Bucket tensors;
  Bytes bytes;
  bool is_first = true;
};

bool has_reached(const OpenBucket& open, const BucketLimits& limits) {
  return open.bytes >= (open.is_first ? limits.first : limits.cap);
}

}  // namespace

std::vector<Bucket> assign_buckets(std::span<const BucketTensor> tensors,
                                   std::span<const std::uint32_t> order, const BucketLimits& limits) {
  std::vector<Bucket> buckets;
  std::map<std::uint32_t, OpenBucket> open_by_type;
  for (const std::uint32_t index : order) {
    OpenBucket& open = open_by_type[tensors[index].type];
    open.tensors.push_back(index);
    open.bytes += tensors[index].bytes;
    if (!has_reached(open, limits))
      continue;
    buckets.push_back(std::move(open.tensors));
    open = {.tensors = {}, .bytes = Bytes{0}, .is_first = false};
  }
  for (auto& [type, open] : open_by_type)
    if (!open.tensors.empty())
      buckets.push_back(std::move(open.tensors));
  return buckets;
}

std::vector<Bucket> assign_initial_buckets(std::span<const BucketTensor> tensors,
                                           const BucketLimits& limits) {
  std::vector<std::uint32_t> registration(tensors.size());
  std::iota(registration.begin(), registration.end(), 0u);
  std::vector<Bucket> buckets = assign_buckets(tensors, registration, limits);
  std::sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

Bytes mebibytes(double mib) {
  return Bytes{static_cast<std::int64_t>(mib * 1024 * 1024)};
}

}  // namespace lockstep
