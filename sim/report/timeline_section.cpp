#include "sim/report/timeline_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/printable.h"
#include "sim/report/breakdown.h"
#include "sim/report/breakdown_bar.h"
#include "sim/report/lane_look.h"
#include "sim/report/page/lane_chart.h"
#include "sim/report/page/page_text.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double thinnest_level = 0.08;  // of a link that is hardly used

const LaneLook* look_of(const std::string& category) {
  const auto found = std::find_if(lane_looks.begin(), lane_looks.end(),
                                  [&](const LaneLook& look) { return look.category == category; });
  return found == lane_looks.end() ? nullptr : &*found;
}

std::string colour_of(const std::string& category) {
  if (const LaneLook* look = look_of(category))
    return std::string(look->colour);
  const auto found = std::find_if(time_parts.begin(), time_parts.end(),
                                  [&](const TimePart& part) { return part.key == category; });
  return std::string(found == time_parts.end() ? colour_of_waiting : found->page_colour);
}

// What the page's script reads: every span, with the look of each category.
std::string detail_text(ordered_json detail) {
  for (ordered_json& name : detail.at("names")) name = printable(name.get<std::string>());
  for (ordered_json& category : detail.at("categories")) {
    const std::string key = category.get<std::string>();
    const LaneLook* look = look_of(key);
    category = {{"name", look == nullptr ? words(key) : std::string(look->name)}, {"colour", colour_of(key)}};
  }
  return detail.dump();
}

LaneSpan lane_span(const ordered_json& span) {
  const double start = span.at("start_s").get<double>();
  const double end = span.at("end_s").get<double>();
  LaneSpan drawn{.start = start,
                 .end = end,
                 .title = fmt::format("{}: {} from {}", span.at("name").get<std::string>(),
                                      duration_text(end - start), duration_text(start)),
                 .colour = colour_of(span.at("category").get<std::string>())};
  if (const auto busy = span.find("busy"); busy != span.end()) {
    drawn.stands = true;
    drawn.thickness = std::max(busy->get<double>(), thinnest_level);
    drawn.title += fmt::format(", {} busy", percentage(busy->get<double>(), 1));
  }
  return drawn;
}

}  // namespace

ordered_json timeline_view(const ordered_json& timeline) {
  if (timeline.is_null())
    return {};
  std::vector<PageLane> lanes;
  ordered_json drawn = ordered_json::object();
  for (const ordered_json& row : timeline.at("rows")) {
    PageLane lane{.name = row.at("name"), .spans = {}};
    for (const ordered_json& span : row.at("spans")) {
      drawn[span.at("category").get<std::string>()] = 1.0;
      lane.spans.push_back(lane_span(span));
    }
    lanes.push_back(std::move(lane));
  }
  const double length = timeline.at("length_s").get<double>();
  ordered_json view = lane_chart("One iteration of the critical rank", lanes, length, duration_text(length));
  if (!view.is_null()) {
    view.update(breakdown_legend({drawn}));
    for (const LaneLook& look : lane_looks)
      if (drawn.contains(look.category))
        view["swatches"].push_back({{"swatch", look.colour}, {"part", look.name}});
    view["detail"] = detail_text(timeline.at("detail"));
  }
  return view;
}

}  // namespace lockstep
