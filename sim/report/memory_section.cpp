#include "sim/report/memory_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/report/page/chart.h"
#include "sim/report/page_figure.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

// What is held over the iteration, against what the GPU has.
ordered_json memory_chart(const Report& report) {
  constexpr double gibibyte = 1024.0 * 1024 * 1024;
  const auto size = [](Bytes bytes) { return static_cast<double>(bytes.count()) / gibibyte; };
  ChartSeries held{.name = "held", .points = {}, .has_line = true, .has_dots = false};
  const double whole = report.iteration.in_seconds();
  for (const auto& [time, bytes] : report.memory.track) {
    const double at = std::min(time.in_seconds(), whole);
    if (!held.points.empty())
      held.points.push_back({.x = at, .y = held.points.back().y, .title = held.points.back().title});
    held.points.push_back({.x = at,
                           .y = size(bytes),
                           .title = fmt::format("{} from {}", format_bytes(bytes), format_duration(time))});
  }
  if (held.points.empty())
    return {};
  held.points.push_back({.x = whole, .y = held.points.back().y, .title = held.points.back().title});
  return to_json(Chart{.caption = "What is held over one iteration",
                       .x = {.name = "time [s]"},
                       .y = {.name = "memory [GiB]"},
                       .series = {std::move(held)},
                       .limits = {{size(report.memory.capacity), "what the GPU has", false}}});
}

ordered_json memory_table(const Report& report) {
  const MemoryUse& use = report.memory.peak;
  const auto most = static_cast<double>(std::max(use.total(), report.memory.capacity).count());
  PageTable table("At its most", {{"", Kind::words}, {"size"}, {"", Kind::bar}});
  const auto add = [&](const std::string& name, Bytes bytes) {
    const double width = most > 0 ? 100 * static_cast<double>(bytes.count()) / most : 0;
    table.add_row(
        {name, bytes_figure(bytes), std::vector<BarPart>{{.left = 0, .width = width, .title = name}}});
  };
  for (const MemoryPart& part : memory_parts) add(words(part.key), use.*part.bytes);
  add("total", use.total());
  add("capacity", report.memory.capacity);
  return table.view();
}

ordered_json remedies_table(const MemoryReport& memory) {
  PageTable table("What would make it fit", {{"change", Kind::long_words}, {"total"}, {"", Kind::words}});
  for (const MemoryRemedy& remedy : memory.remedies)
    table.add_row({describe(remedy), bytes_figure(remedy.total), remedy.fits ? "fits" : "does not"});
  return table.view();
}

}  // namespace

ordered_json memory_view(const Report& report) {
  ordered_json view;
  const MemoryReport& memory = report.memory;
  view["memory_style"] = memory.fits() ? "good" : "bad";
  view["memory_verdict"] = !memory.fits() ? "does not fit"
                           : memory.counts_activations
                               ? "fits"
                               : "fits without its activations, which the model does not tell";
  view["memory_moment"] = memory.moment.empty()
                              ? ""
                              : fmt::format("Most {} into the iteration, {}.",
                                            format_duration(memory.since_start), memory.moment);
  view["memory_chart"] = memory_chart(report);
  view["memory"] = memory_table(report);
  view["remedies"] = remedies_table(memory);
  view["hopelessness"] =
      memory.remedies.empty() ? "" : describe_hopelessness(memory.remedies, memory.capacity);
  return view;
}

}  // namespace lockstep
