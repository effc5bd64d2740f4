#include "sim/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/collective.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

constexpr double drawing_width = 900;
constexpr double tallest_row = 14;
constexpr double tallest_drawing = 420;
constexpr std::size_t path_items_shown = 20;

constexpr std::string_view style_sheet = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2rem; font-size: 1.1rem; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
th { font-weight: 600; border-bottom: 1px solid #8886; } td:first-child, th:first-child, .left { text-align: left; }
.headline td { font-size: 1.1rem; } .headline td:first-child { color: #888; }
.wide { overflow-x: auto; } svg { width: 100%; height: auto; } svg text { font: 11px system-ui; fill: #888; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .5em; }
.bad { color: #d1495b; font-weight: 600; } .good { color: #5b9e4d; font-weight: 600; }
pre { overflow-x: auto; font-size: 12px; }
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : printable(text)) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

// Cells are escaped here unless they are already markup.
std::string row(const std::vector<std::string>& cells, std::string_view tag = "td") {
  std::string result = "<tr>";
  for (const std::string& cell : cells) result += fmt::format("<{0}>{1}</{0}>", tag, cell);
  return result + "</tr>\n";
}

std::string heading(std::string_view text) {
  return fmt::format("<h2>{}</h2>\n", escaped(text));
}

std::string headline(const Report& report) {
  std::string time = fmt::format("<b>{}</b>", format_duration(report.iteration));
  if (report.times.low && report.times.high) {
    time += fmt::format(" ({} to {}: 10th to 90th percentile)", format_duration(*report.times.low),
                        format_duration(*report.times.high));
  }
  const auto samples = per_second(report.throughput.samples_per_iteration, report.iteration);
  std::string result = "<table class=headline>\n" + row({"iteration time", time});
  result += row({"samples/s", samples ? fmt::format("{:.1f}", *samples) : "unknown"});
  if (report.throughput.tokens_per_iteration) {
    const auto tokens = per_second(*report.throughput.tokens_per_iteration, report.iteration);
    result += row({"tokens/s", tokens ? fmt::format("{:.1f}", *tokens) : "unknown"});
  }
  result +=
      row({"scaling efficiency", report.scaling.efficiency ? percentage(*report.scaling.efficiency, 1)
                                                           : "unknown: " + escaped(report.scaling.reason)});
  result += row({"MFU", report.throughput.mfu ? percentage(*report.throughput.mfu, 1) : "unknown"});
  return result + "</table>\n";
}

std::string rectangle(double left, double top, double width, double height, std::string_view colour,
                      const std::string& title) {
  if (width <= 0)
    return "";
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
      "fill=\"{}\"><title>{}</title></rect>\n",
      left, top, width, height, colour, escaped(title));
}

std::string drawing(double height, const std::string& content) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n{}</svg>\n", drawing_width, height,
                     content);
}

std::string breakdown(const Report& report) {
  const double whole = std::max(report.iteration.in_seconds(), 1e-12);
  std::string bar;
  std::string table;
  double left = 0;
  for (const TimePart& part : time_parts) {
    const Duration length = report.breakdown.*part.time;
    if (length == Duration::zero())
      continue;
    const std::string name = words(part.key);
    const std::string time = format_duration(length);
    const double width = length.in_seconds() / whole * drawing_width;
    bar += rectangle(left, 0, width, 28, part.page_colour, name + ": " + time);
    left += width;
    const std::string swatch =
        fmt::format("<span class=swatch style=\"background:{}\"></span>", part.page_colour);
    table += row({swatch + name, time, percentage(length.in_seconds(), whole)});
  }
  return heading("Where the time goes") + drawing(28, bar) + "<table>\n" + table + "</table>\n";
}

// A row a bucket: a thin line while it is ready and waits for its lane, a bar while it is reduced.
std::string bucket_drawing(const Report& report) {
  const double whole = std::max(report.iteration.in_seconds(), 1e-12);
  const double row_height =
      std::min(tallest_row, tallest_drawing / static_cast<double>(report.communication.buckets.size()));
  const auto place = [&](Duration time) { return time.in_seconds() / whole * drawing_width; };
  std::string content;
  double top = 0;
  for (const BucketReport& bucket : report.communication.buckets) {
    const std::string title = fmt::format("bucket {}: {}, {}", bucket.index, format_bytes(bucket.bytes),
                                          format_duration(bucket.end - bucket.start));
    content += rectangle(place(bucket.ready), top + 0.45 * row_height, place(bucket.start - bucket.ready),
                         0.1 * row_height, "#888888", title + " (waiting for its lane)");
    content += rectangle(place(bucket.start), top + 0.1 * row_height,
                         std::max(place(bucket.end - bucket.start), 1.0), 0.8 * row_height,
                         bucket.exposed > Duration::zero() ? "#d1495b" : "#3b6fb6", title);
    top += row_height;
  }
  content += fmt::format(
      "<text x=\"0\" y=\"{0:.2f}\">0</text><text x=\"{1:.2f}\" y=\"{0:.2f}\" "
      "text-anchor=\"end\">{2}</text>\n",
      top + 14, drawing_width, format_duration(report.iteration));
  return drawing(top + 18, content);
}

std::string buckets(const Report& report) {
  if (report.communication.buckets.empty())
    return "";
  std::string table =
      row({"bucket", "size", "tensors", "ready", "start", "end", "algorithm", "protocol", "busbw", "exposed"},
          "th");
  for (const BucketReport& bucket : report.communication.buckets) {
    table += row({std::to_string(bucket.index), format_bytes(bucket.bytes), std::to_string(bucket.parameters),
                  format_duration(bucket.ready), format_duration(bucket.start), format_duration(bucket.end),
                  escaped(bucket.algorithm), escaped(bucket.protocol), format_bandwidth(bucket.busbw),
                  time_cell(bucket.exposed)});
  }
  return heading("Gradient buckets") +
         "<p>When each bucket was reduced; red where the GPU stood still for part of it.</p>\n" +
         bucket_drawing(report) + "<div class=wide><table>\n" + table + "</table></div>\n";
}

// Where more is exchanged than the buckets above.
std::string collectives(const Report& report) {
  if (report.communication.collectives.size() <= report.communication.buckets.size())
    return "";
  std::string table = row(
      {"what", "number", "collective", "ranks", "size", "sent", "algorithm", "protocol", "active", "exposed"},
      "th");
  for (const CollectiveGroup& group : grouped_alike(report.communication.collectives)) {
    table += row({escaped(name_of(group)), std::to_string(group.count),
                  std::string(collective_op_name(group.first->op)), std::to_string(group.first->ranks),
                  format_bytes(group.bytes), format_bytes(group.sent), escaped(group.first->algorithm),
                  escaped(group.first->protocol), time_cell(group.active), time_cell(group.exposed)});
  }
  return heading("Collectives of one iteration") + "<div class=wide><table>\n" + table + "</table></div>\n";
}

std::string communication(const Report& report) {
  if (report.communication.collectives.empty())
    return "";
  std::string table =
      row({"sent by each GPU", format_bytes(report.communication.bytes_per_gpu) + " per iteration"});
  table += row({"collectives active", format_duration(report.communication.total)});
  table += row({"hidden behind computation", format_duration(report.communication.overlapped)});
  if (!report.communication.bottleneck_link.empty())
    table += row({"bottleneck link", escaped(report.communication.bottleneck_link)});
  return heading("Communication") + "<table>\n" + table + "</table>\n";
}

// What is held over the iteration, against what the GPU has.
std::string memory_drawing(const Report& report) {
  constexpr double height = 120;
  const MemoryReport& memory = report.memory;
  const double whole = std::max(report.iteration.in_seconds(), 1e-12);
  const double most = static_cast<double>(std::max(memory.peak.total(), memory.capacity).count());
  const auto y = [&](Bytes bytes) { return height - static_cast<double>(bytes.count()) / most * height; };
  std::string line;
  double last = height;
  for (const auto& [time, bytes] : memory.track) {
    const double x = std::clamp(time.in_seconds() / whole, 0.0, 1.0) * drawing_width;
    line += fmt::format("{0:.1f},{1:.1f} {0:.1f},{2:.1f} ", x, last, y(bytes));
    last = y(bytes);
  }
  line += fmt::format("{0:.1f},{1:.1f} {0:.1f},{2:.1f}", drawing_width, last, height);
  return drawing(height + 18,
                 fmt::format("<polygon points=\"{}\" fill=\"#3b6fb6\"/>\n<line x1=\"0\" x2=\"{:.0f}\" "
                             "y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#d1495b\"/>\n"
                             "<text x=\"0\" y=\"{:.0f}\">one iteration; red: what the GPU has</text>\n",
                             line, drawing_width, y(memory.capacity), y(memory.capacity), height + 14));
}

std::string remedies(const MemoryReport& memory) {
  if (memory.remedies.empty())
    return "";
  std::string table = row({"what would make it fit", "total", ""}, "th");
  for (const MemoryRemedy& remedy : memory.remedies)
    table += row({escaped(describe(remedy)), format_bytes(remedy.total), remedy.fits ? "fits" : "does not"});
  return "<table>\n" + table + "</table>\n<p>" +
         escaped(describe_hopelessness(memory.remedies, memory.capacity)) + "</p>\n";
}

std::string memory(const Report& report) {
  const MemoryUse& use = report.memory.peak;
  const bool fits = report.memory.fits();
  const std::string fitting = report.memory.counts_activations
                                  ? "<p class=good>fits</p>\n"
                                  : "<p class=good>fits without its activations, which the model does not "
                                    "tell</p>\n";
  std::string table;
  for (const MemoryPart& part : memory_parts) table += row({words(part.key), format_bytes(use.*part.bytes)});
  table += row({"total", format_bytes(use.total())});
  table += row({"capacity", format_bytes(report.memory.capacity)});
  const std::string moment =
      report.memory.moment.empty()
          ? ""
          : fmt::format("<p>Most {} into the iteration, {}.</p>\n",
                        format_duration(report.memory.since_start), escaped(report.memory.moment));
  return heading("Memory of one GPU") + memory_drawing(report) + moment + "<table>\n" + table + "</table>\n" +
         (fits ? fitting : "<p class=bad>does not fit</p>\n") + remedies(report.memory);
}

std::string critical_path(const Report& report) {
  std::vector<PathItem> items = report.critical_path;
  std::stable_sort(items.begin(), items.end(), [](const PathItem& left, const PathItem& right) {
    return left.end - left.start > right.end - right.start;
  });
  items.resize(std::min(items.size(), path_items_shown));
  std::string table = row({"what", "length", "from"}, "th");
  for (const PathItem& item : items)
    table += row({escaped(item.what), format_duration(item.end - item.start), format_duration(item.start)});
  return heading("Critical path: its longest pieces") + "<table>\n" + table + "</table>\n";
}

std::string warnings(const Report& report) {
  std::string items;
  for (const std::string& warning : report.warnings) items += "<li>" + escaped(warning) + "</li>\n";
  return items.empty() ? "" : heading("Warnings") + "<ul>\n" + items + "</ul>\n";
}

std::string resolved(const LoadedScenario& scenario) {
  return heading("Scenario") + "<details><summary>every value, defaults filled in</summary><pre>" +
         escaped(scenario.resolved.dump(2)) + "</pre></details>\n";
}

}  // namespace

std::string to_html(const Report& report, const LoadedScenario& scenario) {
  const std::string name = escaped(report.name);
  return "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" + name +
         "</title><style>" + std::string(style_sheet) + "</style></head>\n<body>\n<h1>" + name +
         "</h1>\n<p>" + escaped(summary_of(scenario)) + "</p>\n" + headline(report) + breakdown(report) +
         buckets(report) + collectives(report) + communication(report) + memory(report) +
         critical_path(report) + warnings(report) + resolved(scenario) + "</body>\n</html>\n";
}

}  // namespace lockstep
