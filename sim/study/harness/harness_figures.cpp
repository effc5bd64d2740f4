#include "sim/study/harness/harness_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "sim/base/error.h"
#include "sim/base/median.h"
#include "sim/base/weighted_quantile.h"

namespace lockstep {
namespace {

// Where bytes take so little of a time, the rest is steps.
constexpr double most_of_a_step = 0.2;
constexpr Bytes first_large{1 << 20};
// Less is noise between two measurements of the same thing.
constexpr double noise = 0.05;
constexpr double most_of_a_core = 0.95;
// From the 10th to the 90th percentile of a normal distribution, in standard deviations.
constexpr double deciles_apart = 2.563;

double in_bytes(Bytes bytes) {
  return static_cast<double>(bytes.count());
}

std::optional<double> median_of_any(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

// One value of each point from `from` on; of the largest alone where there is none.
template <class Point, class Value>
std::optional<double> median_of_large(const std::vector<Point>& points, Bytes from, Value value) {
  std::vector<double> values;
  for (const Point& point : points)
    if (point.bytes >= from)
      values.push_back(value(point));
  if (values.empty() && !points.empty()) {
    const auto by_size = [](const Point& a, const Point& b) { return a.bytes < b.bytes; };
    values.push_back(value(*std::max_element(points.begin(), points.end(), by_size)));
  }
  return median_of_any(std::move(values));
}

// Weighted by size: what disturbs a host for a while is lost in a long all-reduce and doubles a short one.
double wire_per_byte(const HarnessRun& run, double step_s) {
  const Bytes from = std::min(first_large, run.curve.back().bytes);
  std::vector<std::pair<double, double>> votes;
  for (const CurvePoint& point : run.curve)
    if (point.bytes >= from) {
      const double moving = point.time.median - static_cast<double>(run.ring_steps()) * step_s;
      votes.emplace_back(moving / run.sent_bytes(point.bytes), in_bytes(point.bytes));
    }
  return weighted_quantile(std::move(votes), 0.5);
}

double step_of_point(const HarnessRun& run, const CurvePoint& point, double per_byte_s) {
  return (point.time.median - run.sent_bytes(point.bytes) * per_byte_s) /
         static_cast<double>(run.ring_steps());
}

std::optional<double> step(const HarnessRun& run, double per_byte_s) {
  std::vector<double> steps;
  for (const CurvePoint& point : run.curve)
    if (run.sent_bytes(point.bytes) * per_byte_s < most_of_a_step * point.time.median)
      steps.push_back(step_of_point(run, point, per_byte_s));
  if (steps.empty())
    steps.push_back(std::max(step_of_point(run, run.curve.front(), per_byte_s), 0.0));
  return median(std::move(steps));
}

void read_curve(const HarnessRun& run, RunFigures& figures) {
  if (run.ranks < 2 || run.curve.empty()) {
    figures.gaps.emplace_back("no all-reduce of several ranks was measured: nothing is known of the network");
    return;
  }
  const double rough = wire_per_byte(run, 0);
  figures.step_s = step(run, rough);
  figures.wire_per_byte_s = wire_per_byte(run, *figures.step_s);
  if (run.curve.back().bytes < first_large)
    figures.gaps.emplace_back("no all-reduce of 1 MiB and more: bandwidth shows only there");
  if (!(*figures.wire_per_byte_s > 0)) {
    figures.wire_per_byte_s.reset();
    figures.gaps.emplace_back("large all-reduces take no longer than small ones: bandwidth cannot be told");
  }
}

// Least squares, the longer a copy the more it may err. Ranks that share a core: a copy shorter than the
// scheduler's slice is timed while the neighbour stands still, which in a step it does not. Long ones tell.
struct CopySums {
  double tensors_tensors = 0, tensors_bytes = 0, bytes_bytes = 0, tensors = 0, bytes = 0;

  explicit CopySums(const std::vector<BucketCopyPoint>& points) {
    for (const BucketCopyPoint& point : points) {
      const double t = static_cast<double>(point.tensors);
      const double b = in_bytes(point.bytes);
      tensors_tensors += t * t / point.time.median;
      tensors_bytes += t * b / point.time.median;
      bytes_bytes += b * b / point.time.median;
      tensors += t;
      bytes += b;
    }
  }
  double determinant() const { return tensors_tensors * bytes_bytes - tensors_bytes * tensors_bytes; }
};

void read_copies(const HarnessRun& run, RunFigures& figures) {
  if (run.copies.empty()) {
    figures.gaps.emplace_back("no copies into buckets were measured");
    return;
  }
  const CopySums sums(run.copies);
  const double determinant = sums.determinant();
  const bool can_part = determinant > 1e-9 * sums.tensors_tensors * sums.bytes_bytes;
  double per_tensor = 0;
  if (can_part)
    per_tensor = (sums.tensors * sums.bytes_bytes - sums.bytes * sums.tensors_bytes) / determinant;
  else
    figures.gaps.emplace_back("all copies have as many bytes a tensor: what a tensor costs cannot be told");
  figures.copy_per_tensor_s = std::max(per_tensor, 0.0);
  const double per_byte = (sums.bytes - *figures.copy_per_tensor_s * sums.tensors_bytes) / sums.bytes_bytes;
  if (per_byte > 0)
    figures.copy_per_byte_s = per_byte;
}

using Points = std::vector<InterferencePoint>;

double lost(const InterferencePoint& point) {
  return point.compute_beside_s - point.compute_alone_s;
}

bool slows_collectives(const InterferencePoint& point) {
  return point.collective_beside_s > (1 + noise) * point.collective_alone_s;
}

// Bytes are counted by the pace of all-reduces: their whole number leaves out those under way at the end.
// All-reduces cannot move a byte in less than it takes of a core: what computing loses beyond that is no core
// time.
void read_core_time(const HarnessRun& run, const Points& points, RunFigures& figures) {
  const auto taken = median_of_large(points, first_large, [&](const InterferencePoint& point) {
    const double sent = run.sent_bytes(point.bytes) * point.compute_beside_s / point.collective_beside_s;
    return lost(point) / sent;
  });
  const auto alone = median_of_large(points, first_large, [&](const InterferencePoint& point) {
    return point.collective_alone_s / run.sent_bytes(point.bytes);
  });
  figures.core_per_byte_s = std::clamp(*taken, 0.0, *alone);
  if (*taken > (1 + noise) * *alone)
    figures.gaps.push_back(
        fmt::format("beside all-reduces computing loses {:.3g} ns a byte, which alone take only {:.3g} ns: "
                    "something besides core time slows it down, and that part is left out",
                    *taken * 1e9, *alone * 1e9));
}

// Only where all-reduces are held up do they get less of the core than they want.
void read_core_share(const Points& points, RunFigures& figures) {
  std::vector<double> shares;
  for (const InterferencePoint& point : points) {
    const double share = std::clamp(lost(point) / point.compute_beside_s, 0.0, most_of_a_core);
    figures.core_taken = std::max(figures.core_taken, share);
    if (slows_collectives(point) && share > noise)
      shares.push_back(share);
  }
  figures.core_share = median_of_any(std::move(shares));
}

void find_interference(const HarnessRun& run, RunFigures& figures) {
  Points points;
  std::copy_if(run.interference.begin(), run.interference.end(), std::back_inserter(points),
               [](const InterferencePoint& point) { return point.collectives > 0; });
  if (run.ranks < 2 || points.empty()) {
    figures.gaps.emplace_back("computing beside all-reduces was not measured");
    return;
  }
  figures.slowdown = median_of_large(points, first_large, [](const InterferencePoint& point) {
    return std::max(point.compute_beside_s / point.compute_alone_s, 1.0);
  });
  read_core_time(run, points, figures);
  read_core_share(points, figures);
}

// Every step's time is the median of its ranks, which varies less than one rank: of n normal draws a median's
// variance is pi / 2 (n + 1) of theirs, within a seventh from n = 2 on.
void read_variation(const HarnessRun& run, RunFigures& figures) {
  if (run.ranks < 2 || !run.alone || run.alone->iteration.count < 2)
    return;
  const TimeStatistics& step = run.alone->iteration;
  const double of_medians = (step.p90 - step.p10) / deciles_apart / step.median;
  figures.rank_variation =
      std::max(of_medians, 0.0) * std::sqrt(2 * static_cast<double>(run.ranks + 1) / std::numbers::pi);
}

}  // namespace

RunFigures figures_of(const HarnessRun& run) {
  RunFigures figures;
  read_curve(run, figures);
  read_copies(run, figures);
  find_interference(run, figures);
  read_variation(run, figures);
  return figures;
}

Bandwidth link_of(const HarnessRun& run, const RunFigures& figures, double unhidden_per_byte_s) {
  if (run.goodput)
    return *run.goodput;
  if (!figures.wire_per_byte_s)
    throw ConfigError(run.file +
                      ": neither network.goodput_byte_s nor collective_curve says what a link carries");
  const double reached = *figures.wire_per_byte_s;
  const double wire = reached > 2 * unhidden_per_byte_s ? reached - unhidden_per_byte_s : reached;
  return Bandwidth{std::llround(1 / wire)};
}

}  // namespace lockstep
