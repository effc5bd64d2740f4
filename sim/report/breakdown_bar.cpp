#include "sim/report/breakdown_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/breakdown.h"
#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

double seconds_of(const ordered_json& breakdown, const TimePart& part) {
  const auto found = breakdown.find(part.key);
  return found == breakdown.end() || found->is_null() ? 0 : found->get<double>();
}

}  // namespace

std::vector<BarPart> breakdown_bar(const ordered_json& breakdown, double whole) {
  std::vector<BarPart> bar;
  double left = 0;
  for (const TimePart& part : time_parts) {
    const double seconds = seconds_of(breakdown, part);
    if (seconds <= 0 || whole <= 0)
      continue;
    const double width = 100 * seconds / whole;
    bar.push_back({.left = left,
                   .width = width,
                   .title = fmt::format("{}: {}", words(part.key), duration_text(seconds)),
                   .colour = std::string(part.page_colour)});
    left += width;
  }
  return bar;
}

double total_seconds(const ordered_json& breakdown) {
  double total = 0;
  for (const TimePart& part : time_parts) total += seconds_of(breakdown, part);
  return total;
}

ordered_json breakdown_legend(const std::vector<ordered_json>& breakdowns) {
  ordered_json view{{"swatches", ordered_json::array()}};
  for (const TimePart& part : time_parts)
    if (std::any_of(breakdowns.begin(), breakdowns.end(),
                    [&](const ordered_json& breakdown) { return seconds_of(breakdown, part) > 0; }))
      view["swatches"].push_back({{"swatch", part.page_colour}, {"part", words(part.key)}});
  return view;
}

}  // namespace lockstep
