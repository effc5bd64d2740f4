#pragma once

// Clusters that were built, for simulations that ask for the same again.
//
// Problem:   the cells of a sweep, the ends of a band, the steps of a search differ in a batch or a bucket,
//            and would each find the same rings, and where the same traffics run, again.
// Idea:      a cluster is known by all that it depends on. It is lent, and what its plans and routes found out
//            about it stays with it. Beyond so many links those go that nobody uses, the longest unused first.
// Invariant: a cluster that is lent is the one that build_cluster would build; safe to share between threads.
// Cost:      a comparison with each cluster at hand, a few microseconds; at most about 1 M links in all.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/run/cluster.h"

namespace lockstep {

class ClusterStore {
 public:
  ClusterStore();
  ~ClusterStore();
  ClusterStore(const ClusterStore&) = delete;
  ClusterStore& operator=(const ClusterStore&) = delete;

  // Built at the first call. It goes back before the store goes.
  LentCluster lend(const Scenario& scenario, const OtherCollectives& others = {});

  std::size_t size() const;

  static constexpr std::size_t most_clusters = 256;

 private:
  friend struct ReturnCluster;

  struct Entry;

  LentCluster find(const struct ClusterFacts& facts);
  void give_back(const Cluster* cluster);
  void make_room();

  mutable std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<Entry>> entries_;
  std::uint64_t turn_ = 0;
};

}  // namespace lockstep
