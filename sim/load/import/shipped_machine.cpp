#include "sim/load/import/shipped_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/load/import/printed_gpu.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Lists = std::vector<std::vector<std::int64_t>>;

std::string text_at(const ordered_json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t number_at(const ordered_json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number_integer()
             ? found->get<std::int64_t>()
             : 0;
}

std::vector<NicPlace> nics_of(const ordered_json& machine, std::int64_t gpus) {
  std::vector<NicPlace> places;
  const auto nics = machine.find("nics");
  if (nics == machine.end())
    return places;
  if (nics->is_object())
    return spread_evenly(text_at(*nics, "link"), number_at(*nics, "count"), gpus);
  for (const ordered_json& nic : *nics)
    places.push_back({.link = text_at(nic, "link"), .gpus = nic.value("gpus", std::vector<std::int64_t>{})});
  return places;
}

std::string nic_difference(const std::vector<NicPlace>& said, const std::vector<NicPlace>& shipped) {
  if (said.size() != shipped.size())
    return fmt::format("{} NICs instead of {}", said.size(), shipped.size());
  for (std::size_t nic = 0; nic < said.size(); ++nic) {
    if (said[nic].gpus != shipped[nic].gpus)
      return fmt::format("NIC {} is near other GPUs", nic);
    if (!said[nic].link.empty() && said[nic].link != shipped[nic].link)
      return fmt::format("NIC {} is {} instead of {}", nic, said[nic].link, shipped[nic].link);
  }
  return "";
}

void compare(std::string_view what, const std::string& said, const std::string& shipped,
             std::vector<std::string>& differences) {
  if (!said.empty() && said != shipped)
    differences.push_back(fmt::format("{} {} instead of {}", what, said, shipped.empty() ? "none" : shipped));
}

// The links of one GPU to others; 0: it has none of its own.
std::int64_t links_per_gpu(const ordered_json& machine) {
  const auto links = machine.find("gpu_links");
  if (links == machine.end())
    return 0;
  std::int64_t most = number_at(*links, "links_per_gpu");
  if (const auto matrix = links->find("matrix"); matrix != links->end())
    for (const auto& row : matrix->get<Lists>())
      most = std::max(most, std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  return most;
}

std::string capability_of(const std::string& gpu, const ProfileShelf& shelf) {
  const ordered_json* profile = shelf.find(ShelfKind::gpu, gpu);
  return profile == nullptr ? "" : text_at(*profile, "compute_capability");
}

std::set<std::string> peer_links_where(const ProfileShelf& shelf, const std::string& gpu,
                                       bool is_same_model) {
  const std::string capability = capability_of(gpu, shelf);
  std::set<std::string> links;
  for (const std::string& name : shelf.names(ShelfKind::machine)) {
    const ordered_json* machine = shelf.find(ShelfKind::machine, name);
    if (machine == nullptr || !machine->contains("gpu_links"))
      continue;
    const std::string there = text_at(*machine, "gpu");
    const std::string link = text_at((*machine)["gpu_links"], "link");
    const bool counts =
        is_same_model ? there == gpu : !capability.empty() && capability_of(there, shelf) == capability;
    if (counts && !link.empty())
      links.insert(link);
  }
  return links;
}

// In any order of keys; a link that is not said is like any.
bool are_alike(const ordered_json& said, const ordered_json& shipped) {
  if (said.is_null() || !shipped.is_object())
    return said.is_null();
  nlohmann::json completed = said;
  if (text_at(said, "link").empty() && said.contains("link"))
    completed["link"] = text_at(shipped, "link");
  return completed == nlohmann::json(shipped);
}

}  // namespace

std::vector<NicPlace> spread_evenly(const std::string& link, std::int64_t count, std::int64_t gpus) {
  constexpr std::int64_t most = 4096;
  count = std::clamp<std::int64_t>(count, 0, most);
  std::vector<NicPlace> nics(static_cast<std::size_t>(count), NicPlace{.link = link, .gpus = {}});
  const std::int64_t items = count == 0 ? 0 : std::max(count, std::min(gpus, most));
  for (std::int64_t item = 0; item < items; ++item)
    nics[static_cast<std::size_t>(item * count / items)].gpus.push_back(item * gpus / items);
  return nics;
}

MachineClaims claims_of(const ordered_json& machine) try {
  MachineClaims claims{.gpu = text_at(machine, "gpu"), .gpus = number_at(machine, "gpus")};
  if (const auto links = machine.find("gpu_links"); links != machine.end())
    claims.gpu_links = *links;
  if (const auto host = machine.find("host"); host != machine.end()) {
    claims.sockets = number_at(*host, "sockets");
    claims.socket_link = text_at(*host, "socket_link");
    claims.pcie = text_at(*host, "pcie");
    claims.pcie_switches = host->value("pcie_switches", Lists{});
  }
  claims.nics = nics_of(machine, claims.gpus);
  return claims;
} catch (const ordered_json::exception&) {
  return {.gpu = "", .nics = std::vector<NicPlace>{}};  // no machine: its reader says what is wrong
}

std::vector<std::string> find_disagreements(const MachineClaims& said, const MachineClaims& shipped) {
  std::vector<std::string> differences;
  compare("the GPU is", said.gpu, shipped.gpu, differences);
  if (said.gpus != shipped.gpus)
    differences.push_back(fmt::format("{} GPUs instead of {}", said.gpus, shipped.gpus));
  else if (!are_alike(said.gpu_links, shipped.gpu_links))
    differences.emplace_back("GPUs are joined in another way");
  if (!said.pcie_switches.empty() && said.pcie_switches != shipped.pcie_switches)
    differences.emplace_back("other GPUs share PCIe switches");
  if (said.nics)
    if (const std::string difference = nic_difference(*said.nics, *shipped.nics); !difference.empty())
      differences.push_back(difference);
  if (said.sockets > 0 && said.sockets != shipped.sockets)
    differences.push_back(fmt::format("{} sockets instead of {}", said.sockets, shipped.sockets));
  compare("sockets are joined by", said.socket_link, shipped.socket_link, differences);
  compare("PCIe is", said.pcie, shipped.pcie, differences);
  return differences;
}

std::vector<std::string> find_alike(const MachineClaims& said, const ProfileShelf& shelf) {
  std::vector<std::string> alike;
  for (const std::string& name : shelf.names(ShelfKind::machine)) {
    const ordered_json* machine = shelf.find(ShelfKind::machine, name);
    if (machine != nullptr && find_disagreements(said, claims_of(*machine)).empty())
      alike.push_back(name);
  }
  const std::vector<std::string> fitted = shelf.names(ShelfKind::calibration);
  std::stable_partition(alike.begin(), alike.end(), [&](const std::string& name) {
    return std::find(fitted.begin(), fitted.end(), name) != fitted.end();
  });
  return alike;
}

std::string find_gpu(std::string_view printed, const ProfileShelf& shelf) {
  for (const std::string& name : shelf.names(ShelfKind::gpu)) {
    const ordered_json* profile = shelf.find(ShelfKind::gpu, name);
    if (profile != nullptr && is_gpu_named(printed, *profile))
      return name;
  }
  return "";
}

std::string peer_link_of(const std::string& gpu, const ProfileShelf& shelf) {
  for (const bool is_same_model : {true, false})
    if (const std::set<std::string> links = peer_links_where(shelf, gpu, is_same_model); links.size() == 1)
      return *links.begin();
  return "";
}

std::vector<std::string> gpus_with_links(std::int64_t links, const ProfileShelf& shelf) {
  std::set<std::string> gpus;
  for (const std::string& name : shelf.names(ShelfKind::machine))
    if (const ordered_json* machine = shelf.find(ShelfKind::machine, name);
        machine != nullptr && links_per_gpu(*machine) == links)
      gpus.insert(text_at(*machine, "gpu"));
  return {gpus.begin(), gpus.end()};
}

}  // namespace lockstep
