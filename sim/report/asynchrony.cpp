#include "sim/report/asynchrony.h"

#include <algorithm>
#include <array>

#include "sim/report/report.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_bars = 20;

// Of all workers together: more than 64 bits of picoseconds.
struct TimeSum {
  Unsigned128 computing = 0, communicating = 0, waiting = 0;
};

Unsigned128 picoseconds(Duration duration) {
  return static_cast<Unsigned128>(duration.picoseconds());
}

TimeSum time_of_all(const UpdateTotals& totals) {
  TimeSum sum;
  for (const WorkerTime& time : totals.workers) {
    sum.computing += picoseconds(time.computing);
    sum.communicating += picoseconds(time.communicating);
    sum.waiting += picoseconds(time.waiting);
  }
  return sum;
}

Duration divided(Unsigned128 picoseconds, std::int64_t parts) {
  return Duration::picoseconds(arithmetic::checked_narrow(picoseconds / static_cast<Unsigned128>(parts)));
}

double utilisation(const UpdateRun& run, Duration per_update) {
  const auto most =
      std::max_element(run.servers.begin(), run.servers.end(),
                       [](const auto& a, const auto& b) { return a.per_update < b.per_update; });
  if (most == run.servers.end() || most->per_update == Duration::zero() ||
      run.totals.window == Duration::zero())
    return 0;
  const double of_slowest = run.totals.server_work.in_seconds() / run.totals.window.in_seconds() * 1e6 /
                            static_cast<double>(run.server_width.parts_per_million());
  return of_slowest * per_update.in_seconds() / most->per_update.in_seconds();
}

std::vector<AsynchronousServer> describe_servers(const UpdateRun& run) {
  Bytes all;
  for (const ServerLoad& server : run.servers) all += server.bytes;
  std::vector<AsynchronousServer> servers;
  for (const ServerLoad& server : run.servers) {
    const auto part = [&](Bytes moved) {
      const auto product = static_cast<Unsigned128>(moved.count() * run.workers) *
                           static_cast<Unsigned128>(server.bytes.count());
      return Bytes{arithmetic::checked_narrow(
          product / static_cast<Unsigned128>(std::max<std::int64_t>(all.count(), 1)))};
    };
    servers.push_back(
        {server.bytes, part(run.pushed), part(run.pulled), utilisation(run, server.per_update)});
  }
  return servers;
}

}  // namespace

StalenessReport describe_staleness(const StalenessCounts& counts) {
  StalenessReport report;
  if (counts.total() == 0)
    return report;
  report.mean = static_cast<double>(counts.sum()) / static_cast<double>(counts.total());
  report.p50 = counts.quantile(Ratio::percent(50));
  report.p95 = counts.quantile(Ratio::percent(95));
  report.maximum = counts.maximum();
  const std::int64_t width = counts.maximum() / most_bars + 1;
  for (std::int64_t from = 0; from <= counts.maximum(); from += width) {
    StalenessBar bar{from, std::min(from + width - 1, counts.maximum()), 0};
    for (std::int64_t value = bar.from; value <= bar.to; ++value)
      bar.updates += counts.counts()[static_cast<std::size_t>(value)];
    report.histogram.push_back(bar);
  }
  return report;
}

AsynchronyReport describe_asynchrony(const UpdateRun& run) {
  const TimeSum sum = time_of_all(run.totals);
  const Unsigned128 all = sum.computing + sum.communicating + sum.waiting;
  AsynchronyReport report{.workers = run.workers, .updates = run.totals.updates};
  report.conflicts = run.totals.conflicts;
  report.staleness = describe_staleness(run.totals.staleness);
  report.servers = describe_servers(run);
  if (all == 0)
    return report;
  report.updates_per_s = static_cast<double>(run.totals.updates) / run.totals.window.in_seconds();
  report.waiting_fraction = static_cast<double>(sum.waiting) / static_cast<double>(all);
  return report;
}

// Computing divides as a step does.
Breakdown mean_update(const UpdateRun& run) {
  const TimeSum sum = time_of_all(run.totals);
  const Unsigned128 step = std::max<Unsigned128>(
      picoseconds(run.forward) + picoseconds(run.backward) + picoseconds(run.recompute), 1);
  const Unsigned128 updates = static_cast<Unsigned128>(run.totals.updates);
  const auto part_of_computing = [&](Duration part) { return sum.computing / step * picoseconds(part); };
  Breakdown mean;
  const Unsigned128 forward = part_of_computing(run.forward);
  const Unsigned128 recompute = part_of_computing(run.recompute);
  const std::array<std::pair<Duration*, Unsigned128>, 5> parts{
      {{&mean.forward, forward},
       {&mean.recompute, recompute},
       {&mean.backward, sum.computing - forward - recompute},
       {&mean.exposed_communication, sum.communicating},
       {&mean.straggler_wait, sum.waiting}}};
  Unsigned128 whole = 0;
  Duration reported;
  for (const auto& [part, all] : parts) {
    whole += all;
    *part = Duration::picoseconds(arithmetic::checked_narrow(whole / updates)) - reported;
    reported += *part;
  }
  return mean;
}

void report_updates(Report& report, const UpdateRun& run) {
  report.breakdown = mean_update(run);
  report.iteration = sum(report.breakdown);
  const auto quantile = [&](Ratio part) { return Duration::picoseconds(run.totals.steps.quantile(part)); };
  report.times.first = report.iteration;
  report.times.p5 = quantile(Ratio::percent(5));
  report.times.p50 = quantile(Ratio::percent(50));
  report.times.p95 = quantile(Ratio::percent(95));
  report.times.p99 = quantile(Ratio::percent(99));
  report.times.longest = Duration::picoseconds(run.totals.steps.maximum());
  CommunicationReport& communication = report.communication;
  communication.bytes_per_gpu = Bytes{run.pushed.count() / run.ranks_per_worker};
  communication.overlapped = divided(picoseconds(run.totals.hidden), run.totals.updates);
  communication.total = report.breakdown.exposed_communication + communication.overlapped;
  report.critical_path.clear();
  report.engine.events += run.totals.events;
  report.asynchrony = describe_asynchrony(run);
}

}  // namespace lockstep
