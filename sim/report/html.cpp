#include "sim/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/collective.h"
#include "sim/report/breakdown_bar.h"
#include "sim/report/page/chart.h"
#include "sim/report/page/lane_chart.h"
#include "sim/report/page/page.h"
#include "sim/report/page/page_text.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

constexpr std::size_t path_items_shown = 20;
constexpr double thinnest_level = 0.08;  // of a link that is hardly used
constexpr std::string_view colour_of_waiting = "#888888";
constexpr std::string_view colour_of_exposed = "#d1495b";

// What lanes show beside parts of time. Whoever cannot tell red from green or blue from yellow tells these apart from
// all parts, on light and on dark.
struct LaneLook {
  std::string_view category;
  std::string_view name;
  std::string_view colour;
};
constexpr std::array lane_looks{
    LaneLook{"communication", "communication", "#85325f"}, LaneLook{"copy", "copy", "#6b4f2a"},
    LaneLook{"loading", "loading", "#6f2ad6"}, LaneLook{"link", "link in use", "#4d6a94"}};
constexpr std::string_view colour_of_hidden = lane_looks[0].colour;

PageCell time_figure(Duration time) {
  return {format_duration(time), ordered_json(time.in_seconds())};
}

PageCell bytes_figure(Bytes bytes) {
  return {format_bytes(bytes), ordered_json(bytes.count())};
}

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

// ---- communication ----

// A row a bucket: a thin line while it is ready and waits for its lane, a bar while it is reduced.
ordered_json bucket_chart(const Report& report) {
  std::vector<PageLane> lanes;
  for (const BucketReport& bucket : report.communication.buckets) {
    const std::string title = fmt::format("bucket {}: {}, {}", bucket.index, format_bytes(bucket.bytes),
                                          format_duration(bucket.end - bucket.start));
    PageLane lane{.name = fmt::format("bucket {}", bucket.index), .spans = {}};
    if (bucket.start > bucket.ready)
      lane.spans.push_back({bucket.ready.in_seconds(), bucket.start.in_seconds(),
                            title + " (waiting for its lane)", std::string(colour_of_waiting), 0.15});
    lane.spans.push_back(
        {bucket.start.in_seconds(), bucket.end.in_seconds(), title,
         std::string(bucket.exposed > Duration::zero() ? colour_of_exposed : colour_of_hidden)});
    lanes.push_back(std::move(lane));
  }
  return lane_chart("When each bucket was reduced", lanes, report.iteration.in_seconds(),
                    format_duration(report.iteration));
}

ordered_json buckets_table(const Report& report) {
  PageTable table("Times count from the start of the iteration", {{"bucket"},
                                                                  {"size"},
                                                                  {"tensors"},
                                                                  {"ready"},
                                                                  {"start"},
                                                                  {"end"},
                                                                  {"algorithm", Kind::words},
                                                                  {"protocol", Kind::words},
                                                                  {"busbw"},
                                                                  {"exposed"}});
  for (const BucketReport& bucket : report.communication.buckets)
    table.add_row({std::to_string(bucket.index), bytes_figure(bucket.bytes),
                   std::to_string(bucket.parameters), time_figure(bucket.ready), time_figure(bucket.start),
                   time_figure(bucket.end), bucket.algorithm, bucket.protocol, format_bandwidth(bucket.busbw),
                   time_cell(bucket.exposed)});
  ordered_json view = table.view();
  if (!view.is_null())
    view["bucket_chart"] = bucket_chart(report);
  return view;
}

// Where more is exchanged than the buckets above.
ordered_json collectives_table(const Report& report) {
  if (report.communication.collectives.size() <= report.communication.buckets.size())
    return {};
  PageTable table("Those that are alike in one row", {{"what", Kind::words},
                                                      {"number"},
                                                      {"collective", Kind::words},
                                                      {"ranks"},
                                                      {"size"},
                                                      {"sent"},
                                                      {"algorithm", Kind::words},
                                                      {"protocol", Kind::words},
                                                      {"active"},
                                                      {"exposed"}});
  for (const CollectiveGroup& group : grouped_alike(report.communication.collectives))
    table.add_row({name_of(group), std::to_string(group.count),
                   std::string(collective_op_name(group.first->op)), std::to_string(group.first->ranks),
                   bytes_figure(group.bytes), bytes_figure(group.sent), group.first->algorithm,
                   group.first->protocol, time_cell(group.active), time_cell(group.exposed)});
  return table.view();
}

ordered_json communication_table(const Report& report) {
  const CommunicationReport& communication = report.communication;
  if (communication.collectives.empty())
    return {};
  PageTable table("Of the critical rank, an iteration", {{"", Kind::words}, {""}});
  table.add_row({"sent by each GPU", bytes_figure(communication.bytes_per_gpu)});
  table.add_row({"collectives active", time_figure(communication.total)});
  table.add_row({"hidden behind computation", time_figure(communication.overlapped)});
  if (!communication.bottleneck_link.empty())
    table.add_row({"bottleneck link", communication.bottleneck_link});
  return table.view();
}

// ---- memory ----

// What is held over the iteration, against what the GPU has.
ordered_json memory_chart(const Report& report) {
  constexpr double gibibyte = 1024.0 * 1024 * 1024;
  const auto size = [](Bytes bytes) { return static_cast<double>(bytes.count()) / gibibyte; };
  ChartSeries held{.name = "held", .points = {}, .has_line = true, .has_dots = false};
  const double whole = report.iteration.in_seconds();
  for (const auto& [time, bytes] : report.memory.track) {
    const double at = std::min(time.in_seconds(), whole);
    if (!held.points.empty())
      held.points.push_back({.x = at, .y = held.points.back().y});
    held.points.push_back({.x = at, .y = size(bytes)});
  }
  if (held.points.empty())
    return {};
  held.points.push_back({.x = whole, .y = held.points.back().y});
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

void add_memory(const Report& report, ordered_json& view) {
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
  add_memory(report, view);
  return render_page("result.html", view);
}

}  // namespace lockstep
