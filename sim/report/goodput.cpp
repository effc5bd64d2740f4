#include "sim/report/goodput.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/training/checkpoint.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_histories = 256;
constexpr std::int64_t failures_in_all = 65'536;

double ratio(Microseconds part, Microseconds whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string text_of(Microseconds time) {
  constexpr std::int64_t second = 1'000'000;
  const bool is_long = time >= Microseconds{60 * second};
  return is_long ? format_horizon(Horizon{time.count() / second})
                 : format_duration(Duration::microseconds(time.count()));
}

Duration time_over_pcie(const ClusterSpec& cluster, Bytes bytes) {
  const auto& efficiency = cluster.calibration.efficiency;
  const auto found = efficiency.find(LinkClass::pcie);
  return divided_up(time_to_move(bytes, cluster.machine.host.pcie->bandwidth),
                    found == efficiency.end() ? Ratio::one() : found->second);
}

Duration writing_time(const ClusterSpec& cluster, const CheckpointBytes& bytes) {
  const Duration storage = time_to_move(bytes.total, cluster.faults->checkpoint_bandwidth);
  return cluster.machine.host.pcie ? std::max(storage, time_over_pcie(cluster, bytes.of_busiest)) : storage;
}

// How many histories tell a mean from luck: about as many failures in all, whatever their rate.
std::int64_t count_histories(Microseconds mtbf, Microseconds horizon) {
  const auto in_each = static_cast<std::int64_t>(ratio(horizon, mtbf)) + 1;
  return std::clamp<std::int64_t>(failures_in_all / in_each, 1, most_histories);
}

using Lifetimes = std::vector<std::vector<Microseconds>>;

Lifetimes draw_histories(Microseconds mtbf, Microseconds horizon, std::int64_t seed) {
  Lifetimes all;
  for (std::int64_t history = 0; history < count_histories(mtbf, horizon); ++history)
    all.push_back(
        draw_lifetimes(mtbf, horizon, static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(history)));
  return all;
}

std::vector<double> useful_shares(const FailureModel& model, Microseconds interval,
                                  const Lifetimes& lifetimes, Microseconds horizon) {
  std::vector<double> shares;
  for (const std::vector<Microseconds>& history : lifetimes)
    shares.push_back(ratio(play(model, interval, history).useful, horizon));
  return shares;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The best of a grid, a quarter of an octave apart, two octaves to either side of Daly's; the shortest of
// those that tie.
Microseconds best_simulated(const FailureModel& model, const Lifetimes& lifetimes, Microseconds horizon) {
  constexpr Ratio quarter_octave = Ratio::parts_per_million(1'189'207);  // 2^(1/4)
  constexpr int steps = 17;
  Microseconds best = daly_interval(model);
  double best_share = 0;
  Microseconds interval{std::max<std::int64_t>(best.count() / 4, 1)};
  for (int step = 0; step < steps; ++step) {
    const double share = mean(useful_shares(model, interval, lifetimes, horizon));
    if (share > best_share) {
      best = interval;
      best_share = share;
    }
    interval = Microseconds{scaled_up(interval.count(), quarter_octave)};
  }
  return best;
}

// Why the run would get nowhere; empty where it gets on.
std::string describe_hopelessness(const Checkpointing& checkpointing, Duration iteration) {
  const FailureModel& model = checkpointing.failures;
  if (model.mtbf <= in_microseconds(iteration))
    return fmt::format(
        "/cluster/faults/mtbf_per_node: the cluster fails every {} and an iteration takes {}: a failure in "
        "each; "
        "expected fewer nodes or a longer mtbf_per_node",
        text_of(model.mtbf), format_duration(iteration));
  if (gets_nowhere(model, checkpointing.interval))
    return fmt::format(
        "/cluster/faults: the cluster fails every {}, restarts in {} and saves in {} after {} of work: it "
        "would "
        "get nowhere; expected a longer mtbf_per_node, fewer nodes, a faster checkpoint_bandwidth{}",
        text_of(model.mtbf), text_of(model.restart), text_of(model.checkpoint),
        text_of(checkpointing.interval),
        gets_nowhere(model, daly_interval(model))
            ? " or a shorter restart"
            : ", a shorter restart or a checkpoint_interval near " + text_of(daly_interval(model)));
  if (checkpointing.interval >= in_microseconds(iteration))
    return "";
  const bool is_optimum_longer = daly_interval(model) > in_microseconds(iteration);
  return fmt::format(
      "/cluster/faults/checkpoint_interval: found {}, shorter than the iteration of {}; expected at least "
      "one "
      "iteration{}",
      text_of(checkpointing.interval), format_duration(iteration),
      is_optimum_longer ? "; " + text_of(daly_interval(model)) + " is optimal" : "");
}

void refuse_hopeless(const Scenario& scenario, const Checkpointing& checkpointing, Duration iteration) {
  if (const std::string problem = describe_hopelessness(checkpointing, iteration); !problem.empty())
    throw ConfigError(in_file(scenario, problem));
}

// Of what so many groups of `ranks` each hold another part of.
CheckpointBytes bytes_of_parts(const Job& part, std::int64_t ranks, std::int64_t parts) {
  CheckpointBytes bytes = checkpoint_bytes(part, ranks);
  bytes.total = bytes.total * parts;
  return bytes;
}

// Experts are dealt among more ranks than the rest is cut over, and fewer hold the same.
CheckpointBytes bytes_of_model(const Scenario& scenario, const Job& job) {
  const Layout& layout = scenario.training.layout;
  const ParallelDegrees& degrees = layout.degrees;
  if (job.kinds == nullptr)
    return bytes_of_parts(job, scenario.synchronised_ranks(), degrees.tensor);
  CheckpointBytes all =
      bytes_of_parts(job.kinds->dense.front(), scenario.synchronised_ranks(), degrees.tensor);
  const CheckpointBytes experts = bytes_of_parts(job.kinds->experts.front(), copies_of_expert(layout),
                                                 degrees.expert * sharers_of_expert(degrees));
  all.total += experts.total;
  all.of_busiest += experts.of_busiest;
  return all;
}

}  // namespace

Checkpointing plan_checkpoints(const Scenario& scenario, const Job& job, Duration iteration) {
  const ClusterSpec& cluster = scenario.cluster;
  const FaultSpec& faults = *cluster.faults;
  CheckpointBytes bytes = bytes_of_model(scenario, job);
  bytes.of_busiest = divided_up(bytes.of_busiest, scenario.training.layout.pipeline);
  const Duration time = writing_time(cluster, bytes);
  const FailureModel failures{
      .mtbf = Microseconds{in_microseconds(faults.mtbf_per_node).count() / cluster.nodes},
      .checkpoint = in_microseconds(time),
      .restart = in_microseconds(faults.restart)};
  const Microseconds interval = faults.checkpoint_interval
                                    ? in_microseconds(*faults.checkpoint_interval)
                                    : std::max(daly_interval(failures), in_microseconds(iteration));
  return {.bytes = bytes.total, .time = time, .interval = interval, .failures = failures};
}

Duration amortised(const Checkpointing& checkpointing, Duration iteration) {
  return scaled(checkpointing.time, in_microseconds(iteration).count(), checkpointing.interval.count());
}

Goodput find_goodput(const Scenario& scenario, const Job& job, Duration iteration) {
  const Checkpointing checkpointing = plan_checkpoints(scenario, job, iteration);
  refuse_hopeless(scenario, checkpointing, iteration);
  const FailureModel& model = checkpointing.failures;
  const Microseconds horizon = in_microseconds(scenario.cluster.faults->horizon);
  const Lifetimes lifetimes = draw_histories(model.mtbf, horizon, scenario.simulation.seed);
  const auto choice = [&](Microseconds interval) {
    return IntervalChoice{interval, expected_shares(model, interval).useful};
  };
  std::vector<double> shares = useful_shares(model, checkpointing.interval, lifetimes, horizon);
  Goodput goodput{.horizon = scenario.cluster.faults->horizon,
                  .checkpointing = checkpointing,
                  .expected_failures = ratio(horizon, model.mtbf),
                  .expected = expected_shares(model, checkpointing.interval),
                  .young = choice(young_interval(model)),
                  .daly = choice(daly_interval(model)),
                  .simulated = choice(best_simulated(model, lifetimes, horizon)),
                  .histories = static_cast<std::int64_t>(lifetimes.size()),
                  .simulated_mean = mean(shares)};
  std::sort(shares.begin(), shares.end());
  const auto quantile = [&](std::size_t percent) { return shares[(shares.size() - 1) * percent / 100]; };
  goodput.simulated_p5 = quantile(5);
  goodput.simulated_p50 = quantile(50);
  goodput.simulated_p95 = quantile(95);
  return goodput;
}

}  // namespace lockstep
