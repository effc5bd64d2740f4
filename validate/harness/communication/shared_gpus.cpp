#include "validate/harness/communication/shared_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lockstep::harness {

std::string describe_sharing(const std::vector<std::string>& gpus) {
  std::map<std::string, std::vector<std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank)
    if (!gpus[rank].empty())
      ranks_of[gpus[rank]].push_back(rank);
  std::vector<std::string> shared;
  for (const auto& [gpu, ranks] : ranks_of)
    if (ranks.size() > 1)
      shared.push_back(fmt::format("ranks {} share GPU {}", fmt::join(ranks, ", "), gpu));
  return fmt::format("{}", fmt::join(shared, "; "));
}

bool has_doubles(std::vector<std::string> places) {
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

}  // namespace lockstep::harness
