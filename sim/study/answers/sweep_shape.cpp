#include "sim/study/answers/sweep_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double flat_part = 0.01;
constexpr std::size_t most_listed = 4;

struct Point {
  ordered_json value;
  double place = 0;  // on the axis
  bool is_choice = false;
  double cost = 0;  // as a part of the best
  bool is_flat = false;
  bool is_in_band = false;
};

struct Measure {
  double number = 0;
  std::string unit;
};

// "1.5 us" and 25 alike; nothing of a name.
std::optional<Measure> measure_of(const ordered_json& value) {
  if (value.is_number()) {
    return Measure{.number = value.get<double>(), .unit = ""};
  }
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  Measure measure;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), measure.number);
  measure.unit = std::string(end, text.data() + text.size());
  return error == std::errc{} ? std::optional(measure) : std::nullopt;
}

bool is_ordered(const std::vector<ordered_json>& values) {
  const auto first = measure_of(values.front());
  return first && std::all_of(values.begin(), values.end(), [&](const ordered_json& value) {
           const auto measure = measure_of(value);
           return measure && measure->unit == first->unit;
         });
}

struct Interval {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();

  bool overlaps(const Interval& other) const { return low <= other.high && other.low <= high; }
};

// The band that the result has for its iteration time.
class Bands {
 public:
  Bands(const SweepTable& table, const std::string& key)
      : table_(table), low_(place_of(key, "_low_s")), high_(place_of(key, "_high_s")) {}

  Interval of(const SweepRow& row) const { return {.low = number(row, low_), .high = number(row, high_)}; }

 private:
  // iteration_time_s has iteration_time_low_s.
  std::size_t place_of(const std::string& key, const std::string& end) const {
    const std::string name = key.substr(0, key.rfind("_s")) + end;
    return static_cast<std::size_t>(std::find(table_.keys.begin(), table_.keys.end(), name) -
                                    table_.keys.begin());
  }
  static double number(const SweepRow& row, std::size_t place) {
    const bool is_there = place < row.results.size() && row.results[place].is_number();
    return is_there ? row.results[place].get<double>() : std::numeric_limits<double>::quiet_NaN();
  }

  const SweepTable& table_;
  std::size_t low_, high_;
};

std::vector<Point> points_of(const SweepTable& table, const SweepRanking& ranking) {
  const Bands bands(table, ranking.key_of(0));
  const Interval best_band = bands.of(table.rows[*ranking.best()]);
  std::vector<Point> points;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const SweepRow full = table.rows[row];
    Point point{.value = table.grid.values_at(full.cell).front(),
                .is_choice = ranking.will_do(row) && ranking.has_value(row)};
    if (const auto measure = measure_of(point.value)) {
      point.place = measure->number;
    }
    const double best = ranking.value(*ranking.best());
    point.is_flat = point.is_choice && ranking.value(row) <= (1 + flat_part) * best;
    point.cost = point.is_choice ? ranking.excess(row) / best : 0;
    point.is_in_band = point.is_choice && row != ranking.best() && bands.of(full).overlaps(best_band);
    points.push_back(std::move(point));
  }
  return points;
}

// The first and the last of the run around the best.
std::pair<std::size_t, std::size_t> flat_run(const std::vector<Point>& points, std::size_t best) {
  std::size_t first = best;
  std::size_t last = best;
  while (first > 0 && points[first - 1].is_flat) --first;
  while (last + 1 < points.size() && points[last + 1].is_flat) ++last;
  return {first, last};
}

// What costs more than the flat run: of values in order the ends, the neighbours of the run and the dearest, of
// names the dearest.
std::vector<ShapeCost> costs_of(const std::vector<Point>& points, std::size_t first, std::size_t last,
                                bool has_order) {
  std::set<std::size_t> told;
  std::optional<std::size_t> low, below, above, high, dearest;
  for (std::size_t place = 0; place < points.size(); ++place) {
    if (!points[place].is_choice || points[place].is_flat) {
      continue;
    }
    low = low.value_or(place);
    below = place < first ? place : below;
    above = !above && place > last ? place : above;
    high = place;
    dearest = dearest && points[*dearest].cost >= points[place].cost ? dearest : place;
  }
  for (const auto& place : has_order ? std::vector{low, below, above, high, dearest} : std::vector{dearest}) {
    if (place) {
      told.insert(*place);
    }
  }
  std::vector<ShapeCost> costs;
  for (const std::size_t place : told) {
    costs.push_back({.value = points[place].value, .part = points[place].cost});
  }
  return costs;
}

// By their values; a best in the middle of equals stays the first of them.
std::size_t sort_points(std::vector<Point>& points, std::size_t best) {
  const double place = points[best].place;
  const double cost = points[best].cost;
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& left, const Point& right) { return left.place < right.place; });
  const auto found = std::find_if(points.begin(), points.end(), [&](const Point& point) {
    return point.is_choice && point.place == place && point.cost == cost;
  });
  return static_cast<std::size_t>(found - points.begin());
}

std::string listed(const std::vector<ordered_json>& values, bool has_order) {
  if (values.size() > most_listed && has_order) {
    return fmt::format("{} values from {} to {}", values.size(), varied_text(values.front()),
                       varied_text(values.back()));
  }
  std::string text;
  for (const ordered_json& value : values) {
    text += (text.empty() ? "" : ", ") + varied_text(value);
  }
  return text;
}

std::string percent_of(double part) {
  const double percent = 100 * part;
  return fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0);
}

std::string costs_text(const SweepShape& shape) {
  std::string text;
  for (const ShapeCost& cost : shape.costs) {
    text += fmt::format("{}{} costs {}", text.empty() ? "; " : ", ", varied_text(cost.value),
                        percent_of(cost.part));
  }
  return text;
}

std::string flat_text(const SweepShape& shape) {
  const std::string best = varied_text(shape.best);
  if (shape.flat.size() < 2) {
    return fmt::format("best {}{}", best, shape.has_order ? ", no neighbour within 1 %" : "");
  }
  return fmt::format("flat from {} to {} (within 1 %){}; best {}", varied_text(shape.flat.front()),
                     varied_text(shape.flat.back()), shape.is_flat_throughout ? ", all that was varied" : "",
                     best);
}

}  // namespace

std::optional<SweepShape> find_shape(const SweepTable& table, const SweepRanking& ranking) {
  const bool is_asked = table.grid.axes().size() == 1 && !ranking.question().goals.front().is_largest;
  if (!is_asked || table.rows.size() < 2 || !ranking.best() || !(ranking.value(*ranking.best()) > 0)) {
    return std::nullopt;
  }
  std::vector<Point> points = points_of(table, ranking);
  SweepShape shape{.path = table.grid.axes().front().path,
                   .best = points[*ranking.best()].value,
                   .has_order = is_ordered(table.grid.axes().front().values)};
  const std::size_t best = shape.has_order ? sort_points(points, *ranking.best()) : *ranking.best();
  const auto [first, last] = shape.has_order ? flat_run(points, best) : std::pair(best, best);
  for (std::size_t place = 0; place < points.size(); ++place) {
    const Point& point = points[place];
    if (place >= first && place <= last) {
      shape.flat.push_back(point.value);
    } else if (point.is_flat) {
      shape.also_flat.push_back(point.value);
    }
    if (point.is_in_band) {
      shape.in_band.push_back(point.value);
    }
  }
  shape.is_flat_throughout = shape.flat.size() == points.size();
  shape.costs = costs_of(points, first, last, shape.has_order);
  return shape;
}

std::string to_text(const SweepShape& shape) {
  std::string text = fmt::format("{}: {}", shape.path, flat_text(shape));
  if (!shape.also_flat.empty()) {
    text += fmt::format("; also within 1 %: {}", listed(shape.also_flat, shape.has_order));
  }
  text += costs_text(shape) + "\n";
  if (!shape.in_band.empty()) {
    text += fmt::format(
        "the bands of {} overlap the best's: by how far predictions miss, one of these may be "
        "the best\n",
        listed(shape.in_band, shape.has_order));
  }
  return text;
}

ordered_json to_json(const SweepShape& shape) {
  ordered_json json{{"path", shape.path}, {"best", shape.best}, {"within_percent", 100 * flat_part}};
  json["flat"] = {{"from", shape.flat.front()}, {"to", shape.flat.back()}};
  json["also_flat"] = shape.also_flat;
  json["costs"] = ordered_json::array();
  for (const ShapeCost& cost : shape.costs) {
    json["costs"].push_back({{"value", cost.value}, {"percent", 100 * cost.part}});
  }
  json["overlaps_band_of_best"] = shape.in_band;
  return json;
}

}  // namespace lockstep
