#include "sim/report/communication_report.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/collective.h"

namespace lockstep {
namespace {

Bandwidth bus_bandwidth(Bytes bytes, Duration time, CollectiveOp op, std::int64_t ranks) {
  if (time == Duration::zero())
    return Bandwidth{0};
  const BusFactor factor = bus_factor(op, ranks);
  const Bytes on_bus{bytes.count() / factor.denominator * factor.numerator};
  // Bytes per picosecond, turned round: the rate that moves these bytes in this time.
  return Bandwidth{static_cast<std::int64_t>(static_cast<Unsigned128>(on_bus.count()) *
                                             static_cast<Unsigned128>(picoseconds_per_second) /
                                             static_cast<Unsigned128>(time.picoseconds()))};
}

CollectiveReport describe_collective(const Communication& ops) {
  return {.name = std::string(ops.name),
          .op = ops.op,
          .payload = ops.payload,
          .dimension = std::string(ops.dimension),
          .ranks = ops.ranks,
          .tensors = ops.tensors,
          .bytes = ops.bytes,
          .sent = sent_by_rank(ops),
          .algorithm = std::string(ops.algorithm),
          .protocol = std::string(ops.protocol)};
}

// Messages to and from servers are listed as pushes and pulls.
std::vector<CollectiveReport> list_collectives(const RankView& view, const std::vector<Stretch>& busy) {
  std::vector<CollectiveReport> collectives;
  const Time start = view.start_of(view.iterations());
  for (const Communication& ops : view.run().iterations.back().communications) {
    if (ops.direction != Direction::exchanged || !ops.has(view.representative()))
      continue;
    const CollectiveSpan span = span_of(view.run(), ops, view.representative());
    CollectiveReport found = describe_collective(ops);
    found.ready = span.ready - start;
    found.start = span.start - start;
    found.end = span.end - start;
    found.busbw = bus_bandwidth(ops.bytes_on_wire, span.end - span.start, ops.op, ops.ranks);
    found.exposed = span.end - span.start - common({{span.start, span.end, no_op}}, busy);
    found.is_received = ops.comes_to(view.representative());
    if (found.is_received)
      found.sent = {};
    collectives.push_back(std::move(found));
  }
  return collectives;
}

// What a rank sends along one dimension, and when; a message to the next stage keeps nobody waiting but that stage.
struct DimensionSpans {
  DimensionReport report;
  std::vector<Stretch> active;
  std::vector<Stretch> awaited;

  void add(const CollectiveReport& collective, Time start) {
    const Stretch span{start + collective.start, start + collective.end, no_op};
    report.calls += collective.is_received ? 0 : 1;
    report.sent += collective.sent;
    active.push_back(span);
    if (collective.is_received || collective.dimension != "pipeline")
      awaited.push_back(span);
  }

  DimensionReport finish(const std::vector<Stretch>& busy) {
    awaited = united(std::move(awaited), {});
    report.active = total(united(std::move(active), {}));
    report.exposed = total(awaited) - common(awaited, busy);
    return report;
  }
};

// `collectives` count from `start`.
std::vector<DimensionReport> dimensions_of(const std::vector<CollectiveReport>& collectives, Time start,
                                           const std::vector<Stretch>& busy) {
  std::vector<DimensionSpans> spans;
  for (const CollectiveReport& collective : collectives) {
    auto found = std::ranges::find(spans, collective.dimension,
                                   [](const DimensionSpans& dimension) { return dimension.report.name; });
    if (found == spans.end())
      found = spans.insert(found, {.report = {.name = collective.dimension}, .active = {}, .awaited = {}});
    found->add(collective, start);
  }
  std::vector<DimensionReport> dimensions;
  for (DimensionSpans& dimension : spans) dimensions.push_back(dimension.finish(busy));
  return dimensions;
}

std::vector<BucketReport> buckets_among(const std::vector<CollectiveReport>& collectives) {
  std::vector<BucketReport> buckets;
  for (const CollectiveReport& collective : collectives)
    if (collective.payload == Payload::gradients)
      buckets.push_back({.index = static_cast<std::uint32_t>(buckets.size()),
                         .bytes = collective.bytes,
                         .parameters = collective.tensors,
                         .ready = collective.ready,
                         .start = collective.start,
                         .end = collective.end,
                         .exposed = collective.exposed,
                         .algorithm = collective.algorithm,
                         .protocol = collective.protocol,
                         .busbw = collective.busbw});
  return buckets;
}

bool sends(const Communication& communication, std::size_t representative) {
  return communication.direction != Direction::received && communication.has(representative) &&
         !communication.comes_to(representative);
}

// Gradients, parameters and activations that a rank sends in a mean iteration; of a stated plan, which says of nothing
// what it is, all that it sends.
Bytes sent_per_rank(const RankView& view, bool is_stated) {
  const Run& run = view.run();
  const auto counts = [&](const Communication& communication) {
    return (is_stated || communication.payload != Payload::other) &&
           sends(communication, view.representative());
  };
  Bytes sent;
  for (std::size_t iteration = 1; iteration < run.iterations.size(); ++iteration)
    for (const Communication& communication : run.iterations[iteration].communications)
      if (counts(communication))
        sent += sent_by_rank(communication);
  return Bytes{sent.count() / static_cast<std::int64_t>(run.iterations.size() - 1)};
}

// How long the rank communicates in a mean iteration, and how much of that it computes meanwhile.
std::pair<Duration, Duration> mean_activity(const RankView& view) {
  Duration all;
  Duration overlapped;
  for (std::size_t iteration = 1; iteration <= view.iterations(); ++iteration) {
    const std::vector<Stretch> communicating = view.communicating(iteration);
    all += total(communicating);
    overlapped += common(communicating, view.busy(iteration));
  }
  const auto count = static_cast<std::int64_t>(view.iterations());
  return {Duration::picoseconds(all.picoseconds() / count),
          Duration::picoseconds(overlapped.picoseconds() / count)};
}

std::pair<Duration, Duration> mean_activity(const LongRun& run) {
  const TimeAccount& critical = run.accounts[run.critical];
  return {Duration::picoseconds(critical.communicating.picoseconds() / run.iterations),
          Duration::picoseconds(critical.overlapped.picoseconds() / run.iterations)};
}

// The link that the communication of one iteration keeps busy longest.
std::string busiest_link_of_rings(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  const std::vector<std::uint32_t> crossings = count_crossings(topology, ring_flows(cluster.world));
  std::string name;
  Duration longest;
  for (const LinkId link : topology.links().ids()) {
    if (crossings[link.index] == 0)
      continue;
    const Duration busy =
        time_to_move(Bytes{1'000'000'000}, share(topology.links()[link].bandwidth, crossings[link.index]));
    if (busy > longest) {
      longest = busy;
      name = topology.link_name(link);
    }
  }
  return name;
}

std::string bottleneck_of(const Simulation& simulation, bool has_servers) {
  const Cluster& cluster = *simulation.cluster;
  if (cluster.world.ranks() < 2 || simulation.updates)
    return "";
  return has_servers ? busiest_link(simulation.steady, cluster.topology) : busiest_link_of_rings(cluster);
}

}  // namespace

CommunicationReport report_communication(const Simulation& simulation, const RankView& critical) {
  const Run& run = critical.run();
  const Time last_start = critical.start_of(critical.iterations());
  CommunicationReport report;
  report.bytes_per_gpu = sent_per_rank(critical, simulation.job.program != nullptr);
  std::tie(report.total, report.overlapped) =
      simulation.long_run ? mean_activity(*simulation.long_run) : mean_activity(critical);
  const std::vector<Stretch> busy = critical.busy(critical.iterations());
  report.collectives = list_collectives(critical, busy);
  report.buckets = buckets_among(report.collectives);
  report.dimensions = dimensions_of(report.collectives, last_start, busy);
  report.pushes = report_messages(run, critical.representative(), Direction::sent, last_start);
  report.pulls = report_messages(run, critical.representative(), Direction::received, last_start);
  report.servers = report_servers(run, simulation.job);
  report.bottleneck_link = bottleneck_of(simulation, !report.servers.empty());
  return report;
}

}  // namespace lockstep
