#include <fmt/format.h>

#include <algorithm>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/report/report_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

constexpr std::size_t most_buckets_shown = 12;
constexpr std::size_t buckets_at_each_end = 5;

std::vector<std::string> bucket_cells(const BucketReport& bucket) {
  return {std::to_string(bucket.index),
          format_bytes(bucket.bytes),
          std::to_string(bucket.parameters),
          format_duration(bucket.ready),
          format_duration(bucket.start),
          format_duration(bucket.end),
          bucket.algorithm,
          bucket.protocol,
          format_bandwidth(bucket.busbw),
          time_cell(bucket.exposed)};
}

// What a long list leaves out.
std::string middle_note(const std::vector<BucketReport>& buckets) {
  Bytes bytes;
  Duration exposed;
  for (std::size_t bucket = buckets_at_each_end; bucket < buckets.size() - buckets_at_each_end; ++bucket) {
    bytes += buckets[bucket].bytes;
    exposed += buckets[bucket].exposed;
  }
  return fmt::format("... {} more: {}, {} exposed ...", buckets.size() - 2 * buckets_at_each_end,
                     format_bytes(bytes), format_duration(exposed));
}

// The busiest of many.
std::string busiest_text(const std::vector<ServerReport>& servers, Duration iteration) {
  const auto by_work = [](const ServerReport& a, const ServerReport& b) { return a.busy < b.busy; };
  const auto busiest = std::max_element(servers.begin(), servers.end(), by_work);
  return fmt::format(
      "number {}: {} in, {} out, {} at work ({}), {} of memory", busiest - servers.begin(),
      format_bytes(busiest->bytes_in), format_bytes(busiest->bytes_out), format_duration(busiest->busy),
      percentage(busiest->busy.in_seconds(), iteration.in_seconds()), format_bytes(busiest->memory));
}

}  // namespace

std::string buckets_text(const std::vector<BucketReport>& buckets, const TextStyle& style) {
  if (buckets.empty())
    return "";
  TextTable table({Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
                   Align::left, Align::left, Align::right, Align::right});
  table.add_row(
      {"bucket", "size", "tensors", "ready", "start", "end", "algorithm", "protocol", "busbw", "exposed"});
  const bool is_long = buckets.size() > most_buckets_shown;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const bool is_middle = bucket >= buckets_at_each_end && bucket < buckets.size() - buckets_at_each_end;
    if (!is_long || !is_middle)
      table.add_row(bucket_cells(buckets[bucket]));
    else if (bucket == buckets_at_each_end)
      table.add_note(middle_note(buckets));
  }
  return style.heading(
             fmt::format("Gradient buckets ({}), times from the start of the iteration", buckets.size())) +
         table.text(section_indent);
}

std::string collectives_text(const CommunicationReport& communication, const TextStyle& style) {
  std::vector<CollectiveReport> listed = communication.collectives;
  // A cut model has thousands, told by dimension.
  std::erase_if(
      listed, [](const CollectiveReport& collective) { return collective.payload == Payload::activations; });
  if (listed.size() <= communication.buckets.size())
    return "";
  return style.heading(fmt::format("Collectives ({}) of one iteration", listed.size())) +
         to_text(grouped_alike(listed), section_indent);
}

std::string communication_text(const CommunicationReport& communication, Duration iteration,
                               const TextStyle& style) {
  const std::vector<ServerReport>& servers = communication.servers;
  if (communication.collectives.empty() && servers.empty())
    return "";
  const Duration active = communication.total;
  const Duration hidden = communication.overlapped;
  TextTable table({Align::left, Align::left});
  table.add_row({"sent by each GPU", format_bytes(communication.bytes_per_gpu) + " per iteration"});
  table.add_row({servers.empty() ? "collectives active" : "messages under way", format_duration(active)});
  table.add_row(
      {"hidden behind computation", fmt::format("{} ({})", format_duration(hidden),
                                                percentage(hidden.in_seconds(), active.in_seconds()))});
  if (!communication.bottleneck_link.empty())
    table.add_row({"bottleneck link", printable_name(communication.bottleneck_link)});
  if (!servers.empty()) {
    table.add_row({"servers", std::to_string(servers.size())});
    table.add_row({"busiest server", busiest_text(servers, iteration)});
  }
  return style.heading("Communication") + table.text(section_indent);
}

std::string dimensions_text(const CommunicationReport& communication, Duration iteration,
                            const TextStyle& style) {
  if (communication.dimensions.size() < 2)
    return "";
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"dimension", "calls", "sent", "active", "exposed", "of the iteration"});
  for (const DimensionReport& dimension : communication.dimensions)
    table.add_row({dimension.name, std::to_string(dimension.calls), format_bytes(dimension.sent),
                   format_duration(dimension.active), time_cell(dimension.exposed),
                   percentage(dimension.exposed.in_seconds(), iteration.in_seconds())});
  return style.heading("Communication by dimension of the layout, of one rank") + table.text(section_indent);
}

}  // namespace lockstep
