#include "sim/network/crossings.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lockstep {

Crossings::Crossings(std::span<const BindingLink> links) {
  links_.reserve(links.size());
  for (const BindingLink& link : links) links_.push_back({.binds = link.binds});
  touched_.reserve(links.size());
}

void Crossings::add_slot(std::span<const LinkUse> uses, std::int64_t weight) {
  const auto slot = static_cast<std::uint32_t>(slots_.size());
  const auto first = static_cast<std::uint32_t>(crossings_.size());
  for (const LinkUse& use : uses)
    if (use.multiplicity > 0 && links_[use.link.index].binds)
      crossings_.push_back({.link = use.link.index,
                            .multiplicity = use.multiplicity,
                            .slot = slot,
                            .previous = none,
                            .next = none,
                            .shares = use.multiplicity * weight});
  slots_.push_back({.first = first, .last = static_cast<std::uint32_t>(crossings_.size())});
  LOCKSTEP_CHECK(first < crossings_.size(), "a transfer crosses at least one link");
  join(slots_.back());
}

void Crossings::join(const Slot& slot) {
  if (slot.last - slot.first > 1)
    for (std::uint32_t index = slot.first; index < slot.last; ++index)
      links_[crossings_[index].link].is_joined = true;
}

bool Crossings::find_touched() {
  for (; visited_ < touched_.size(); ++visited_) {
    const std::uint32_t link = touched_[visited_];
    links_[link].is_touched = false;
    const std::uint32_t first = links_[link].first;
    if (first == none || slots_[crossings_[first].slot].found == search_)
      continue;
    ++visited_;
    find_component(link);
    return true;
  }
  forget_touched();
  return false;
}

void Crossings::forget_touched() {
  for (; visited_ < touched_.size(); ++visited_) links_[touched_[visited_]].is_touched = false;
  touched_.clear();
  visited_ = 0;
  ++search_;
}

bool Crossings::is_alone(const Slot& slot) const {
  return std::all_of(
      crossings_.begin() + slot.first, crossings_.begin() + slot.last,
      [](const Crossing& crossing) { return crossing.next == none && crossing.previous == none; });
}

void Crossings::find_component(std::uint32_t link) {
  component_links_.clear();
  component_slots_.clear();
  const std::uint32_t slot = crossings_[links_[link].first].slot;
  if (is_alone(slots_[slot])) {
    slots_[slot].found = search_;
    component_slots_.push_back(slot);
    return;
  }
  find_link(link);
  if (!links_[link].is_joined)
    return find_crossing(link);
  for (std::size_t next = 0; next < component_links_.size(); ++next)
    for (std::uint32_t one = links_[component_links_[next]].first; one != none; one = crossings_[one].next)
      find_slot(crossings_[one].slot);
}

// Nobody leads further.
void Crossings::find_crossing(std::uint32_t link) {
  for (std::uint32_t one = links_[link].first; one != none; one = crossings_[one].next) {
    slots_[crossings_[one].slot].found = search_;
    component_slots_.push_back(crossings_[one].slot);
  }
}

void Crossings::find_link(std::uint32_t link) {
  if (links_[link].found == search_)
    return;
  links_[link].found = search_;
  links_[link].place = static_cast<std::uint32_t>(component_links_.size());
  component_links_.push_back(link);
}

void Crossings::find_slot(std::uint32_t slot) {
  if (slots_[slot].found == search_)
    return;
  slots_[slot].found = search_;
  component_slots_.push_back(slot);
  for (const Crossing& crossing : of(slot)) find_link(crossing.link);
}

}  // namespace lockstep
