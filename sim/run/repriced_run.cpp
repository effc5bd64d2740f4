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

// But for joins.
template <class Visit>
void for_each_op_of(const Plan& plan, Category category, const Visit& visit) {
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.sections[i].category != category)
      continue;
    const std::size_t end = i + 1 < plan.sections.size() ? plan.sections[i + 1].first.index : plan.size();
    for (std::size_t op = plan.sections[i].first.index; op < end; ++op)
      if (plan.kind[op] != OpKind::join)
        visit(op);
  }
}

template <class Visit>
void for_each_message_op(const Plan& plan, const Visit& visit) {
  for_each_op_of(plan, Category::communication, visit);
}

// By message op, in the order of for_each_message_op; of those outside any message, what they move themselves.
std::vector<std::int64_t> find_message_bytes(const Run& run) {
  std::vector<std::int64_t> bytes = run.plan.amount;
  for (const IterationOps& iteration : run.iterations)
    for (const Communication& communication : iteration.communications) {
      std::uint32_t first = no_op.index;
      std::uint32_t last = 0;
      for (const Participation& part : communication.taking_part)
        if (part.begin != no_op) {
          first = std::min(first, part.begin.index);
          last = std::max(last, part.end.index);
        }
      for (std::uint32_t op = first; op <= last; ++op) bytes[op] = communication.bytes_on_wire.count();
    }
  std::vector<std::int64_t> by_message_op;
  for_each_message_op(run.plan, [&](std::size_t op) { by_message_op.push_back(bytes[op]); });
  return by_message_op;
}

bool has_messages(const Plan& plan) {
  bool has_any = false;
  for_each_message_op(plan, [&](std::size_t op) { has_any = has_any || plan.amount[op] > 0; });
  return has_any;
}

}  // namespace

RepricedRun::RepricedRun(Simulation& simulation, const Scenario& scenario, ClusterStore* clusters)
    : simulation_(simulation),
      scenario_(scenario),
      clusters_(clusters),
      amounts_(simulation.steady.plan.amount),
      message_bytes_(find_message_bytes(simulation.steady)),
      timeline_(std::move(simulation.steady.timeline)),
      updates_(std::move(simulation.updates)),
      sends_messages_(updates_ || has_messages(simulation.steady.plan)) {
  const RouteTable& routes = simulation.steady.routes;
  for (std::uint32_t path = 0; path < routes.size(); ++path)
    latencies_.push_back(routes.latency(RouteId{path}));
}

RepricedRun::~RepricedRun() {
  take_plan_back();
  Run& run = simulation_.steady;
  run.plan.amount = std::move(amounts_);
  run.timeline = std::move(timeline_);
  for (std::uint32_t path = 0; path < latencies_.size(); ++path)
    run.routes.set_latency(RouteId{path}, latencies_[path]);
  simulation_.updates = std::move(updates_);
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

void RepricedRun::run_plan_again(const PriceChange& change) {
  take_plan_back();
  Run& run = simulation_.steady;
  run.plan.amount = amounts_;
  if (change.compute != Ratio::one())
    price_again(run, priced(change), simulation_.job, *simulation_.cluster);
  scale_host(change.host);
  scale_messages(change.messages);
  run.timeline = {};  // before there is another
  run.timeline = lockstep::run(run.plan, simulation_.cluster->topology.capacities(), run.routes);
}

void RepricedRun::scale_host(Ratio factor) {
  Plan& plan = simulation_.steady.plan;
  if (factor != Ratio::one())
    for_each_op_of(plan, Category::host_overhead,
                   [&](std::size_t op) { plan.amount[op] = scaled_up(plan.amount[op], factor); });
}

// A path's latency goes by the largest message that takes it.
void RepricedRun::scale_messages(const std::vector<MessageFactor>& factors) {
  Run& run = simulation_.steady;
  std::vector<std::int64_t> largest(latencies_.size(), 0);
  std::size_t place = 0;
  for_each_message_op(run.plan, [&](std::size_t op) {
    const std::int64_t bytes = message_bytes_[place++];
    std::int64_t& amount = run.plan.amount[op];
    amount = scaled_up(amount, factor_of(factors, bytes));
    if (run.plan.path[op] == no_path)
      return;
    std::int64_t& most = largest[run.plan.path[op].index];
    most = std::max(most, bytes);
  });
  for (std::uint32_t path = 0; path < largest.size(); ++path)
    run.routes.set_latency(RouteId{path}, scaled(latencies_[path], factor_of(factors, largest[path])));
}

}  // namespace lockstep
