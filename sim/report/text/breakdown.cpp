#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

constexpr std::int64_t bar_width = 76;

// Every part ends where its running sum falls, so that the bar is as long as it says.
std::string bar_of(const Breakdown& breakdown, const TextStyle& style) {
  const double whole = std::max(sum(breakdown).in_seconds(), 1e-12);
  std::string bar;
  Duration so_far;
  std::int64_t drawn = 0;
  for (const TimePart& part : time_parts) {
    so_far += breakdown.*part.time;
    const std::int64_t end = std::llround(so_far.in_seconds() / whole * static_cast<double>(bar_width));
    std::string stretch;
    for (; drawn < end; ++drawn) stretch += part.glyph;
    bar += stretch.empty() ? "" : style.coloured(stretch, part.terminal_colour);
  }
  return bar;
}

}  // namespace

std::string breakdown_text(const Report& report, const TextStyle& style) {
  const Breakdown& breakdown = report.breakdown;
  const Duration whole = sum(breakdown);
  TextTable table({Align::left, Align::left, Align::right, Align::right});
  for (const TimePart& part : time_parts) {
    const Duration time = breakdown.*part.time;
    if (time > Duration::zero())
      table.add_row({style.coloured(part.glyph, part.terminal_colour), words(part.key), format_duration(time),
                     percentage(time.in_seconds(), whole.in_seconds())});
  }
  const std::string heading =
      report.told_of ? fmt::format("Where the time of rank {} goes, the last to end", report.told_of->index)
                     : "Where the time goes";
  return style.heading(heading) + indented(bar_of(breakdown, style)) + table.text(section_indent);
}

}  // namespace lockstep
