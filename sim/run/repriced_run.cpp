#include "sim/run/repriced_run.h"

#include <algorithm>
#include <utility>

#include "sim/engine/executor.h"
#include "sim/run/host_issue.h"

namespace lockstep {
namespace {

Ratio factor_of(const std::vector<MessageFactor>& factors, std::int64_t bytes) {
  Ratio found = Ratio::one();
  for (const MessageFactor& factor : factors)
    if (factor.from.count() <= bytes)
      found = factor.factor;
  return found;
}

// Those of `category`, but for joins.
PricedOps priced_ops(const Plan& plan, Category category) {
  PricedOps priced;
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.sections[i].category != category)
      continue;
    const std::size_t end = i + 1 < plan.sections.size() ? plan.sections[i + 1].first.index : plan.size();
    for (std::uint32_t op = plan.sections[i].first.index; op < end; ++op)
      if (plan.kind[op] != OpKind::join) {
        priced.ops.push_back(op);
        priced.amounts.push_back(plan.amount[op]);
      }
  }
  return priced;
}

// By message op; of those outside any message, what they move themselves.
std::vector<std::int64_t> find_message_bytes(const Run& run, const PricedOps& messages) {
  std::vector<std::int64_t> bytes = messages.amounts;
  const auto place_of = [&](std::uint32_t op) {
    return std::lower_bound(messages.ops.begin(), messages.ops.end(), op) - messages.ops.begin();
  };
  for (const IterationOps& iteration : run.iterations)
    for (const Communication& communication : iteration.communications) {
      std::uint32_t first = no_op.index;
      std::uint32_t last = 0;
      for (const Participation& part : communication.taking_part)
        if (part.begin != no_op) {
          first = std::min(first, part.begin.index);
          last = std::max(last, part.end.index);
        }
      for (auto place = place_of(first); place < std::ssize(bytes) && messages.ops[place] <= last; ++place)
        bytes[place] = communication.bytes_on_wire.count();
    }
  return bytes;
}

void put_back(const PricedOps& priced, Plan& plan) {
  for (std::size_t i = 0; i < priced.ops.size(); ++i) plan.amount[priced.ops[i]] = priced.amounts[i];
}

// All but where iterations lie and when they end.
void drop_details(Run& run) {
  run.timeline.start = {};
  for (IterationOps& iteration : run.iterations) {
    iteration.communications = {};
    iteration.memory = {};
  }
}

}  // namespace

RepricedRun::RepricedRun(Simulation& simulation, const Scenario& scenario, const RepricedRunOptions& options)
    : simulation_(simulation),
      scenario_(scenario),
      clusters_(options.clusters),
      keeps_times_(options.keeps_times),
      host_ops_(priced_ops(simulation.steady.plan, Category::host_overhead)),
      message_ops_(priced_ops(simulation.steady.plan, Category::communication)),
      message_bytes_(find_message_bytes(simulation.steady, message_ops_)),
      updates_(std::move(simulation.updates)) {
  if (keeps_times_)
    timeline_ = std::exchange(simulation.steady.timeline, {});
  else
    drop_details(simulation.steady);
  const RouteTable& routes = simulation.steady.routes;
  for (std::uint32_t path = 0; path < routes.size(); ++path)
    latencies_.push_back(routes.latency(RouteId{path}));
}

RepricedRun::~RepricedRun() {
  take_plan_back();
  put_prices_back();
  Run& run = simulation_.steady;
  run.timeline = std::move(timeline_);
  for (std::uint32_t path = 0; path < latencies_.size(); ++path)
    run.routes.set_latency(RouteId{path}, latencies_[path]);
  simulation_.updates = std::move(updates_);
}

bool RepricedRun::sends_messages() const {
  return updates_ || std::any_of(message_ops_.amounts.begin(), message_ops_.amounts.end(),
                                 [](std::int64_t amount) { return amount > 0; });
}

void RepricedRun::run(const PriceChange& change) {
  if (updates_)
    simulation_.updates = run_updates(priced(change), simulation_.job, simulation_.cluster->topology,
                                      factor_of(change.messages, updates_->pushed.count()));
  else if (strategy_of(scenario_).fuse != nullptr &&
           (change.compute != Ratio::one() || change.host != Ratio::one()))
    run_anew(change);
  else
    run_plan_again(change);
}

Scenario RepricedRun::priced(const PriceChange& change) const {
  Scenario priced = scenario_;
  Ratio& scale = priced.compute.scale;
  scale = std::max(scaled_up(scale, change.compute), Ratio::smallest());
  if (change.host != Ratio::one())
    slow_host(priced, change.host);
  return priced;
}

// Of a long run no more than the details are of.
void RepricedRun::run_anew(const PriceChange& change) {
  take_plan_back();
  Scenario anew = priced(change);
  if (is_long_run(anew))
    anew.simulation.iterations = 1;
  put_aside_ =
      std::exchange(simulation_.steady, simulate(anew, {.with_first = false, .clusters = clusters_}).steady);
}

void RepricedRun::take_plan_back() {
  if (put_aside_)
    simulation_.steady = std::move(*put_aside_);
  put_aside_.reset();
}

// Those of kernels that are charged to communication as well, so these come last.
void RepricedRun::put_prices_back() {
  Run& run = simulation_.steady;
  if (std::exchange(has_other_kernels_, false))
    price_again(run, scenario_, simulation_.job, *simulation_.cluster);
  put_back(host_ops_, run.plan);
  put_back(message_ops_, run.plan);
}

void RepricedRun::run_plan_again(const PriceChange& change) {
  take_plan_back();
  put_prices_back();
  Run& run = simulation_.steady;
  has_other_kernels_ = change.compute != Ratio::one();
  if (has_other_kernels_)
    price_again(run, priced(change), simulation_.job, *simulation_.cluster);
  scale_host(change.host);
  scale_messages(change.messages);
  const std::vector<Bandwidth> capacities = simulation_.cluster->topology.capacities();
  Timeline before = std::exchange(run.timeline, {});
  if (!keeps_times_) {
    run.timeline = run_to_ends(run.plan, capacities, run.routes, std::move(before));
    return;
  }
  before = {};  // there is no room for two
  run.timeline = lockstep::run(run.plan, capacities, run.routes);
}

void RepricedRun::scale_host(Ratio factor) {
  Plan& plan = simulation_.steady.plan;
  if (factor != Ratio::one())
    for (const std::uint32_t op : host_ops_.ops) plan.amount[op] = scaled_up(plan.amount[op], factor);
}

// A path's latency goes by the largest message that takes it.
void RepricedRun::scale_messages(const std::vector<MessageFactor>& factors) {
  Run& run = simulation_.steady;
  std::vector<std::int64_t> largest(latencies_.size(), 0);
  for (std::size_t i = 0; i < message_bytes_.size(); ++i) {
    const std::uint32_t op = message_ops_.ops[i];
    const PathId path = run.plan.path[op];
    run.plan.amount[op] = scaled_up(run.plan.amount[op], factor_of(factors, message_bytes_[i]));
    if (path != no_path)
      largest[path.index] = std::max(largest[path.index], message_bytes_[i]);
  }
  for (std::uint32_t path = 0; path < largest.size(); ++path)
    run.routes.set_latency(RouteId{path}, scaled(latencies_[path], factor_of(factors, largest[path])));
}

}  // namespace lockstep
