#include "sim/report/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/base/printable.h"
#include "sim/base/series.h"
#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double width = 860;
constexpr double height = 380;
constexpr double left = 84;
constexpr double right = 836;
constexpr double top = 30;
constexpr double bottom = 320;
constexpr double wanted_ticks = 6;
constexpr double far = 4;  // times the largest value: what lies there would leave the points a corner
constexpr std::array round_steps{1.0, 2.0, 5.0, 10.0};

std::string place(double pixels) {
  return fmt::format("{:.1f}", pixels);
}

// ---- scales ----

struct Scale {
  bool is_logarithmic = false;
  double low = 0, high = 1;    // of the axis
  double first = 0, last = 1;  // where they are drawn
  std::vector<double> ticks = {};

  double share(double value) const {
    if (is_logarithmic)
      return (natural_logarithm(std::max(value, low)) - natural_logarithm(low)) /
             (natural_logarithm(high) - natural_logarithm(low));
    return (value - low) / (high - low);
  }
  double at(double value) const { return first + (last - first) * std::clamp(share(value), 0.0, 1.0); }
};

// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
double round_step(double least) {
  double power = 1;
  while (power > least) power /= 10;
  while (power * 10 <= least) power *= 10;
  for (const double step : round_steps)
    if (power * step >= least)
      return power * step;
  return power * 10;
}

void widen_to_steps(Scale& scale) {
  const double step = round_step((scale.high - scale.low) / wanted_ticks);
  const double first = std::floor(scale.low / step);
  const double last = std::ceil(scale.high / step);
  scale.low = first * step;
  scale.high = last * step;
  for (double i = first; i <= last; ++i) scale.ticks.push_back(i * step);
}

// Over more than two decades powers of ten alone.
void widen_to_decades(Scale& scale) {
  double power = 1;
  while (power > scale.low) power /= 10;
  while (power * 10 <= scale.low) power *= 10;
  const bool has_few = scale.high / scale.low < 100;
  std::vector<double> ticks;
  for (; power <= scale.high * 10; power *= 10)
    for (const double step : {1.0, 2.0, 5.0})
      if (step == 1 || has_few)
        ticks.push_back(power * step);
  const auto first = std::upper_bound(ticks.begin(), ticks.end(), scale.low) - 1;
  const auto last = std::lower_bound(first + 1, ticks.end(), scale.high);
  scale.low = *first;
  scale.high = last == ticks.end() ? ticks.back() : *last;
  scale.ticks.assign(first, last == ticks.end() ? last : last + 1);
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

Range range_of(const Chart& chart, bool is_of_x) {
  Range range;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points) {
      range.add(is_of_x ? point.x : point.y);
      if (point.band) {
        range.add(is_of_x ? point.band->x_low : point.band->y_low);
        range.add(is_of_x ? point.band->x_high : point.band->y_high);
      }
    }
  for (const ChartLimit& limit : chart.limits)
    if (limit.is_of_x == is_of_x && (range.is_empty() || limit.value <= far * range.high))
      range.add(limit.value);
  return range;
}

// Settings stand off the frame.
void place_given_ticks(Scale& scale, const ChartAxis& axis, const Range& range) {
  scale.ticks = axis.ticks;
  if (axis.is_logarithmic) {
    scale.low = range.low / 1.15;
    scale.high = range.high * 1.15;
    return;
  }
  const double margin = std::max((range.high - range.low) * 0.04, 0.5e-3 * std::abs(range.high));
  scale.low = range.low - margin;
  scale.high = range.high + (margin > 0 ? margin : 1);
}

Scale scale_of(const ChartAxis& axis, Range range, double first, double last) {
  Scale scale{.is_logarithmic = axis.is_logarithmic, .first = first, .last = last};
  if (range.is_empty())
    range = {.low = 1, .high = 2};
  if (!axis.ticks.empty()) {
    place_given_ticks(scale, axis, range);
    return scale;
  }
  if (!axis.is_logarithmic && axis.begins_at_zero)
    range.add(0);
  if (range.low == range.high)
    range.high = range.low == 0 ? 1 : range.low + std::abs(range.low);
  scale.low = range.low;
  scale.high = range.high;
  if (axis.is_logarithmic)
    widen_to_decades(scale);
  else
    widen_to_steps(scale);
  return scale;
}

// ---- labels ----

struct Label {
  double x, y;
  std::string text;
  std::string anchor = "start";
};

struct Box {
  double left, top, right, bottom;

  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Letters are some 7 pixels wide and 12 high.
Box box_of(const Label& label) {
  const double wide = 7 * static_cast<double>(label.text.size());
  const double from = label.anchor == "start" ? label.x
                      : label.anchor == "end" ? label.x - wide
                                              : label.x - wide / 2;
  return {.left = from, .top = label.y - 10, .right = from + wide, .bottom = label.y + 2};
}

class LabelPlacer {
 public:
  void keep_clear(double x, double y) { taken_.push_back({x - 4, y - 4, x + 4, y + 4}); }

  // Beside, above or below its dot, wherever there is room; one of two dots that cover each other is told.
  void add(double x, double y, const std::string& text) {
    const Box dot{x - 3, y - 3, x + 3, y + 3};
    if (std::any_of(told_.begin(), told_.end(), [&](const Box& other) { return dot.meets(other); }))
      return;
    for (const Label& label : {Label{x + 8, y - 6, text}, Label{x - 8, y - 6, text, "end"},
                               Label{x, y + 18, text, "middle"}, Label{x, y - 10, text, "middle"}}) {
      const Box box = box_of(label);
      const bool has_room =
          box.left >= left && box.right <= width && box.top >= 0 && box.bottom <= bottom &&
          std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) { return box.meets(other); });
      if (!has_room)
        continue;
      taken_.push_back(box);
      placed_.push_back(label);
      told_.push_back(dot);
      return;
    }
  }
  const std::vector<Label>& placed() const { return placed_; }

 private:
  std::vector<Box> taken_;
  std::vector<Box> told_;  // dots
  std::vector<Label> placed_;
};

// ---- what the template shows ----

std::string words_of(const ChartAxis& axis, double value) {
  const auto named = std::find(axis.ticks.begin(), axis.ticks.end(), value) - axis.ticks.begin();
  const bool is_named = !axis.names.empty() && named < std::ssize(axis.names);
  return axis.name + " " + (is_named ? axis.names[static_cast<std::size_t>(named)] : tick_text(value));
}

std::string words_of(const Chart& chart, const ChartPoint& point) {
  if (!point.title.empty())
    return point.title;
  return words_of(chart.x, point.x) + ": " + words_of(chart.y, point.y);
}

struct Frame {
  Scale x, y;
};

// Of what lies within one pixel's width the first, the lowest, the highest and the last: the line covers the same.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, const Scale& x) {
  const auto column_of = [&](const ChartPoint& point) { return std::floor(x.at(point.x)); };
  const auto is_lower = [](const ChartPoint& one, const ChartPoint& other) { return one.y < other.y; };
  std::vector<ChartPoint> kept;
  for (auto first = points.begin(); first != points.end();) {
    const auto end = std::find_if(
        first, points.end(), [&](const ChartPoint& point) { return column_of(point) != column_of(*first); });
    const auto [lowest, highest] = std::minmax_element(first, end, is_lower);
    for (auto point = first; point != end; ++point)
      if (point == first || point == lowest || point == highest || point + 1 == end)
        kept.push_back(*point);
    first = end;
  }
  return kept;
}

ordered_json line_of(const ChartSeries& series, const Frame& frame) {
  if (!series.has_line || series.points.empty())
    return false;
  std::string text;
  for (const ChartPoint& point : thinned(series.points, frame.x))
    text += place(frame.x.at(point.x)) + "," + place(frame.y.at(point.y)) + " ";
  return text;
}

ordered_json area_of(const ChartSeries& series, const Frame& frame) {
  std::string there;
  std::string back;
  for (const ChartPoint& point : series.points)
    if (series.has_area && point.band) {
      there += place(frame.x.at(point.band->x_high)) + "," + place(frame.y.at(point.band->y_high)) + " ";
      back = place(frame.x.at(point.band->x_low)) + "," + place(frame.y.at(point.band->y_low)) + " " + back;
    }
  return there.empty() ? ordered_json(false) : ordered_json(there + back);
}

ordered_json bands_of(const ChartSeries& series, const Frame& frame) {
  ordered_json bands = ordered_json::array();
  for (const ChartPoint& point : series.points)
    if (!series.has_area && point.band)
      bands.push_back({{"x1", place(frame.x.at(point.band->x_low))},
                       {"y1", place(frame.y.at(point.band->y_low))},
                       {"x2", place(frame.x.at(point.band->x_high))},
                       {"y2", place(frame.y.at(point.band->y_high))}});
  return bands;
}

ordered_json dots_of(const Chart& chart, const ChartSeries& series, const Frame& frame) {
  ordered_json dots = ordered_json::array();
  for (const ChartPoint& point : series.points)
    if (series.has_dots)
      dots.push_back({{"x", place(frame.x.at(point.x))},
                      {"y", place(frame.y.at(point.y))},
                      {"radius", series.points.size() > 200 ? 2.5 : 4.0},
                      {"title", words_of(chart, point)}});
  return dots;
}

ordered_json view_of(const Chart& chart, const ChartSeries& series, const Frame& frame) {
  return {{"hue", series.hue},
          {"is_dashed", series.is_dashed},
          {"is_hollow", series.is_hollow},
          {"area", area_of(series, frame)},
          {"line", line_of(series, frame)},
          {"bands", bands_of(series, frame)},
          {"dots", dots_of(chart, series, frame)}};
}

ordered_json x_ticks(const Chart& chart, const Scale& scale) {
  ordered_json ticks = ordered_json::array();
  double taken = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < scale.ticks.size(); ++i) {
    const double at = scale.at(scale.ticks[i]);
    const std::string text = chart.x.names.empty() ? tick_text(scale.ticks[i]) : chart.x.names[i];
    const double half = 3.5 * static_cast<double>(text.size()) + 4;
    const bool has_room = at - half >= taken;
    if (has_room)
      taken = at + half;
    ticks.push_back({{"at", place(at)},
                     {"below", place(bottom + 5)},
                     {"baseline", place(bottom + 19)},
                     {"tick", has_room ? text : ""}});
  }
  return ticks;
}

ordered_json y_ticks(const Scale& scale) {
  ordered_json ticks = ordered_json::array();
  for (const double tick : scale.ticks) {
    const double at = scale.at(tick);
    ticks.push_back({{"at", place(at)},
                     {"beside", place(left - 8)},
                     {"baseline", place(at + 4)},
                     {"tick", tick_text(tick)}});
  }
  return ticks;
}

ordered_json view_of(const ChartLimit& limit, const Frame& frame) {
  const double at = (limit.is_of_x ? frame.x : frame.y).at(limit.value);
  const bool is_far = limit.is_of_x && at > (left + right) / 2;
  return {{"x1", place(limit.is_of_x ? at : left)},
          {"x2", place(limit.is_of_x ? at : right)},
          {"y1", place(limit.is_of_x ? top : at)},
          {"y2", place(limit.is_of_x ? bottom : at)},
          {"text_x", place(limit.is_of_x ? (is_far ? at - 6 : at + 6) : right)},
          {"text_y", place(limit.is_of_x ? top + 10 : at - 5)},
          {"anchor", limit.is_of_x && !is_far ? "start" : "end"},
          {"limit", limit.value <= (limit.is_of_x ? frame.x : frame.y).high
                        ? limit.name
                        : fmt::format("{}: {}, beyond the axis", limit.name, tick_text(limit.value))}};
}

ordered_json labels_of(const Chart& chart, const Frame& frame) {
  LabelPlacer placer;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points)
      if (series.has_dots)
        placer.keep_clear(frame.x.at(point.x), frame.y.at(point.y));
  // The last series lies above the others, so its labels come first.
  for (auto series = chart.series.rbegin(); series != chart.series.rend(); ++series)
    for (const ChartPoint& point : series->points)
      if (!point.label.empty())
        placer.add(frame.x.at(point.x), frame.y.at(point.y), point.label);
  ordered_json labels = ordered_json::array();
  for (const Label& label : placer.placed())
    labels.push_back(
        {{"x", place(label.x)}, {"y", place(label.y)}, {"anchor", label.anchor}, {"label", label.text}});
  return labels;
}

ordered_json legend_of(const Chart& chart) {
  ordered_json legend = ordered_json::array();
  for (const ChartSeries& series : chart.series)
    if (!series.name.empty())
      legend.push_back({{"series_name", series.name},
                        {"hue", series.hue},
                        {"has_line", series.has_line},
                        {"has_dots", series.has_dots},
                        {"is_dashed", series.is_dashed},
                        {"is_hollow", series.is_hollow}});
  return legend;
}

// ---- what is read ----

// Along the axis, as arrow keys go; of a line without dots what is drawn of it.
std::vector<ChartPoint> points_to_read(const ChartSeries& series, const Frame& frame) {
  std::vector<ChartPoint> points = series.has_dots ? series.points : thinned(series.points, frame.x);
  std::stable_sort(points.begin(), points.end(),
                   [](const ChartPoint& one, const ChartPoint& other) { return one.x < other.x; });
  return points;
}

// What chart.js reads. It is text, whose control characters JSON would hide from whoever writes the page.
std::string readout_of(const Chart& chart, const Frame& frame) {
  const auto pixel = [](double value) { return std::round(value * 10) / 10; };
  ordered_json readout{{"top", top}, {"bottom", bottom}, {"series", ordered_json::array()}};
  for (const ChartSeries& series : chart.series) {
    if (series.is_guide)
      continue;
    ordered_json points = ordered_json::array();
    for (const ChartPoint& point : points_to_read(series, frame))
      points.push_back(
          {pixel(frame.x.at(point.x)), pixel(frame.y.at(point.y)), printable(words_of(chart, point))});
    readout["series"].push_back({{"name", printable(series.name)}, {"points", std::move(points)}});
  }
  return readout.dump();
}

}  // namespace

std::string tick_text(double value) {
  if (value >= 1000 && value < 1e7 && value == std::floor(value))
    return count_text(value);
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

ordered_json to_json(const Chart& chart) {
  const Frame frame{.x = scale_of(chart.x, range_of(chart, true), left, right),
                    .y = scale_of(chart.y, range_of(chart, false), bottom, top)};
  const bool is_cut = !chart.y.is_logarithmic && frame.y.low != 0;
  ordered_json view{{"caption", chart.caption},
                    {"width", width},
                    {"height", height},
                    {"left", place(left)},
                    {"right", place(right)},
                    {"bottom", place(bottom)},
                    {"x_name", chart.x.name},
                    {"x_name_baseline", place(bottom + 42)},
                    {"y_name", chart.y.name + (is_cut ? " (the axis does not begin at 0)" : "")},
                    {"x_ticks", x_ticks(chart, frame.x)},
                    {"y_ticks", y_ticks(frame.y)},
                    {"limits", ordered_json::array()},
                    {"series", ordered_json::array()},
                    {"labels", labels_of(chart, frame)},
                    {"legend", legend_of(chart)},
                    {"readout", readout_of(chart, frame)}};
  for (const ChartLimit& limit : chart.limits) view["limits"].push_back(view_of(limit, frame));
  for (const ChartSeries& series : chart.series) view["series"].push_back(view_of(chart, series, frame));
  return view;
}

}  // namespace lockstep
