#include "sim/network/fair_share.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace lockstep {

void FairShareProblem::clear() {
  links_.clear();
  use_begin_.clear();
  uses_.clear();
  weights_.clear();
}

std::uint32_t FairShareProblem::add_link(std::int64_t capacity) {
  links_.push_back({capacity, 0});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

std::uint32_t FairShareProblem::add_flow(std::span<const ShareUse> uses, std::int64_t weight) {
  LOCKSTEP_CHECK(!uses.empty(), "a flow crosses at least one link");
  use_begin_.push_back(static_cast<std::uint32_t>(uses_.size()));
  uses_.insert(uses_.end(), uses.begin(), uses.end());
  for (const ShareUse& use : uses) links_[use.link].crossing += use.multiplicity * weight;
  weights_.push_back(weight);
  return static_cast<std::uint32_t>(use_begin_.size() - 1);
}

std::optional<std::uint32_t> FairShareProblem::starved_link() const {
  for (std::uint32_t link = 0; link < links_.size(); ++link)
    if (links_[link].remaining < links_[link].crossing)
      return link;
  return std::nullopt;
}

std::int64_t FairShareProblem::least_offer() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const LinkState& link : links_)
    if (link.crossing > 0)
      least = std::min(least, link.remaining / link.crossing);
  return least;
}

bool FairShareProblem::is_full(std::uint32_t link, std::int64_t offer) const {
  return links_[link].crossing > 0 && links_[link].remaining / links_[link].crossing == offer;
}

void FairShareProblem::freeze(std::uint32_t flow, std::int64_t offer) {
  const std::int64_t weight = weights_[flow];
  rates_[flow] = offer * weight;
  for (std::uint32_t use = use_begin_[flow]; use < use_begin_[flow + 1]; ++use) {
    LinkState& link = links_[uses_[use].link];
    link.remaining -= offer * weight * uses_[use].multiplicity;
    link.crossing -= uses_[use].multiplicity * weight;
  }
}

std::size_t FairShareProblem::freeze_flows_on_full_links(std::int64_t offer) {
  // Which links are full is settled before any flow is frozen: freezing changes the offers.
  full_.assign(links_.size(), false);
  for (std::uint32_t link = 0; link < links_.size(); ++link) full_[link] = is_full(link, offer);
  std::size_t frozen = 0;
  for (std::uint32_t flow = 0; flow < rates_.size(); ++flow) {
    if (rates_[flow] != 0)
      continue;
    const auto first = uses_.begin() + use_begin_[flow];
    const auto last = uses_.begin() + use_begin_[flow + 1];
    if (std::any_of(first, last, [&](const ShareUse& use) { return full_[use.link]; })) {
      freeze(flow, offer);
      ++frozen;
    }
  }
  return frozen;
}

std::span<const std::int64_t> FairShareProblem::solve() {
  const std::size_t flows = use_begin_.size();
  use_begin_.push_back(static_cast<std::uint32_t>(uses_.size()));
  rates_.assign(flows, 0);
  levels_ = 0;
  for (std::size_t frozen = 0; frozen < flows;) {
    const std::int64_t offer = least_offer();
    LOCKSTEP_CHECK(offer > 0, "every share of a link is at least one unit per second");
    frozen += freeze_flows_on_full_links(offer);
    ++levels_;
  }
  return rates_;
}

}  // namespace lockstep
