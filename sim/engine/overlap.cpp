#include "sim/engine/overlap.h"

#include <algorithm>

namespace lockstep {
namespace {

__extension__ typedef __int128 Signed128;

// Whether `middle` is never the longest of three paths, whatever the ratio of moving to computing: it lies
// below the line from one to the other. Shares grow from left to right.
bool is_hidden(const Overlap& left, const Overlap& middle, const Overlap& right) {
  const auto area = [](Ratio share, Duration compute) {
    return static_cast<Signed128>(share.parts_per_million()) * static_cast<Signed128>(compute.picoseconds());
  };
  return area(right.share - left.share, middle.compute - left.compute) <=
         area(middle.share - left.share, right.compute - left.compute);
}

}  // namespace

std::vector<Overlap> upper_hull(std::vector<Overlap> paths) {
  std::stable_sort(paths.begin(), paths.end(), [](const Overlap& left, const Overlap& right) {
    return left.share != right.share ? left.share < right.share : left.compute < right.compute;
  });
  std::vector<Overlap> hull;
  for (const Overlap& path : paths) {
    while (hull.size() > 1 && is_hidden(hull[hull.size() - 2], hull.back(), path)) hull.pop_back();
    hull.push_back(path);
  }
  return hull;
}

Duration longest(const std::vector<Overlap>& paths, Duration moving, Ratio factor) {
  Duration longest;
  for (const Overlap& path : paths)
    longest = std::max(longest, scaled(moving, path.share) + scaled(path.compute, factor));
  return longest;
}

}  // namespace lockstep
