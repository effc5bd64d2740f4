#include "sim/study/fit/left_out_bands.h"

#include <algorithm>
#include <tuple>

#include "sim/study/fit/calibration_profile.h"

namespace lockstep {
namespace {

constexpr double wanted = 0.8;
constexpr int levels = 100;  // the last one holds all that was seen
constexpr double rounding = 1e-9;

using Kin = std::vector<std::string>;

bool is_kin(const LeftOutResidual& residual, const std::string& kin) {
  return std::find(residual.kin.begin(), residual.kin.end(), kin) != residual.kin.end();
}

ResidualInterval widest(const ResidualInterval& a, const ResidualInterval& b) {
  return {.low = std::min(a.low, b.low), .high = std::max(a.high, b.high)};
}

}  // namespace

// Values in their order, with what is before them of the weight.
class LeftOutBands::SortedVotes {
 public:
  void add(double value, double weight) { values_.emplace_back(value, weight); }
  bool is_empty() const { return values_.empty(); }

  void sort() {
    std::sort(values_.begin(), values_.end());
    double so_far = 0;
    for (auto& [value, weight] : values_) weight = so_far += weight;
  }

  double at(double quantile) const {
    const double reached = (quantile - rounding) * values_.back().second;
    const auto found = std::partition_point(values_.begin(), values_.end(),
                                            [&](const auto& value) { return value.second < reached; });
    return (found == values_.end() ? values_.back() : *found).first;
  }

  ResidualInterval interval(int level) const {
    const double outside = 1 - static_cast<double>(level) / levels;
    return {.low = at(outside / 2), .high = at(1 - outside / 2)};
  }

 private:
  std::vector<std::pair<double, double>> values_;
};

// The residuals of one class of sizes.
class LeftOutBands::OneClass {
 public:
  explicit OneClass(std::vector<const LeftOutResidual*> residuals) : residuals_(std::move(residuals)) {
    for (const LeftOutResidual* residual : residuals_) weights_[residual->unit] += residual->weight;
    for (const LeftOutResidual* residual : residuals_) {
      const std::vector<const SortedVotes*> votes = votes_for(residual->unit, residual->kin);
      std::array<double, levels + 1>& held = held_[residual->unit];
      for (int level = 0; level <= levels && !votes.empty(); ++level)
        if (interval_of(votes, level).holds(residual->measured_over_predicted))
          held[static_cast<std::size_t>(level)] += residual->weight;
    }
  }

  std::optional<ResidualInterval> interval(const LeftOutResidual& residual) {
    const std::vector<const SortedVotes*> votes = votes_for(residual.unit, residual.kin);
    return votes.empty() ? std::nullopt : std::optional(interval_of(votes, level_without(residual.unit)));
  }

  std::optional<ResidualInterval> interval_of_next(const std::string& kin) {
    const std::vector<const SortedVotes*> votes = votes_for("", {kin});
    return votes.empty() ? std::nullopt : std::optional(interval_of(votes, level_without("")));
  }

 private:
  static ResidualInterval interval_of(const std::vector<const SortedVotes*>& votes, int level) {
    ResidualInterval interval = votes.front()->interval(level);
    for (const SortedVotes* of_kin : votes) interval = widest(interval, of_kin->interval(level));
    return interval;
  }

  // What others say, by kind of kin.
  std::vector<const SortedVotes*> votes_for(const std::string& unit, const Kin& kin) {
    std::vector<const SortedVotes*> votes;
    for (const std::string& of_kin : kin) {
      const auto [known, is_new] = votes_.try_emplace({unit, of_kin});
      if (is_new)
        known->second = gather(unit, of_kin);
      if (!known->second.is_empty())
        votes.push_back(&known->second);
    }
    return votes;
  }

  // One vote a unit of the kin, and one for all others together.
  SortedVotes gather(const std::string& without, const std::string& kin) const {
    double others = 0;
    for (const LeftOutResidual* residual : residuals_)
      if (residual->unit != without && !is_kin(*residual, kin))
        others += residual->weight;
    SortedVotes votes;
    for (const LeftOutResidual* residual : residuals_)
      if (residual->unit != without)
        votes.add(residual->measured_over_predicted,
                  residual->weight / (is_kin(*residual, kin) ? weights_.at(residual->unit) : others));
    votes.sort();
    return votes;
  }

  // The least at which the others were held as often as wanted.
  int level_without(const std::string& unit) const {
    double all = 0;
    std::array<double, levels + 1> held{};
    for (const auto& [other, of_unit] : held_)
      if (other != unit) {
        all += weights_.at(other);
        for (std::size_t level = 0; level < held.size(); ++level) held[level] += of_unit[level];
      }
    const auto enough =
        std::find_if(held.begin(), held.end(), [&](double share) { return share >= wanted * all; });
    return static_cast<int>(std::min<std::ptrdiff_t>(enough - held.begin(), levels));
  }

  std::vector<const LeftOutResidual*> residuals_;
  std::map<std::string, double> weights_;                             // by unit
  std::map<std::string, std::array<double, levels + 1>> held_;        // by unit: weight, by level
  std::map<std::pair<std::string, std::string>, SortedVotes> votes_;  // by unit and kind of kin
};

std::vector<LeftOutResidual> residuals_of(std::span<const HeldOutPoint> points) {
  const auto key = [](const HeldOutPoint& point) {
    return std::tuple(point.profile, point.cell, point.size_class);
  };
  std::map<std::tuple<std::string, std::string, SizeClass>, double> count;
  for (const HeldOutPoint& point : points) ++count[key(point)];
  std::vector<LeftOutResidual> residuals;
  for (const HeldOutPoint& point : points)
    residuals.push_back({.size_class = point.size_class,
                         .measured_over_predicted = 1 / (1 + point.error()),
                         .weight = 1 / count[key(point)],
                         .unit = {},
                         .kin = {}});
  return residuals;
}

std::vector<LeftOutResidual> residuals_of_cells(std::span<const HeldOutPoint> points) {
  std::vector<LeftOutResidual> residuals = residuals_of(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    residuals[i].unit = points[i].profile + ": " + points[i].cell;
    residuals[i].kin = {points[i].profile};
  }
  return residuals;
}

LeftOutBands::LeftOutBands(std::vector<LeftOutResidual> residuals) : residuals_(std::move(residuals)) {
  for (const SizeClass of : size_classes) {
    std::vector<const LeftOutResidual*> inside;
    for (const LeftOutResidual& residual : residuals_)
      if (residual.size_class == of)
        inside.push_back(&residual);
    classes_[static_cast<std::size_t>(of)] = std::make_unique<OneClass>(std::move(inside));
  }
}

LeftOutBands::~LeftOutBands() = default;

std::vector<std::optional<ResidualInterval>> LeftOutBands::intervals() const {
  std::vector<std::optional<ResidualInterval>> result;
  for (const LeftOutResidual& residual : residuals_)
    result.push_back(classes_[static_cast<std::size_t>(residual.size_class)]->interval(residual));
  return result;
}

std::vector<ResidualBand> LeftOutBands::bands_of(const std::string& kin) const {
  std::vector<ResidualBand> bands;
  for (const SizeClass of : size_classes)
    if (const auto next = classes_[static_cast<std::size_t>(of)]->interval_of_next(kin))
      bands.push_back({.low = rounded_residual(next->low - 1),
                       .high = rounded_residual(next->high - 1),
                       .from = first_of(of)});
  if (!bands.empty())
    bands.front().from = Bytes{0};
  return bands;
}

}  // namespace lockstep
