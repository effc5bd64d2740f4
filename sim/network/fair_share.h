#pragma once

// Max-min fair shares over integers.
//
// Problem:   flows cross several links at once; each should go as fast as it can without taking from a
//            slower one.
// Idea:      progressive filling. Every link offers floor(remaining / crossing) to each share that
//            crosses it; the links that offer least are full: their flows are frozen at that rate and
//            subtracted everywhere, and the rest is offered again. All links at the least offer freeze
//            together, so the result does not depend on the order of links or flows. A flow of weight w
//            goes w times as fast as its offer: weights say who gets how much of what both want.
// Invariant: no link carries more than its capacity; a flow of multiplicity m takes m shares, exactly
//            as m equal flows would, so folding symmetric flows changes no rate by a single byte.
// Cost:      O(levels * (links + uses)); levels is the number of distinct rates.
// Reference: Bertsekas and Gallager, "Data Networks" (1992), 6.5.2.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

// One flow on one link: the flow's rate counts `multiplicity` times against the link.
struct ShareUse {
  std::uint32_t link;
  std::uint32_t multiplicity;
};

// Reusable working memory of `fill_fair_shares`, so that a warm solver allocates nothing.
class FairShareProblem {
 public:
  void clear();
  // Links are numbered from 0 in the order they are added; capacity in units per second.
  std::uint32_t add_link(std::int64_t capacity);
  // Flows are numbered likewise. `uses` is copied. A flow that crosses no link is an error.
  std::uint32_t add_flow(std::span<const ShareUse> uses, std::int64_t weight = 1);
  // A link that has less than one unit per second for each share that crosses it, so that no rate above
  // zero is fair: the caller must refuse it.
  std::optional<std::uint32_t> starved_link() const;
  std::int64_t shares_on(std::uint32_t link) const { return links_[link].crossing; }
  // Rates in units per second, one a flow, none below 1; no link may be starved. What a link offers never
  // falls: freezing a flow at the least offer leaves the others of its links as much or more.
  std::span<const std::int64_t> solve();
  // Of the last solution: distinct rates.
  std::uint32_t levels() const { return levels_; }

 private:
  struct LinkState {
    std::int64_t remaining;
    std::int64_t crossing = 0;  // shares of flows not yet frozen
  };
  std::int64_t least_offer() const;
  bool is_full(std::uint32_t link, std::int64_t offer) const;
  std::size_t freeze_flows_on_full_links(std::int64_t offer);
  void freeze(std::uint32_t flow, std::int64_t offer);

  std::vector<LinkState> links_;
  std::vector<bool> full_;
  std::vector<std::uint32_t> use_begin_;
  std::vector<ShareUse> uses_;
  std::vector<std::int64_t> weights_;
  std::vector<std::int64_t> rates_;  // 0 while not frozen
  std::uint32_t levels_ = 0;
};

}  // namespace lockstep
