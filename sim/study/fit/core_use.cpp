#include "sim/study/fit/core_use.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/study/fit/calibration_profile.h"

namespace lockstep {
namespace {

constexpr double collectives_beside = 24;
constexpr CoreUse least_use{.share = 0.02, .wait_s = 0};
constexpr CoreUse most_use{.share = 0.97, .wait_s = 0.1};
constexpr std::array no_wait{0.0};
constexpr std::array waits_s{0.0,   0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004,
                             0.006, 0.008,  0.012, 0.016,  0.024, 0.032};
constexpr int share_steps = 20;  // that the scan tells apart
// From the scan's best pair on.
constexpr CoreUse first_stride{.share = 0.5 / share_steps, .wait_s = 0.00025};
constexpr int halvings = 5;
// What is no better than this is no better: a wire that is full tells nothing of a core, and then a larger
// share after a longer wait comes to the same. Waits are scanned upwards, so the shortest is kept.
constexpr double least_gain = 1e-5;

class CompassSearch {
 public:
  CompassSearch(const InterferenceBench& bench, std::span<const InterferencePoint> points,
                const Calibration& calibration, const CoreUse& start)
      : bench_(bench), points_(points), calibration_(calibration), best_(start), error_(error_of(start)) {}

  // Where nothing is held up the error is flat: a search that starts there must first look further.
  void scan(std::span<const double> waits) {
    for (const double wait_s : waits)
      for (int part = share_steps - 1; part > 0; --part)
        try_at({static_cast<double>(part) / share_steps, wait_s});
  }
  void move_share() {
    descend([](const CoreUse& stride) { return std::array{CoreUse{stride.share, 0}}; });
  }
  void move_both() {
    descend([](const CoreUse& stride) {
      return std::array{CoreUse{stride.share, 0}, CoreUse{0, stride.wait_s},
                        CoreUse{stride.share, stride.wait_s}};
    });
  }
  const CoreUse& best() const { return best_; }

 private:
  // Every direction forth and back, as long as one of them is better; then half as far.
  template <class Directions>
  void descend(Directions directions) {
    CoreUse stride = first_stride;
    for (int halving = 0; halving < halvings; ++halving) {
      const auto moves = directions(stride);
      while (
          std::any_of(moves.begin(), moves.end(), [&](const CoreUse& move) { return goes_better(move); })) {
      }
      stride = {stride.share / 2, stride.wait_s / 2};
    }
  }

  // Forth or back.
  bool goes_better(const CoreUse& move) {
    return try_at({best_.share + move.share, best_.wait_s + move.wait_s}) ||
           try_at({best_.share - move.share, best_.wait_s - move.wait_s});
  }

  bool try_at(CoreUse use) {
    use.share = std::clamp(use.share, least_use.share, most_use.share);
    use.wait_s = std::clamp(use.wait_s, least_use.wait_s, most_use.wait_s);
    const double error = error_of(use);
    if (error > error_ - least_gain)
      return false;
    best_ = use;
    error_ = error;
    return true;
  }

  // Of paces, relative, squared.
  double error_of(const CoreUse& use) const {
    const Calibration calibration = with_core_use(calibration_, use);
    double sum = 0;
    for (const InterferencePoint& point : points_) {
      const InterferenceRow row = bench_.predict(query_of(point), calibration);
      const double error = row.collective.in_seconds() / point.collective_beside_s - 1;
      sum += error * error;
    }
    return sum;
  }

  const InterferenceBench& bench_;
  std::span<const InterferencePoint> points_;
  const Calibration& calibration_;
  CoreUse best_;
  double error_;
};

bool has_several_sizes(std::span<const InterferencePoint> points) {
  return std::any_of(points.begin(), points.end(),
                     [&](const InterferencePoint& point) { return point.bytes != points.front().bytes; });
}

}  // namespace

InterferenceQuery query_of(const InterferencePoint& point) {
  const double seconds =
      collectives_beside * point.collective_beside_s * point.compute_alone_s / point.compute_beside_s;
  return {.bytes = point.bytes, .compute = Duration::picoseconds(std::llround(seconds * 1e12))};
}

CoreUse fit_core_use(const InterferenceBench& bench, std::span<const InterferencePoint> points,
                     const Calibration& calibration, const CoreUse& start) {
  CompassSearch search(bench, points, calibration, start);
  if (has_several_sizes(points)) {
    search.scan(waits_s);
    search.move_both();
  } else {
    search.scan(no_wait);
    search.move_share();
  }
  return search.best();
}

Calibration with_core_use(Calibration calibration, const CoreUse& use) {
  calibration.core_share = Ratio::parts_per_million(to_four_digits(std::llround(use.share * 1e6)));
  calibration.core_wait = Duration::picoseconds(to_four_digits(std::llround(use.wait_s * 1e12)));
  return calibration;
}

}  // namespace lockstep
