#include "sim/report/page/lane_chart.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double lanes_left = 110;
constexpr double lanes_right = 890;
constexpr double tallest_lane = 22;
constexpr double tallest_lanes = 420;
constexpr double readable_lane = 12;  // is named
constexpr double thinnest_span = 0.5;

std::string pixels(double value) {
  return fmt::format("{:.2f}", value);
}

double across(double time, double whole) {
  return lanes_left + (lanes_right - lanes_left) * std::clamp(time / whole, 0.0, 1.0);
}

ordered_json view_of(const LaneSpan& span, double y, double lane_height, double whole) {
  const double from = across(span.start, whole);
  const double above = span.stands ? 0.9 - 0.8 * span.thickness : 0.5 - 0.4 * span.thickness;
  return {{"x", pixels(from)},
          {"y", pixels(y + lane_height * above)},
          {"width", pixels(std::max(across(span.end, whole) - from, thinnest_span))},
          {"height", pixels(lane_height * 0.8 * span.thickness)},
          {"colour", span.colour},
          {"title", span.title}};
}

}  // namespace

ordered_json lane_chart(const std::string& caption, const std::vector<PageLane>& lanes, double whole,
                        const std::string& end_text) {
  if (lanes.empty() || whole <= 0)
    return {};
  const double lane_height = std::min(tallest_lane, tallest_lanes / static_cast<double>(lanes.size()));
  ordered_json view{{"caption", caption}, {"end", end_text}, {"lanes", ordered_json::array()}};
  double y = 0;
  for (const PageLane& lane : lanes) {
    ordered_json row{{"lane", lane_height >= readable_lane ? lane.name : ""},
                     {"baseline", pixels(y + lane_height / 2 + 4)},
                     {"spans", ordered_json::array()}};
    for (const LaneSpan& span : lane.spans) row["spans"].push_back(view_of(span, y, lane_height, whole));
    view["lanes"].push_back(std::move(row));
    y += lane_height;
  }
  view["bottom"] = pixels(y + 2);
  view["text_baseline"] = pixels(y + 17);
  view["height"] = pixels(y + 24);
  return view;
}

}  // namespace lockstep
