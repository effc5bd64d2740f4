#include "sim/report/communication_section.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/report/lane_look.h"
#include "sim/report/page/lane_chart.h"
#include "sim/report/page_figure.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

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

}  // namespace

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

}  // namespace lockstep
