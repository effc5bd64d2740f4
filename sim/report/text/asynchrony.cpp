#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

constexpr std::int64_t histogram_width = 50;

std::string histogram_of(const StalenessReport& staleness) {
  std::int64_t most = 1;
  for (const StalenessBar& bar : staleness.histogram) most = std::max(most, bar.updates);
  TextTable table({Align::right, Align::right, Align::left});
  for (const StalenessBar& bar : staleness.histogram) {
    const std::int64_t length = (bar.updates * histogram_width + most - 1) / most;
    const std::string range =
        bar.from == bar.to ? std::to_string(bar.from) : fmt::format("{}-{}", bar.from, bar.to);
    table.add_row({range, grouped(bar.updates), std::string(static_cast<std::size_t>(length), '#')});
  }
  return indented("staleness, updates") + table.text(section_indent);
}

void add_busiest(const std::vector<AsynchronousServer>& servers, TextTable& table) {
  const auto busiest = std::max_element(servers.begin(), servers.end(),
                                        [](const AsynchronousServer& left, const AsynchronousServer& right) {
                                          return left.utilisation < right.utilisation;
                                        });
  if (busiest != servers.end())
    table.add_row({"busiest server",
                   percentage(busiest->utilisation, 1) + " busy, holds " + format_bytes(busiest->bytes)});
}

}  // namespace

std::string asynchrony_text(const AsynchronyReport& asynchrony, const TextStyle& style) {
  const StalenessReport& staleness = asynchrony.staleness;
  TextTable table({Align::left, Align::left});
  table.add_row({"updates", fmt::format("{:.4g} a second", asynchrony.updates_per_s)});
  table.add_row({"staleness", fmt::format("mean {:.2f}, median {}, 95 % {}, at most {} updates",
                                          staleness.mean, staleness.p50, staleness.p95, staleness.maximum)});
  table.add_row(
      {"waiting for turns or bound", percentage(asynchrony.waiting_fraction, 1) + " of the workers' time"});
  table.add_row({"updates that overlapped", grouped(asynchrony.conflicts)});
  add_busiest(asynchrony.servers, table);
  return style.heading(fmt::format("Asynchrony: {} workers, {} updates measured", asynchrony.workers,
                                   grouped(asynchrony.updates))) +
         table.text(section_indent) + histogram_of(staleness);
}

}  // namespace lockstep
