#include "sim/run/cluster_store.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::size_t most_links = 1'000'000;

}  // namespace

struct ClusterStore::Entry {
  ClusterFacts facts;
  std::unique_ptr<const Cluster> cluster;
  int users = 0;
  std::uint64_t last_use = 0;

  std::size_t links() const { return cluster->topology.links().size(); }
};

ClusterStore::ClusterStore() = default;
ClusterStore::~ClusterStore() = default;

void ReturnCluster::operator()(const Cluster* cluster) const {
  if (store != nullptr)
    store->give_back(cluster);
  else
    std::default_delete<const Cluster>{}(cluster);
}

LentCluster ClusterStore::lend(const Scenario& scenario, const OtherCollectives& others) {
  ClusterFacts facts = facts_of(scenario, others);
  if (LentCluster found = find(facts))
    return found;
  auto entry = std::make_unique<Entry>();
  entry->cluster = build_cluster(scenario, others);  // while others look for theirs
  if (LentCluster found = find(facts))
    return found;
  entry->facts = std::move(facts);
  const std::scoped_lock lock(mutex_);
  entry->users = 1;
  entry->last_use = ++turn_;
  entries_.push_back(std::move(entry));
  const Cluster* cluster = entries_.back()->cluster.get();
  make_room();
  return LentCluster(cluster, ReturnCluster{this});
}

std::size_t ClusterStore::size() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

LentCluster ClusterStore::find(const ClusterFacts& facts) {
  const std::scoped_lock lock(mutex_);
  for (const std::unique_ptr<Entry>& entry : entries_)
    if (entry->facts == facts) {
      ++entry->users;
      entry->last_use = ++turn_;
      return LentCluster(entry->cluster.get(), ReturnCluster{this});
    }
  return LentCluster(nullptr, ReturnCluster{this});
}

void ClusterStore::give_back(const Cluster* cluster) {
  const std::scoped_lock lock(mutex_);
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& known) { return known->cluster.get() == cluster; });
  LOCKSTEP_CHECK(entry != entries_.end(), "a cluster in use is kept");
  --(*entry)->users;
  make_room();
}

// Those in use may be more than there is room for.
void ClusterStore::make_room() {
  std::size_t links = 0;
  for (const auto& entry : entries_) links += entry->links();
  while (links > most_links || entries_.size() > most_clusters) {
    auto oldest = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if ((*entry)->users == 0 && (oldest == entries_.end() || (*entry)->last_use < (*oldest)->last_use))
        oldest = entry;
    if (oldest == entries_.end())
      return;
    links -= (*oldest)->links();
    entries_.erase(oldest);
  }
}

}  // namespace lockstep
