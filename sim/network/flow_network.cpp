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
    : FlowNetwork(find_binding_links(capacities, routes), routes, rows) {}

FlowNetwork::FlowNetwork(std::span<const BindingLink> links, const RouteTable& routes, KernelRows* rows)
    : routes_(routes), rows_(rows), crossings_(links), free_slot_(routes.size(), none) {
  capacities_.reserve(links.size());
  for (const BindingLink& link : links) capacities_.push_back({.whole = link.capacity.count()});
}

std::uint32_t FlowNetwork::make_slot(RouteId route) {
  crossings_.add_slot(routes_.uses(route), routes_.weight(route));
  Flow& flow = flows_.emplace_back();
  flow.route = route;
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

std::uint32_t FlowNetwork::take_slot(RouteId route) {
  std::uint32_t& head = free_slot_[route.index];
  if (head == none)
    return make_slot(route);
  const std::uint32_t slot = head;
  head = flows_[slot].next_free;
  return slot;
}

void FlowNetwork::start(OpId op, RouteId route, std::int64_t amount, Time now) {
  const std::uint32_t slot = take_slot(route);
  Flow& flow = flows_[slot];
  flow.op = flow.last = op;
  flow.route_of_op = route;
  flow.remaining = amount;
  flow.rate = 0;
  flow.updated = now;
  crossings_.enter(slot);
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
  crossings_.leave(slot);
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
    crossings_.touch(use.link.index);
  }
}

std::int64_t FlowNetwork::open_capacity(std::uint32_t link, const Slower& slower) const {
  const std::int64_t whole = capacities_[link].whole;
  if (slower.anything == Ratio{})
    return whole;
  return divided_in_millions(Bandwidth{whole}, Ratio::one() + slower.anything).count();
}

// What a flow that has this share of its links' time does in it. A kernel crosses the link of its rank alone.
std::int64_t FlowNetwork::progress(std::uint32_t slot, std::int64_t rate) const {
  const KernelBound& bound = routes_.bound(flows_[slot].route_of_op);
  return bound == KernelBound{} ? rate : slowed(rate, slowdown_of(bound, slower_beside(slot)));
}

std::int64_t FlowNetwork::rate_alone(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.route_of_op != flow.route)
    return progress(slot, least_capacity(slot));
  if (flow.capacities != capacities_version_) {
    flow.alone_rate = progress(slot, least_capacity(slot));
    flow.capacities = capacities_version_;
  }
  return flow.alone_rate;
}

std::int64_t FlowNetwork::least_capacity(std::uint32_t slot) const {
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  for (const Crossings::Crossing& crossing : crossings_.of(slot)) {
    const std::int64_t capacity = open_capacity(crossing.link);
    if (capacity < crossing.multiplicity)
      refuse_starved(capacity, crossing.multiplicity);
    rate = std::min(rate, capacity / crossing.multiplicity);
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

std::int64_t FlowNetwork::moved(Duration elapsed, std::int64_t rate) {
  if (moved_.elapsed != elapsed || moved_.rate != rate)
    moved_ = {elapsed, rate, moved_in(elapsed, Bandwidth{rate}).count()};
  return moved_.amount;
}

void FlowNetwork::move_on(Flow& flow, std::int64_t rate, Time now) {
  if (flow.rate != 0 && now != flow.updated)
    flow.remaining -= moved(now - flow.updated, flow.rate);
  flow.remaining = std::max<std::int64_t>(flow.remaining, 0);
  flow.updated = now;
  flow.rate = rate;
}

void FlowNetwork::promise(std::uint32_t slot, Time end) {
  Flow& flow = flows_[slot];
  flow.ticket = (flow.ticket + 1) & ticket_mask;
  completions_.push_back({end, slot, flow.ticket});
}

// What every link would offer if nobody were held to less elsewhere; the least of them.
std::int64_t FlowNetwork::make_offers() {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  offers_.clear();
  for (const std::uint32_t link : crossings_.links()) {
    offers_.push_back(open_capacity(link) / crossings_.shares(link));
    least = std::min(least, offers_.back());
  }
  return least;
}

bool FlowNetwork::is_held_to(std::int64_t offer, std::uint32_t slot) const {
  const auto crossings = crossings_.of(slot);
  return std::any_of(crossings.begin(), crossings.end(), [&](const Crossings::Crossing& crossing) {
    return offers_[crossings_.place(crossing.link)] == offer;
  });
}

bool FlowNetwork::hold_all_to(std::int64_t offer) const {
  const auto slots = crossings_.slots();
  return std::all_of(slots.begin(), slots.end(), [&](std::uint32_t slot) { return is_held_to(offer, slot); });
}

// Mostly one narrow port holds everybody: the first level of the fair shares is then the last.
void FlowNetwork::share_component(Time now) {
  const auto slots = crossings_.slots();
  if (slots.size() == 1)
    return set_rate(slots.front(), rate_alone(slots.front()), now);
  const std::int64_t offer = make_offers();
  const bool is_one_level = offer > 0 && (offers_.size() == 1 || hold_all_to(offer));
  if (!is_one_level)
    return share_in_levels(now);
  for (const std::uint32_t slot : slots)
    set_rate(slot, progress(slot, offer * routes_.weight(flows_[slot].route)), now);
}

void FlowNetwork::share_in_levels(Time now) {
  const auto links = crossings_.links();
  const auto slots = crossings_.slots();
  problem_.clear();
  for (const std::uint32_t link : links) problem_.add_link(open_capacity(link));
  for (const std::uint32_t slot : slots) {
    share_uses_.clear();
    for (const Crossings::Crossing& crossing : crossings_.of(slot))
      share_uses_.push_back({crossings_.place(crossing.link), crossing.multiplicity});
    problem_.add_flow(share_uses_, routes_.weight(flows_[slot].route));
  }
  if (const auto starved = problem_.starved_link())
    refuse_starved(open_capacity(links[*starved]), problem_.shares_on(*starved));
  const std::span<const std::int64_t> rates = problem_.solve();
  shared_ += problem_.levels() * (links.size() + slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) set_rate(slots[i], progress(slots[i], rates[i]), now);
}

void FlowNetwork::settle_component(Time now) {
  const auto slots = crossings_.slots();
  if (crossings_.links().empty())
    return settle_alone(slots.front(), now);
  shared_ += crossings_.links().size() + slots.size();
  for (const std::uint32_t slot : slots) cut_row(slot, now);
  share_component(now);
}

void FlowNetwork::settle_alone(std::uint32_t slot, Time now) {
  Flow& flow = flows_[slot];
  const bool is_laid = flow.op != flow.last;
  const bool is_new = flow.rate == 0;
  if (rows_ == nullptr || !(is_laid || (is_new && rows_->goes_on(flow.op))))
    return set_rate(slot, rate_alone(slot), now);
  const Slower& slower = slower_beside(slot);
  if (is_laid && slower == flow.laid_beside)
    return;
  pass_row(slot, now);
  const std::int64_t rate = progress(slot, least_capacity(slot));
  Time end = rows_->end(flow.op);
  if (flow.rate != rate) {
    move_on(flow, rate, now);
    end = now + time_left(flow);
  }
  flow.laid_beside = slower;
  lay_row(slot, end);
}

// Up to the kernel that runs now.
void FlowNetwork::pass_row(std::uint32_t slot, Time now) {
  Flow& flow = flows_[slot];
  const std::uint32_t link = crossings_.first_link(slot);
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
  const std::uint32_t link = crossings_.first_link(slot);
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
  pass_row(slot, now);
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
  if (!crossings_.has_touched())
    return completions_;
  if (is_replacement()) {
    set_rate(changes_.slot, changes_.rate_left, now);
    crossings_.forget_touched();
  }
  changes_ = {};
  while (crossings_.find_touched()) settle_component(now);
  return completions_;
}

}  // namespace lockstep
