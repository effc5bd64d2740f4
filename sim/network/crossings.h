#pragma once

// Who crosses which link now, and who therefore shares with whom.
//
// Problem:   flows come and go all the time, and each change matters to those alone that share links, or share links
//            with those that do.
// Idea:      a slot for flows belongs to one route for good, so its crossings are laid out once, as nodes of the lists
//            of their links; of those links alone that can hold anybody back (binding_links.h). What was touched
//            during an instant is remembered, and at its end visited component by component.
// Invariant: the shares of a link are those of the crossings in its list.
// Cost:      entering and leaving O(links of a slot), a component O(its links and crossings); nothing is allocated once
//            every slot has been used.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/binding_links.h"
#include "sim/network/route_table.h"

namespace lockstep {

class Crossings {
 public:
  // Of one link by one slot.
  struct Crossing {
    std::uint32_t link;
    std::uint32_t multiplicity;
    std::uint32_t slot;
    std::uint32_t previous;
    std::uint32_t next;
    std::int64_t shares;  // multiplicity times weight
  };

  explicit Crossings(std::span<const BindingLink> links);

  // Slots are numbered from 0. `uses` are those of its route.
  void add_slot(std::span<const LinkUse> uses, std::int64_t weight);
  std::span<const Crossing> of(std::uint32_t slot) const {
    return {crossings_.data() + slots_[slot].first, slots_[slot].last - slots_[slot].first};
  }
  std::uint32_t first_link(std::uint32_t slot) const { return crossings_[slots_[slot].first].link; }

  // Its first link leads to all that it shares links with.
  void enter(std::uint32_t slot) {
    for (std::uint32_t index = slots_[slot].first; index < slots_[slot].last; ++index) link_in(index);
    touch(first_link(slot));
  }
  void leave(std::uint32_t slot) {
    for (std::uint32_t index = slots_[slot].first; index < slots_[slot].last; ++index) {
      unlink(crossings_[index]);
      touch(crossings_[index].link);
    }
  }
  void touch(std::uint32_t link) {
    if (links_[link].is_touched)
      return;
    links_[link].is_touched = true;
    touched_.push_back(link);
  }
  bool has_touched() const { return !touched_.empty(); }
  void forget_touched();

  // The next component that was touched. False when there is none: all is forgotten. Of one slot alone no links are
  // told.
  bool find_touched();
  std::span<const std::uint32_t> links() const { return component_links_; }
  std::span<const std::uint32_t> slots() const { return component_slots_; }
  // Of a link of the component.
  std::uint32_t place(std::uint32_t link) const { return links_[link].place; }
  std::int64_t shares(std::uint32_t link) const { return links_[link].shares; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  struct Slot {
    std::uint32_t first;
    std::uint32_t last;  // one past
    std::uint32_t found = 0;
  };
  struct Link {
    std::uint32_t first = none;
    std::uint32_t found = 0;  // by which search
    std::uint32_t place = 0;
    bool binds = false;
    bool is_joined = false;  // by a slot that crosses others, too
    bool is_touched = false;
    std::int64_t shares = 0;
  };

  void link_in(std::uint32_t index);
  void unlink(const Crossing& crossing);
  bool is_alone(const Slot& slot) const;
  void join(const Slot& slot);
  void find_component(std::uint32_t link);
  void find_crossing(std::uint32_t link);
  void find_link(std::uint32_t link);
  void find_slot(std::uint32_t slot);

  std::vector<Link> links_;
  std::vector<Slot> slots_;
  std::vector<Crossing> crossings_;
  std::vector<std::uint32_t> touched_;
  std::size_t visited_ = 0;  // of them
  std::uint32_t search_ = 1;
  std::vector<std::uint32_t> component_links_;
  std::vector<std::uint32_t> component_slots_;
};

inline void Crossings::link_in(std::uint32_t index) {
  Crossing& crossing = crossings_[index];
  Link& link = links_[crossing.link];
  crossing.previous = none;
  crossing.next = link.first;
  if (link.first != none)
    crossings_[link.first].previous = index;
  link.first = index;
  link.shares += crossing.shares;
}

inline void Crossings::unlink(const Crossing& crossing) {
  Link& link = links_[crossing.link];
  if (crossing.previous == none)
    link.first = crossing.next;
  else
    crossings_[crossing.previous].next = crossing.next;
  if (crossing.next != none)
    crossings_[crossing.next].previous = crossing.previous;
  link.shares -= crossing.shares;
}

}  // namespace lockstep
