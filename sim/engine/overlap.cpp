#include "sim/engine/overlap.h"

#include <algorithm>

namespace lockstep {
namespace {

__extension__ typedef __int128 Signed128;

// Whether `middle` is never the longest of three paths, whatever the ratio of moving to computing: it lies
// below the line from one to the other. Shares grow from left to right.
bool is_hidden(const Overlap& left, const Overlap& middle, const Overlap& right) {
  const auto area = [](std::int64_t share, Duration compute) {
    return static_cast<Signed128>(share) * static_cast<Signed128>(compute.picoseconds());
  };
  return area(right.share_ppm - left.share_ppm, middle.compute - left.compute) <=
         area(middle.share_ppm - left.share_ppm, right.compute - left.compute);
}

}  // namespace

std::vector<Overlap> upper_hull(std::vector<Overlap> paths) {
  std::stable_sort(paths.begin(), paths.end(), [](const Overlap& left, const Overlap& right) {
    return left.share_ppm != right.share_ppm ? left.share_ppm < right.share_ppm
                                             : left.compute < right.compute;
  });
  std::vector<Overlap> hull;
  for (const Overlap& path : paths) {
    while (hull.size() > 1 && is_hidden(hull[hull.size() - 2], hull.back(), path)) hull.pop_back();
    hull.push_back(path);
  }
  return hull;
}

Duration longest(const std::vector<Overlap>& paths, Duration moving, std::int64_t factor_ppm) {
  Duration longest;
  for (const Overlap& path : paths)
    longest = std::max(longest,
                       scaled(moving, path.share_ppm, million) + scaled(path.compute, factor_ppm, million));
  return longest;
}

}  // namespace lockstep
