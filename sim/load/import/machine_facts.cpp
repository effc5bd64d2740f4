#include "sim/load/import/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/error.h"
#include "sim/load/import/import_file.h"

namespace lockstep {
namespace {

std::vector<std::size_t> nearest_nics(const MachineFacts& facts, std::size_t gpu) {
  PciePath best = PciePath::unknown;
  for (const NicFacts& nic : facts.nics) best = std::min(best, nic.to_gpus[gpu]);
  std::vector<std::size_t> nearest;
  for (std::size_t nic = 0; nic < facts.nics.size() && best != PciePath::unknown; ++nic)
    if (facts.nics[nic].to_gpus[gpu] == best)
      nearest.push_back(nic);
  return nearest;
}

// As many items as there are of the larger list, spread evenly over both.
void deal(const std::vector<std::size_t>& nics, const std::vector<std::int64_t>& gpus,
          std::map<std::size_t, std::set<std::int64_t>>& gpus_of_nic) {
  const std::size_t items = std::max(nics.size(), gpus.size());
  for (std::size_t item = 0; item < items; ++item)
    gpus_of_nic[nics[item * nics.size() / items]].insert(gpus[item * gpus.size() / items]);
}

using Groups = std::vector<std::size_t>;  // a device's group is named by its first member

std::size_t group_of(const Groups& groups, std::size_t device) {
  while (groups[device] != device) device = groups[device];
  return device;
}

void join(Groups& groups, std::size_t one, std::size_t other) {
  const std::size_t first = group_of(groups, one);
  const std::size_t second = group_of(groups, other);
  groups[std::max(first, second)] = std::min(first, second);
}

// GPUs, then NICs.
Groups join_below_ports(const MachineFacts& facts) {
  Groups groups(facts.gpus + facts.nics.size());
  std::iota(groups.begin(), groups.end(), std::size_t{0});
  for (std::size_t gpu = 0; gpu < facts.gpus; ++gpu) {
    for (std::size_t other = 0; other < gpu; ++other)
      if (is_below_one_port(facts.gpu_paths[gpu][other]))
        join(groups, gpu, other);
    for (std::size_t nic = 0; nic < facts.nics.size(); ++nic)
      if (is_below_one_port(facts.nics[nic].to_gpus[gpu]))
        join(groups, gpu, facts.gpus + nic);
  }
  return groups;
}

}  // namespace

std::string read_dump(const ImportRequest& request) {
  constexpr std::size_t most_bytes = std::size_t{4} << 20;
  std::string text = read_whole(request);
  if (text.size() > most_bytes)
    throw ConfigError(fmt::format("{}: found more than 4 MiB, expected the dump of one machine's topology",
                                  request.file_name));
  return text;
}

std::vector<PlacedNic> place_nics(const MachineFacts& facts) {
  std::map<std::vector<std::size_t>, std::vector<std::int64_t>> sharers;
  for (std::size_t gpu = 0; gpu < facts.gpus; ++gpu)
    if (const std::vector<std::size_t> nics = nearest_nics(facts, gpu); !nics.empty())
      sharers[nics].push_back(static_cast<std::int64_t>(gpu));
  std::map<std::size_t, std::set<std::int64_t>> gpus_of_nic;
  for (const auto& [nics, gpus] : sharers) deal(nics, gpus, gpus_of_nic);
  std::vector<PlacedNic> placed;
  for (const auto& [nic, gpus] : gpus_of_nic) placed.push_back({nic, {gpus.begin(), gpus.end()}});
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedNic& a, const PlacedNic& b) { return a.gpus < b.gpus; });
  return placed;
}

std::vector<std::vector<std::int64_t>> find_pcie_switches(const MachineFacts& facts) {
  const Groups groups = join_below_ports(facts);
  std::map<std::size_t, std::vector<std::int64_t>> gpus_of;
  std::map<std::size_t, std::size_t> devices_of;
  for (std::size_t device = 0; device < groups.size(); ++device) {
    const std::size_t group = group_of(groups, device);
    ++devices_of[group];
    if (device < facts.gpus)
      gpus_of[group].push_back(static_cast<std::int64_t>(device));
  }
  std::vector<std::vector<std::int64_t>> switches;
  for (const auto& [group, gpus] : gpus_of)
    if (devices_of[group] > 1)
      switches.push_back(gpus);
  return switches;
}

std::int64_t count_sockets(const std::vector<std::int64_t>& numa) {
  const std::set<std::int64_t> nodes(numa.begin(), numa.end());
  // More nodes than two, or other numbers, are parts of sockets (AMD's NPS, Intel's SNC) or memory without cores.
  const bool are_sockets = !nodes.empty() && *nodes.begin() >= 0 && *nodes.rbegin() <= 1;
  return are_sockets ? *nodes.rbegin() + 1 : 0;
}

}  // namespace lockstep
