#include "sim/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/communication_section.h"
#include "sim/report/memory_section.h"
#include "sim/report/page/page.h"
#include "sim/report/page_figure.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"
#include "sim/report/timeline_section.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

constexpr std::size_t path_items_shown = 20;

// ---- the first screen ----

PageFact rate_fact(const std::string& name, std::int64_t work, Duration iteration) {
  const auto rate = per_second(work, iteration);
  return {name, rate ? PageCell(fmt::format("{:.1f}", *rate), ordered_json(*rate)) : PageCell("unknown")};
}

PageFact share_fact(const std::string& name, const std::optional<double>& share,
                    const std::string& reason = {}) {
  return {name, share ? PageCell(percentage(*share, 1), ordered_json(*share)) : PageCell("unknown"),
          share ? "" : reason};
}

std::vector<PageFact> headline(const Report& report) {
  PageFact time{"iteration time", time_figure(report.iteration)};
  if (report.times.low && report.times.high)
    time.beside = fmt::format("{} to {}: 10th to 90th percentile", format_duration(*report.times.low),
                              format_duration(*report.times.high));
  std::vector<PageFact> facts{
      std::move(time), rate_fact("samples/s", report.throughput.samples_per_iteration, report.iteration)};
  if (report.throughput.tokens_per_iteration)
    facts.push_back(rate_fact("tokens/s", *report.throughput.tokens_per_iteration, report.iteration));
  const std::string reason = report.scaling.reason.empty() ? "" : "unknown: " + report.scaling.reason;
  facts.push_back(share_fact("scaling efficiency", report.scaling.efficiency, reason));
  facts.push_back(share_fact("MFU", report.throughput.mfu));
  return facts;
}

// ---- time ----

ordered_json breakdown_table(const Report& report) {
  const double whole = report.iteration.in_seconds();
  PageTable table("Parts of an iteration of the critical rank; they add up to it",
                  {{"part", Kind::words}, {"time"}, {"share"}, {"", Kind::bar}});
  double left = 0;
  for (const TimePart& part : time_parts) {
    const Duration time = report.breakdown.*part.time;
    if (time == Duration::zero() || whole <= 0)
      continue;
    const double width = 100 * time.in_seconds() / whole;
    PageCell name(words(part.key));
    name.swatch = part.page_colour;
    table.add_row({name, time_figure(time), percentage(time.in_seconds(), whole),
                   std::vector<BarPart>{{.left = left,
                                         .width = width,
                                         .title = words(part.key),
                                         .colour = std::string(part.page_colour)}}});
    left += width;
  }
  return table.view();
}

// ---- what it rests on ----

ordered_json path_table(const Report& report) {
  std::vector<PathItem> items = report.critical_path;
  std::stable_sort(items.begin(), items.end(), [](const PathItem& left, const PathItem& right) {
    return left.end - left.start > right.end - right.start;
  });
  items.resize(std::min(items.size(), path_items_shown));
  PageTable table("Longest first", {{"what", Kind::words}, {"length"}, {"from"}});
  for (const PathItem& item : items)
    table.add_row({item.what, time_figure(item.end - item.start), time_figure(item.start)});
  return table.view();
}

}  // namespace

std::string to_html(const Report& report, const LoadedScenario& scenario, const ordered_json& timeline) {
  ordered_json view{{"title", report.name},
                    {"kind", "Lockstep: prediction"},
                    {"subtitle", summary_of(scenario)},
                    {"breakdown", breakdown_table(report)},
                    {"timeline", timeline_view(timeline)},
                    {"buckets", buckets_table(report)},
                    {"collectives", collectives_table(report)},
                    {"communication", communication_table(report)},
                    {"critical_path", path_table(report)},
                    {"resolved", scenario.resolved.dump(2)}};
  view["has_timeline"] = !view["timeline"].is_null();
  view.update(facts_view(headline(report)));
  view.update(warnings_view(report.warnings));
  view.update(memory_view(report));
  return render_page("result.html", view);
}

}  // namespace lockstep
