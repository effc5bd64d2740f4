#include "sim/report/server_traffic.h"

#include <algorithm>

#include "sim/training/shards.h"

namespace lockstep {
namespace {

bool is_message(const Communication& communication) {
  return communication.direction != Direction::exchanged;
}

std::vector<Stretch> united(std::vector<Stretch> stretches) {
  const auto by_start = [](const Stretch& a, const Stretch& b) { return a.start < b.start; };
  std::sort(stretches.begin(), stretches.end(), by_start);
  std::vector<Stretch> apart;
  for (const Stretch& stretch : stretches)
    if (!apart.empty() && stretch.start <= apart.back().end)
      apart.back().end = std::max(apart.back().end, stretch.end);
    else
      apart.push_back(stretch);
  return apart;
}

Duration busy_time(const Run& run, std::uint32_t server) {
  std::vector<Stretch> work;
  for (std::uint32_t op = run.iterations[1].first.index; op < run.plan.size(); ++op) {
    const Lane& lane = run.plan.lanes[run.plan.lane[op]];
    if (lane.kind == LaneKind::host && lane.index == server && run.timeline.end[op] > run.timeline.start[op])
      work.push_back({run.timeline.start[op], run.timeline.end[op], OpId{op}});
  }
  return total(united(std::move(work)));
}

}  // namespace

std::vector<ServerReport> report_servers(const Run& run, const Job& job) {
  std::vector<ServerReport> servers;
  const auto iterations = static_cast<std::int64_t>(run.iterations.size() - 1);
  for (std::size_t iteration = 1; iteration < run.iterations.size(); ++iteration)
    for (const Communication& message : run.iterations[iteration].communications) {
      if (!is_message(message))
        continue;
      servers.resize(std::max<std::size_t>(servers.size(), message.server + 1));
      ServerReport& server = servers[message.server];
      (message.direction == Direction::sent ? server.bytes_in : server.bytes_out) +=
          message.bytes_on_wire * message.messages;
    }
  for (std::uint32_t index = 0; index < servers.size(); ++index) {
    ServerReport& server = servers[index];
    server = {.bytes_in = Bytes{server.bytes_in.count() / iterations},
              .bytes_out = Bytes{server.bytes_out.count() / iterations},
              .busy = Duration::picoseconds(busy_time(run, index).picoseconds() / iterations),
              .memory = {}};
  }
  if (!servers.empty()) {
    const std::vector<ServerMemory> memory = server_memory(job);
    servers.resize(memory.size());
    for (std::size_t index = 0; index < servers.size(); ++index)
      servers[index].memory = memory[index].total();
  }
  return servers;
}

std::optional<MessageReport> report_messages(const Run& run, std::size_t representative, Direction direction,
                                             Time iteration_start) {
  std::optional<MessageReport> report;
  for (const Communication& message : run.iterations.back().communications) {
    if (message.direction != direction)
      continue;
    // A pull may begin before the iteration does: it waits for no worker.
    const Time began = run.timeline.end[message.of(representative).begin.index];
    const Duration start = std::max(began, iteration_start) - iteration_start;
    const Time ended = run.timeline.end[message.of(representative).end.index];
    const Duration end = std::max(ended, iteration_start) - iteration_start;
    if (!report)
      report = {.count = 0, .bytes = {}, .bytes_on_wire = {}, .start = start, .end = end};
    ++report->count;
    report->bytes += message.bytes;
    report->bytes_on_wire += message.bytes_on_wire;
    report->start = std::min(report->start, start);
    report->end = std::max(report->end, end);
  }
  return report;
}

std::vector<Stretch> message_stretches(const Run& run, std::size_t iteration, std::size_t representative,
                                       const Stretch& span) {
  std::vector<Stretch> stretches;
  for (const std::size_t written : {iteration - 1, iteration})
    for (const Communication& message : run.iterations[written].communications) {
      if (!is_message(message))
        continue;
      const Time begin = run.timeline.end[message.of(representative).begin.index];
      const Time end = run.timeline.end[message.of(representative).end.index];
      if (begin < span.end && end > span.start)
        stretches.push_back({std::max(begin, span.start), std::min(end, span.end), no_op});
    }
  return united(std::move(stretches));
}

std::string busiest_link(const Run& run, const Topology& topology) {
  std::vector<Bytes> loads(topology.links().size());
  for (std::uint32_t op = 0; op < run.plan.size(); ++op) {
    const bool is_relay = run.plan.kind[op] == OpKind::relay;
    const bool is_transfer = run.plan.kind[op] == OpKind::transfer || is_relay;
    if (!is_transfer || run.plan.paths[run.plan.path[op]].kind == PathKind::kernel)
      continue;
    const std::int64_t messages = is_relay ? relay_of(run.plan, OpId{op}).messages : 1;
    for (const LinkUse& use : run.routes.uses(RouteId{run.plan.path[op].index}))
      loads[use.link.index] += Bytes{run.plan.amount[op]} * messages * use.multiplicity;
  }
  std::string name;
  Duration longest;
  for (const LinkId link : topology.links().ids()) {
    const Duration busy = time_to_move(loads[link.index], topology.links()[link].bandwidth);
    if (busy > longest && !topology.is_compute(link)) {
      longest = busy;
      name = topology.link_name(link);
    }
  }
  return name;
}

}  // namespace lockstep
