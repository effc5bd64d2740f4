#include "sim/network/flow_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lockstep {
namespace {

constexpr std::uint32_t ticket_mask = (1u << FlowNetwork::ticket_bits) - 1;

// What is left to each transfer would be nothing: no plan can go on.
[[noreturn]] void refuse_starved(std::int64_t capacity, std::int64_t shares) {
  throw ConfigError(
      fmt::format("/cluster: found {} B/s on a link that is shared by {} at once, expected at "
                  "least 1 B/s for each; look for a bandwidth that is far too low",
                  capacity, shares));
}

// Most kernels run undisturbed: a unit of work is then a picosecond.
Duration time_of(std::int64_t amount, std::int64_t rate) {
  return rate == picoseconds_per_second ? Duration::picoseconds(amount)
                                        : time_to_move(Bytes{amount}, Bandwidth{rate});
}

std::int64_t slowed(std::int64_t rate, Ratio slowdown) {
  if (slowdown == Ratio::one())
    return rate;
  return std::max<std::int64_t>(divided_down(Bandwidth{rate}, slowdown).count(), 1);
}

}  // namespace

FlowNetwork::FlowNetwork(std::span<const Bandwidth> capacities, const RouteTable& routes, KernelRows* rows)
    : routes_(routes), rows_(rows), free_slot_(routes.size(), none) {
  links_.resize(capacities.size());
  dirty_.reserve(capacities.size());
  capacities_.reserve(capacities.size());
  for (const Bandwidth capacity : capacities) capacities_.push_back({.whole = capacity.count()});
}

std::uint32_t FlowNetwork::make_slot(RouteId route) {
  const auto slot = static_cast<std::uint32_t>(flows_.size());
  Flow flow;
  flow.route = route;
  flow.first_use = static_cast<std::uint32_t>(uses_.size());
  for (const LinkUse& use : routes_.uses(route))
    if (use.multiplicity > 0)
      uses_.push_back({.link = use.link.index, .multiplicity = use.multiplicity, .slot = slot});
  flow.last_use = static_cast<std::uint32_t>(uses_.size());
  flows_.push_back(flow);
  return slot;
}

std::uint32_t FlowNetwork::take_slot(RouteId route) {
  std::uint32_t& head = free_slot_[route.index];
  if (head == none)
    return make_slot(route);
  const std::uint32_t slot = head;
  head = flows_[slot].next_free;
  return slot;
}

void FlowNetwork::touch(std::uint32_t link) {
  if (links_[link].is_dirty)
    return;
  links_[link].is_dirty = true;
  dirty_.push_back(link);
}

void FlowNetwork::link_in(std::uint32_t index) {
  Use& use = uses_[index];
  std::uint32_t& head = links_[use.link].first_use;
  use.previous = none;
  use.next = head;
  if (head != none)
    uses_[head].previous = index;
  head = index;
}

void FlowNetwork::unlink(std::uint32_t index) {
  const Use& use = uses_[index];
  if (use.previous == none)
    links_[use.link].first_use = use.next;
  else
    uses_[use.previous].next = use.next;
  if (use.next != none)
    uses_[use.next].previous = use.previous;
}

void FlowNetwork::start(OpId op, RouteId route, std::int64_t amount, Time now) {
  const std::uint32_t slot = take_slot(route);
  Flow& flow = flows_[slot];
  LOCKSTEP_CHECK(flow.first_use < flow.last_use, "a transfer crosses at least one link");
  flow.op = flow.last = op;
  flow.route_of_op = route;
  flow.remaining = amount;
  flow.rate = 0;
  flow.updated = now;
  for (std::uint32_t use = flow.first_use; use < flow.last_use; ++use) link_in(use);
  // One of its links leads to all that it shares links with.
  touch(uses_[flow.first_use].link);
  ++changes_.began;
  changes_.slot = slot;
  changes_.of_rows = changes_.of_rows || (rows_ != nullptr && rows_->goes_on(op));
}

bool FlowNetwork::finish(std::uint32_t slot, std::uint32_t ticket, OpId& op) {
  Flow& flow = flows_[slot];
  if (flow.ticket != ticket)
    return false;
  flow.ticket = (flow.ticket + 1) & ticket_mask;
  if (flow.op != flow.last)
    end_row(flow);
  op = flow.op;
  for (std::uint32_t use = flow.first_use; use < flow.last_use; ++use) {
    unlink(use);
    touch(uses_[use].link);
  }
  changes_.of_rows = changes_.of_rows || flow.route_of_op != flow.route;
  ++changes_.left;
  changes_.route_left = flow.route;
  changes_.rate_left = flow.rate;
  flow.next_free = free_slot_[flow.route.index];
  free_slot_[flow.route.index] = slot;
  return true;
}

void FlowNetwork::reserve(RouteId route, std::int64_t sign) {
  for (const LinkUse& use : routes_.uses(route)) {
    LinkCapacity& capacity = capacities_[use.link.index];
    capacity.held.collectives += sign;
    capacity.held.sms += sign * use.reserved_sms;
    capacity.held.memory += Ratio::parts_per_million(use.reserved_memory) * sign;
    const Slower slower = routes_.interference().beside(capacity.held);
    if (slower == capacity.slower)
      continue;
    capacity.slower = slower;
    ++capacities_version_;
    changes_.of_capacities = true;
    touch(use.link.index);
  }
}

std::int64_t FlowNetwork::open_capacity(std::uint32_t link, const Slower& slower) const {
  const std::int64_t whole = capacities_[link].whole;
  if (slower.anything == Ratio{})
    return whole;
  return divided_in_millions(Bandwidth{whole}, Ratio::one() + slower.anything).count();
}

// What a flow that has this share of its links' time does in it. A kernel crosses the link of its rank alone.
std::int64_t FlowNetwork::progress(const Flow& flow, std::int64_t rate) const {
  const Slower& slower = capacities_[uses_[flow.first_use].link].slower;
  return slowed(rate, slowdown_of(routes_.bound(flow.route_of_op), slower));
}

void FlowNetwork::visit_link(std::uint32_t link) {
  if (links_[link].visited == epoch_)
    return;
  links_[link].visited = epoch_;
  component_links_.push_back(link);
}

void FlowNetwork::visit_flow(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.visited == epoch_)
    return;
  flow.visited = epoch_;
  component_flows_.push_back(slot);
  for (std::uint32_t use = flow.first_use; use < flow.last_use; ++use) visit_link(uses_[use].link);
}

void FlowNetwork::collect_component(std::uint32_t link) {
  component_links_.clear();
  component_flows_.clear();
  visit_link(link);
  for (std::size_t next = 0; next < component_links_.size(); ++next)
    for (std::uint32_t use = links_[component_links_[next]].first_use; use != none; use = uses_[use].next)
      visit_flow(uses_[use].slot);
}

bool FlowNetwork::is_alone(const Flow& flow) const {
  for (std::uint32_t use = flow.first_use; use < flow.last_use; ++use)
    if (uses_[use].next != none || uses_[use].previous != none)
      return false;
  return true;
}

std::int64_t FlowNetwork::rate_alone(Flow& flow) const {
  if (flow.route_of_op != flow.route)
    return progress(flow, least_capacity(flow));
  if (flow.capacities != capacities_version_) {
    flow.alone_rate = progress(flow, least_capacity(flow));
    flow.capacities = capacities_version_;
  }
  return flow.alone_rate;
}

std::int64_t FlowNetwork::least_capacity(const Flow& flow) const {
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t use = flow.first_use; use < flow.last_use; ++use) {
    const std::int64_t capacity = open_capacity(uses_[use].link);
    if (capacity < uses_[use].multiplicity)
      refuse_starved(capacity, uses_[use].multiplicity);
    rate = std::min(rate, capacity / uses_[use].multiplicity);
  }
  return rate;
}

// Of what begins: messages of a ring are all alike.
Duration FlowNetwork::time_left(Flow& flow) const {
  if (flow.timed_amount != flow.remaining || flow.timed_rate != flow.rate) {
    flow.timed_amount = flow.remaining;
    flow.timed_rate = flow.rate;
    flow.timed = time_of(flow.remaining, flow.rate);
  }
  return flow.timed;
}

void FlowNetwork::set_rate(std::uint32_t slot, std::int64_t rate, Time now) {
  Flow& flow = flows_[slot];
  if (flow.rate == rate)
    return;
  move_on(flow, rate, now);
  promise(slot, now + time_left(flow));
}

void FlowNetwork::move_on(Flow& flow, std::int64_t rate, Time now) {
  if (flow.rate != 0 && now != flow.updated)
    flow.remaining -= moved_in(now - flow.updated, Bandwidth{flow.rate}).count();
  flow.remaining = std::max<std::int64_t>(flow.remaining, 0);
  flow.updated = now;
  flow.rate = rate;
}

void FlowNetwork::promise(std::uint32_t slot, Time end) {
  Flow& flow = flows_[slot];
  flow.ticket = (flow.ticket + 1) & ticket_mask;
  completions_.push_back({end, slot, flow.ticket});
}

// What every link would offer if nobody were held to less elsewhere; the least of them, or 0: it takes
// levels.
std::int64_t FlowNetwork::make_offers() {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t link : component_links_) {
    std::int64_t shares = 0;
    for (std::uint32_t use = links_[link].first_use; use != none; use = uses_[use].next)
      shares += uses_[use].multiplicity * routes_.weight(flows_[uses_[use].slot].route);
    if (shares == 0)
      return 0;
    links_[link].offer = open_capacity(link) / shares;
    least = std::min(least, links_[link].offer);
  }
  return least;
}

bool FlowNetwork::is_held_to(std::int64_t offer, const Flow& flow) const {
  for (std::uint32_t use = flow.first_use; use < flow.last_use; ++use)
    if (links_[uses_[use].link].offer == offer)
      return true;
  return false;
}

// Mostly one narrow port holds everybody: the first level of the fair shares is then the last.
void FlowNetwork::solve_component(Time now) {
  if (component_flows_.size() == 1)
    return set_rate(component_flows_.front(), rate_alone(flows_[component_flows_.front()]), now);
  const std::int64_t offer = make_offers();
  const bool is_one_level =
      offer > 0 && std::all_of(component_flows_.begin(), component_flows_.end(),
                               [&](std::uint32_t slot) { return is_held_to(offer, flows_[slot]); });
  if (!is_one_level)
    return solve_in_levels(now);
  for (const std::uint32_t slot : component_flows_)
    set_rate(slot, progress(flows_[slot], offer * routes_.weight(flows_[slot].route)), now);
}

void FlowNetwork::solve_in_levels(Time now) {
  problem_.clear();
  for (const std::uint32_t link : component_links_)
    links_[link].local = problem_.add_link(open_capacity(link));
  for (const std::uint32_t slot : component_flows_) {
    share_uses_.clear();
    for (std::uint32_t use = flows_[slot].first_use; use < flows_[slot].last_use; ++use)
      share_uses_.push_back({links_[uses_[use].link].local, uses_[use].multiplicity});
    problem_.add_flow(share_uses_, routes_.weight(flows_[slot].route));
  }
  if (const auto starved = problem_.starved_link())
    refuse_starved(open_capacity(component_links_[*starved]), problem_.shares_on(*starved));
  const std::span<const std::int64_t> rates = problem_.solve();
  shared_ += problem_.levels() * (component_links_.size() + component_flows_.size());
  for (std::size_t i = 0; i < component_flows_.size(); ++i)
    set_rate(component_flows_[i], progress(flows_[component_flows_[i]], rates[i]), now);
}

void FlowNetwork::solve_around(std::uint32_t link, Time now) {
  const std::uint32_t slot = uses_[links_[link].first_use].slot;
  Flow& flow = flows_[slot];
  if (flow.visited == epoch_)
    return;
  if (is_alone(flow)) {
    flow.visited = epoch_;
    return settle_alone(slot, now);
  }
  collect_component(link);
  shared_ += component_links_.size() + component_flows_.size();
  for (const std::uint32_t one : component_flows_) cut_row(one, now);
  solve_component(now);
}

void FlowNetwork::settle_alone(std::uint32_t slot, Time now) {
  Flow& flow = flows_[slot];
  const bool is_laid = flow.op != flow.last;
  const bool is_new = flow.rate == 0;
  if (rows_ == nullptr || !(is_laid || (is_new && rows_->goes_on(flow.op))))
    return set_rate(slot, rate_alone(flow), now);
  const Slower& slower = capacities_[uses_[flow.first_use].link].slower;
  if (is_laid && slower == flow.laid_beside)
    return;
  pass_row(flow, now);
  const std::int64_t rate = progress(flow, least_capacity(flow));
  Time end = rows_->end(flow.op);
  if (flow.rate != rate) {
    move_on(flow, rate, now);
    end = now + time_left(flow);
  }
  flow.laid_beside = slower;
  lay_row(slot, end);
}

// Up to the kernel that runs now.
void FlowNetwork::pass_row(Flow& flow, Time now) {
  const std::uint32_t link = uses_[flow.first_use].link;
  while (flow.op != flow.last && rows_->end(flow.op) <= now) {
    flow.updated = rows_->end(flow.op);
    flow.op = rows_->next(flow.op);
    flow.remaining = rows_->amount(flow.op);
    flow.route_of_op = rows_->route(flow.op);
    flow.rate = slowed(open_capacity(link, flow.laid_beside),
                       slowdown_of(routes_.bound(flow.route_of_op), flow.laid_beside));
    rows_->count_passed();
  }
}

void FlowNetwork::end_row(Flow& flow) {
  for (; flow.op != flow.last; flow.op = rows_->next(flow.op)) rows_->count_passed();
  changes_.of_rows = true;
}

// What follows the kernel that runs and ends at `end`, as if nothing more would change.
void FlowNetwork::lay_row(std::uint32_t slot, Time end) {
  Flow& flow = flows_[slot];
  const std::uint32_t link = uses_[flow.first_use].link;
  const std::int64_t open = open_capacity(link, flow.laid_beside);
  flow.last = flow.op;
  rows_->lay_end(flow.last, end);
  while (rows_->goes_on(flow.last)) {
    flow.last = rows_->next(flow.last);
    const std::int64_t rate =
        slowed(open, slowdown_of(routes_.bound(rows_->route(flow.last)), flow.laid_beside));
    rows_->lay_start(flow.last, end);
    end = end + time_of(rows_->amount(flow.last), rate);
    rows_->lay_end(flow.last, end);
  }
  promise(slot, end);
}

// Others are on the link: the kernel that runs is one by itself.
void FlowNetwork::cut_row(std::uint32_t slot, Time now) {
  Flow& flow = flows_[slot];
  if (flow.op == flow.last)
    return;
  pass_row(flow, now);
  if (flow.op != flow.last)
    promise(slot, rows_->end(flow.op));
  flow.last = flow.op;
}

// Rates depend on how many flows there are on each route, and on capacities.
bool FlowNetwork::is_replacement() const {
  return changes_.began == 1 && changes_.left == 1 && !changes_.of_capacities && !changes_.of_rows &&
         flows_[changes_.slot].route == changes_.route_left;
}

std::span<const Completion> FlowNetwork::solve(Time now) {
  completions_.clear();
  if (dirty_.empty())
    return completions_;
  const bool nobody_notices = is_replacement();
  if (nobody_notices)
    set_rate(changes_.slot, changes_.rate_left, now);
  changes_ = {};
  ++epoch_;
  for (const std::uint32_t link : dirty_) {
    links_[link].is_dirty = false;
    if (!nobody_notices && links_[link].first_use != none)
      solve_around(link, now);
  }
  dirty_.clear();
  return completions_;
}

}  // namespace lockstep
