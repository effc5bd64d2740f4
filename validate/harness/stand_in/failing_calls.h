#pragma once

// How often each rank has called each entry point and from where, and which call is to fail.
//
// Idea:      a run without a failure is counted; then each call that was counted can be made to fail in a run
//            of its own, and each site that was seen can be changed (mutant.h).

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "validate/harness/stand_in/mutant.h"

namespace lockstep::harness::stand_in {

struct FailingCall {
  std::string entry_point;
  int rank = 0;
  std::int64_t number = 0;  // counted from 1; 0: none fails
};

class CallCounts {
 public:
  using Counts = std::map<std::pair<std::string, int>, std::int64_t>;  // by entry point and rank

  explicit CallCounts(FailingCall failing) : failing_(std::move(failing)) {}

  // One more; true where it is the one that fails.
  bool add(const std::string& entry_point, int rank) {
    const std::int64_t number = ++counts_[{entry_point, rank}];
    return rank == failing_.rank && number == failing_.number && entry_point == failing_.entry_point;
  }
  const Counts& all() const { return counts_; }
  void remember(const CallSite& site) { sites_.insert(site); }
  const std::set<CallSite>& sites() const { return sites_; }

 private:
  FailingCall failing_;
  Counts counts_;
  std::set<CallSite> sites_;
};

}  // namespace lockstep::harness::stand_in
