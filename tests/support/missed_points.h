// Bounds that some points miss, on record.
//
// Problem:   a law that most of its points keep and some do not says nothing of these once the whole test is
//            expected to fail: they may get worse, others may join them, and no one hears of it.
// Idea:      a test measures all its points and asks of each the bound that was set. Those that miss it are
//            listed by name, each with a ceiling: its error as measured, rounded up to the next tenth of a
//            percent (to the next hundredth below one).
// Invariant: what is not listed keeps its bound; what is listed misses its bound and stays below its ceiling.
//            Whatever else is found fails, also a name that stands for no point: a list neither grows nor rots
//            in silence. A point that is clearly better than its ceiling is told without failing.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

struct CheckedPoint {
  std::string name;
  double percent = 0;  // how far off it is
  double bound = 0;    // how far it may be
};

struct MissedPoint {
  std::string name;
  double ceiling = 0;
};

struct PointsVerdict {
  std::vector<std::string> failures;
  std::vector<std::string> better;  // no failures, but their ceilings are due for lowering
};

// Error, ceiling and bound of one point; NaN is below nothing.
inline void judge_point(const CheckedPoint& point, const MissedPoint* missed, PointsVerdict& verdict) {
  const bool holds = point.percent <= point.bound;
  const std::string figures =
      fmt::format("{}: measured {:.6g} %, bound {:.6g} %, ceiling {}", point.name, point.percent, point.bound,
                  missed ? fmt::format("{:g} %", missed->ceiling) : "none");
  if (!missed && !holds)
    verdict.failures.push_back(figures + ": misses its bound and is not listed");
  else if (missed && holds)
    verdict.failures.push_back(figures + ": keeps its bound now, so take it off the list");
  else if (missed && !(point.percent <= missed->ceiling))
    verdict.failures.push_back(figures + ": worse than it was");
  else if (missed && point.percent < 0.9 * missed->ceiling)
    verdict.better.push_back(figures + ": better than it was");
}

inline PointsVerdict judge_points(const std::vector<CheckedPoint>& points,
                                  const std::vector<MissedPoint>& missed) {
  PointsVerdict verdict;
  std::map<std::string, const MissedPoint*> listed;
  for (const MissedPoint& point : missed)
    if (!listed.emplace(point.name, &point).second)
      verdict.failures.push_back(point.name + ": is listed twice");
  std::set<std::string> measured;
  for (const CheckedPoint& point : points) {
    const auto found = listed.find(point.name);
    judge_point(point, found == listed.end() ? nullptr : found->second, verdict);
    if (!measured.insert(point.name).second)
      verdict.failures.push_back(point.name + ": is measured twice, so its name says too little");
  }
  for (const auto& [name, point] : listed)
    if (!measured.contains(name))
      verdict.failures.push_back(name + ": is listed but was not measured");
  return verdict;
}

inline void check_points(const std::vector<CheckedPoint>& points,
                         const std::vector<MissedPoint>& missed = {}) {
  CHECK_FALSE(points.empty());
  const PointsVerdict verdict = judge_points(points, missed);
  for (const std::string& failure : verdict.failures) FAIL_CHECK(failure);
  for (const std::string& better : verdict.better) MESSAGE(better);
}

// A long list stands in a file: a ceiling and a name a line, remarks behind '#'.
inline std::vector<MissedPoint> read_missed_points(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, "no list ", path);
  std::vector<MissedPoint> missed;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#')
      continue;
    std::size_t end = 0;
    const double ceiling = std::stod(line, &end);
    missed.push_back({line.substr(end + 1), ceiling});
  }
  return missed;
}

}  // namespace lockstep
