#include "validate/harness/stand_in/virtual_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::harness::stand_in {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double nothing_left = 1e-15;  // seconds: far below what any rate makes of one operation

bool is_collective(const CUstream_st& stream) {
  return stream.items.front().kind == Item::Kind::collective;
}

const std::vector<std::optional<CollectiveCall>>& parts_of(const CollectiveCall& call) {
  return call.communicator->group->calls[call.number];
}

// Items that take no time.
bool is_instant(const Item& item) {
  return item.kind == Item::Kind::record || item.kind == Item::Kind::wait ||
         (item.kind == Item::Kind::collective && item.collective.communicator->is_aborted);
}

}  // namespace

double VirtualClock::seconds_of(const Operation& operation) const {
  const double computing = operation.work.flops / rates_.flops;
  const double moving = static_cast<double>(operation.work.bytes) / rates_.memory_bytes;
  return std::max({rates_.least_kernel, computing, moving});
}

// A ring: each byte of an all-reduce crosses every link twice, but for one rank's part.
double VirtualClock::seconds_of(const CollectiveCall& call) const {
  const auto ranks = static_cast<double>(call.communicator->group->members.size());
  const double crossings = call.root >= 0 ? 1 : 2 * (ranks - 1) / ranks;
  return rates_.link_latency + crossings * static_cast<double>(call.bytes()) / rates_.link_bytes;
}

bool VirtualClock::is_due(const CUstream_st& stream) const {
  if (stream.items.empty() || stream.items.front().not_before > now_ || !streams_.can_go_on(stream))
    return false;
  const Item& item = stream.items.front();
  if (item.kind != Item::Kind::collective || is_instant(item))
    return true;
  const auto& parts = parts_of(item.collective);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const auto& part) { return part->stream->items.front().not_before <= now_; });
}

bool VirtualClock::settle(CUstream_st& stream) {
  if (stream.is_running || !is_due(stream))
    return false;
  const Item& item = stream.items.front();
  if (is_instant(item)) {
    streams_.finish_first(stream, now_);
    return true;
  }
  stream.is_running = true;
  stream.remaining =
      item.kind == Item::Kind::collective ? seconds_of(item.collective) : seconds_of(item.operation);
  return true;
}

bool VirtualClock::settle() {
  bool has_changed = false;
  for (bool changes = true; changes; has_changed |= changes) {
    changes = false;
    for (const auto& stream : streams_.all()) changes |= settle(*stream);
  }
  return has_changed;
}

double VirtualClock::factor_of(const CUstream_st& stream) const {
  if (!is_collective(stream))
    return own_factor(stream);
  double factor = 1;
  for (const auto& part : parts_of(stream.items.front().collective))
    factor = std::max(factor, own_factor(*part->stream));
  return factor;
}

double VirtualClock::own_factor(const CUstream_st& stream) const {
  double factor = 1;
  for (const auto& other : streams_.all()) {
    if (other.get() == &stream || other->gpu != stream.gpu || !other->is_running)
      continue;
    if (is_collective(stream) != is_collective(*other))
      factor = std::max(factor, is_collective(stream) ? rates_.collective_beside_compute
                                                      : rates_.compute_beside_collective);
    else if (!is_collective(stream) && stream.items.front().is_copy != other->items.front().is_copy)
      factor = std::max(
          factor, stream.items.front().is_copy ? rates_.copy_beside_compute : rates_.compute_beside_copy);
  }
  return factor;
}

double VirtualClock::next_moment() const {
  double next = never;
  for (const auto& stream : streams_.all()) {
    if (stream->is_running)
      next = std::min(next, now_ + stream->remaining * factor_of(*stream));
    else if (!stream->items.empty() && stream->items.front().not_before > now_)
      next = std::min(next, stream->items.front().not_before);
  }
  return next;
}

void VirtualClock::move_to(double moment) {
  std::vector<double> factors;
  for (const auto& stream : streams_.all()) factors.push_back(stream->is_running ? factor_of(*stream) : 1);
  for (std::size_t index = 0; index < factors.size(); ++index) {
    CUstream_st& stream = *streams_.all()[index];
    if (stream.is_running)
      stream.remaining -= (moment - now_) / factors[index];
  }
  now_ = moment;
}

bool VirtualClock::step(double limit) {
  if (settle())
    return true;
  const double next = next_moment();
  if (next > limit || next == never) {
    if (std::isfinite(limit) && limit > now_)
      move_to(limit);
    return false;
  }
  move_to(next);
  for (const auto& stream : streams_.all())
    if (stream->is_running && stream->remaining <= nothing_left + now_ * 1e-15)
      streams_.finish_first(*stream, now_);
  return true;
}

}  // namespace lockstep::harness::stand_in
