#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/report/report_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

std::string band_text(const IterationTimes& times) {
  if (!times.low || !times.high)
    return "";
  return fmt::format("   ({} to {}: 10th to 90th percentile)", format_duration(*times.low),
                     format_duration(*times.high));
}

std::string rate_text(std::int64_t per_iteration, Duration iteration, std::string_view unit) {
  const auto value = per_second(per_iteration, iteration);
  if (!value)
    return "unknown";
  const bool is_small = *value < 100;
  return is_small ? fmt::format("{:.2f} {}/s", *value, unit)
                  : fmt::format("{} {}/s", grouped(std::llround(*value)), unit);
}

std::string throughput_text(const Throughput& throughput, Duration iteration) {
  std::string text = rate_text(throughput.samples_per_iteration, iteration, "samples");
  if (throughput.tokens_per_iteration)
    text += "   " + rate_text(*throughput.tokens_per_iteration, iteration, "tokens");
  return text;
}

std::string scaling_text(const Scaling& scaling) {
  return scaling.efficiency ? percentage(*scaling.efficiency, 1) + " of linear from one GPU"
                            : "unknown: " + scaling.reason;
}

std::string spread_text(const IterationTimes& times) {
  return fmt::format("p5 {}, p50 {}, p95 {}, p99 {}, longest {}", format_duration(times.p5),
                     format_duration(times.p50), format_duration(times.p95), format_duration(times.p99),
                     format_duration(times.longest));
}

std::string waiting_text(const Waiting& waiting, Duration iteration) {
  return fmt::format("{} of an iteration on average over all ranks, {} at most",
                     percentage(waiting.mean.in_seconds(), iteration.in_seconds()),
                     percentage(waiting.max.in_seconds(), iteration.in_seconds()));
}

std::string timeout_text(const TimedOut& timed_out) {
  return fmt::format("in iteration {}: {} timed out after {}", timed_out.iteration,
                     printable_name(timed_out.collective), format_duration(timed_out.waited));
}

std::string range_text(const LogRange& range) {
  const auto percent = [](double end) {
    return static_cast<double>((to_ratio(end) - Ratio::one()).parts_per_million()) / 1e4;
  };
  return fmt::format("{:+.1f} to {:+.1f} %", percent(range.low), percent(range.high));
}

std::string sources_text(const BandParts& band) {
  std::vector<std::string_view> names;
  for (const ErrorSource& source : band.sources) names.push_back(source.name);
  std::string text = "measured again " + range_text(band.again);
  if (!names.empty())
    text +=
        fmt::format(", computing {} ({})", range_text(band.computing_of_iteration), fmt::join(names, "; "));
  if (band.host_of_iteration.high > 0 || band.host_of_iteration.low < 0)
    text += ", the host " + range_text(band.host_of_iteration);
  if (band.communication_of_iteration.high > 0 || band.communication_of_iteration.low < 0)
    text += ", communication " + range_text(band.communication_of_iteration);
  return text;
}

void add_disturbance(const Report& report, TextTable& table) {
  // A picosecond of rounding is no variation.
  if (report.times.longest - report.times.p5 > Duration::nanoseconds(1))
    table.add_row({"iterations vary", spread_text(report.times)});
  const Disturbance& disturbance = report.disturbance;
  if (disturbance.waiting.max > Duration::zero())
    table.add_row({"waiting for slower ranks", waiting_text(disturbance.waiting, report.iteration)});
  if (disturbance.timed_out)
    table.add_row({"ended", timeout_text(*disturbance.timed_out)});
}

}  // namespace

std::string headline_text(const Report& report, const LoadedScenario& scenario, const TextStyle& style) {
  TextTable table({Align::left, Align::left});
  table.add_row({"iteration time", style.bold(format_duration(report.iteration)) + band_text(report.times)});
  if (report.band)
    table.add_row({"may be off by", sources_text(*report.band)});
  table.add_row({"throughput", throughput_text(report.throughput, report.iteration)});
  table.add_row({"scaling efficiency", scaling_text(report.scaling)});
  table.add_row({"MFU", report.throughput.mfu ? percentage(*report.throughput.mfu, 1) : "unknown"});
  add_disturbance(report, table);
  return style.bold(printable_name(report.name)) + "\n" + printable_name(summary_of(scenario)) + "\n\n" +
         table.text(section_indent);
}

}  // namespace lockstep
