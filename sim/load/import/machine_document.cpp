#include "sim/load/import/machine_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/base/printable.h"
#include "sim/load/import/shipped_machine.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// The most NVLinks that any GPU has: more between all pairs can only go through switches.
constexpr std::int64_t most_links_of_a_gpu = 18;

class NoShelf : public ProfileShelf {
 public:
  std::vector<std::string> names(ShelfKind) const override { return {}; }
  const ordered_json* find(ShelfKind, const std::string&) const override { return nullptr; }
};

class MachineDocument {
 public:
  MachineDocument(const MachineFacts& facts, const ImportRequest& request, std::vector<KeyUse> keys)
      : facts_(facts),
        request_(request),
        shelf_(request.profiles == nullptr ? no_shelf_ : *request.profiles),
        placed_(place_nics(facts)) {
    result_.keys = std::move(keys);
    result_.warnings = facts.warnings;
  }

  Imported write() {
    choose_base();
    choose_gpu();
    said_.gpus = static_cast<std::int64_t>(facts_.gpus);
    said_.gpu_links = gpu_links();
    said_.pcie_switches = find_pcie_switches(facts_);
    said_.sockets = facts_.sockets;
    said_.socket_link = facts_.socket_link;
    said_.pcie = facts_.pcie;
    claim_nics();
    recognise();
    fill();
    return std::move(result_);
  }

 private:
  void choose_base();
  void choose_gpu();
  std::int64_t switched_links() const;
  std::int64_t links_of_a_gpu() const;
  std::vector<std::string> likely_gpus() const;
  void ask_for_gpu();
  ordered_json gpu_links();
  std::string peer_link();
  void claim_nics();
  void recognise();
  void fill();
  void offer_machines();
  void lend(ordered_json& document);
  template <class Value>
  Value said_or_lent(const std::string& part, const Value& said, const Value& lent, const Value& nothing);
  std::int64_t sockets(const MachineClaims& lent);
  std::string socket_link(const MachineClaims& lent, std::int64_t sockets);
  ordered_json host();
  ordered_json lent_nics();
  void lend_links(std::vector<NicPlace>& places);
  void ask_for_links(const std::vector<NicPlace>& places);
  ordered_json nics();
  void note_unused_nics();
  void warn_of_sockets(std::int64_t sockets);

  ordered_json stated(const std::string& outer, const char* inner = nullptr) const;
  void ask(std::string path, std::string example, std::string why) {
    result_.questions.push_back({std::move(path), std::move(example), std::move(why)});
  }
  void take(const std::string& part) {
    result_.document["sources"][part] = fmt::format("as in {}", base_name_);
  }

  const MachineFacts& facts_;
  const ImportRequest& request_;
  const NoShelf no_shelf_ = {};
  const ProfileShelf& shelf_;
  const std::vector<PlacedNic> placed_;
  MachineClaims said_ = {};
  std::string base_name_ = {};
  const ordered_json* base_ = nullptr;  // the shipped machine that lends; null: none
  std::vector<std::string> built_alike_ = {};
  Imported result_ = {};
};

// Null where nothing is stated.
ordered_json MachineDocument::stated(const std::string& outer, const char* inner) const {
  const auto found = request_.stated.find(outer);
  if (found == request_.stated.end() || inner == nullptr)
    return found == request_.stated.end() ? ordered_json() : *found;
  return found->is_object() && found->contains(inner) ? (*found)[inner] : ordered_json();
}

void MachineDocument::choose_base() {
  for (const char* key : {"nic", "machine"})
    if (!stated(key).is_null())
      result_.answered.emplace_back(key);
  const ordered_json name = stated("machine");
  if (name.is_null())
    return;
  base_name_ = name.is_string() ? name.get<std::string>() : name.dump();
  base_ = shelf_.find(ShelfKind::machine, base_name_);
  if (base_ == nullptr)
    throw ConfigError(fmt::format("--set machine={}: no such machine; {}", base_name_,
                                  describe_choices(base_name_, shelf_.names(ShelfKind::machine))));
}

void MachineDocument::choose_gpu() {
  std::set<std::string> found;
  for (const std::string& name : facts_.gpu_names) found.insert(find_gpu(name, shelf_));
  if (found.size() > 1)
    throw ConfigError(
        fmt::format("{}: found GPUs of several kinds ({}), expected one", request_.file_name,
                    fmt::join(std::set(facts_.gpu_names.begin(), facts_.gpu_names.end()), ", ")));
  if (const ordered_json gpu = stated("gpu"); !gpu.is_null())
    said_.gpu = gpu.is_string() ? gpu.get<std::string>() : "a GPU of its own";
  else if (!found.empty() && !found.begin()->empty())
    said_.gpu = *found.begin();
  else if (base_ != nullptr)
    said_.gpu = claims_of(*base_).gpu;
  else if (const std::vector<std::string> gpus = likely_gpus();
           gpus.size() == 1 && facts_.gpu_names.empty() && !facts_.compute_capability.empty())
    said_.gpu = gpus.front();  // its generation and its links leave one
}

// Of one GPU to others; 0: none of its own.
std::int64_t MachineDocument::links_of_a_gpu() const {
  if (const std::int64_t links = switched_links(); links > 0)
    return links;
  std::int64_t most = 0;
  for (const auto& row : facts_.peer_links)
    most = std::max(most, std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  return most;
}

std::vector<std::string> MachineDocument::likely_gpus() const {
  const std::int64_t links = links_of_a_gpu();
  std::vector<std::string> gpus;
  for (const std::string& gpu : links == 0 ? std::vector<std::string>{} : gpus_with_links(links, shelf_)) {
    const ordered_json* profile = shelf_.find(ShelfKind::gpu, gpu);
    if (profile != nullptr && (facts_.compute_capability.empty() ||
                               profile->value("compute_capability", "") == facts_.compute_capability))
      gpus.push_back(gpu);
  }
  return gpus;
}

std::string MachineDocument::peer_link() {
  if (const ordered_json link = stated("gpu_links", "link"); !link.is_null())
    return link.is_string() ? link.get<std::string>() : "";
  const std::string link = said_.gpu.empty() ? "" : peer_link_of(said_.gpu, shelf_);
  if (link.empty() && !said_.gpu.empty())
    ask("gpu_links.link", facts_.library == "rccl" ? "infinity_fabric" : "nvlink3",
        fmt::format("no shipped machine joins GPUs of the model {}, so their link is not known", said_.gpu));
  return link;
}

// Of each GPU, through switches: more links to every other than a GPU has can go no other way; 0: none.
std::int64_t MachineDocument::switched_links() const {
  std::set<std::int64_t> counts;
  for (std::size_t gpu = 0; gpu < facts_.gpus; ++gpu)
    counts.insert(facts_.peer_links[gpu].begin(),
                  facts_.peer_links[gpu].begin() + static_cast<std::ptrdiff_t>(gpu));
  if (facts_.switch_links > 0 || counts.size() != 1)
    return facts_.switch_links;
  const std::int64_t links = *counts.begin();
  return links * (static_cast<std::int64_t>(facts_.gpus) - 1) > most_links_of_a_gpu ? links : 0;
}

ordered_json MachineDocument::gpu_links() {
  if (facts_.gpus == 1)
    return {{"kind", "none"}};
  if (const std::int64_t links = switched_links(); links > 0)
    return {{"kind", "nvswitch"}, {"link", peer_link()}, {"links_per_gpu", links}};
  if (links_of_a_gpu() > 0)
    return {{"kind", "mesh"}, {"link", peer_link()}, {"matrix", facts_.peer_links}};
  if (base_ != nullptr && !facts_.shows_peer_links && base_->contains("gpu_links")) {
    take("gpu_links");
    return (*base_)["gpu_links"];
  }
  if (!said_.gpu.empty() && !peer_link_of(said_.gpu, shelf_).empty() && !facts_.shows_peer_links)
    ask("gpu_links.kind", "pcie", "shows no NVLinks at all (topo -mp leaves them out, topo -m prints them)");
  return {{"kind", "pcie"}};
}

void MachineDocument::claim_nics() {
  if (placed_.empty())
    return;
  const ordered_json link = stated("nic").is_null() ? stated("nics", "link") : stated("nic");
  std::vector<NicPlace>& places = said_.nics.emplace();
  for (const PlacedNic& nic : placed_)
    places.push_back(
        {.link = link.is_string() ? link.get<std::string>() : facts_.nics[nic.nic].link, .gpus = nic.gpus});
}

void MachineDocument::recognise() {
  if (base_ != nullptr) {
    for (const std::string& difference : find_disagreements(said_, claims_of(*base_)))
      result_.warnings.push_back(fmt::format("{}: is not quite a {}: {}; the file counts", request_.file_name,
                                             base_name_, difference));
    return;
  }
  const bool says_nics = said_.nics && std::all_of(said_.nics->begin(), said_.nics->end(),
                                                   [](const NicPlace& nic) { return !nic.link.empty(); });
  if (said_.gpu.empty() || !says_nics)
    return;
  const std::vector<std::string> alike = find_alike(said_, shelf_);
  if (alike.empty())
    return;
  const MachineClaims first = claims_of(*shelf_.find(ShelfKind::machine, alike.front()));
  const bool is_one = std::all_of(alike.begin() + 1, alike.end(), [&](const std::string& other) {
    return find_disagreements(first, claims_of(*shelf_.find(ShelfKind::machine, other))).empty();
  });
  if (!is_one)
    return;
  base_name_ = alike.front();
  base_ = shelf_.find(ShelfKind::machine, base_name_);
  built_alike_.assign(alike.begin() + 1, alike.end());
}

void MachineDocument::warn_of_sockets(std::int64_t sockets) {
  const auto& numa = facts_.numa;
  if (sockets < 2 || numa.empty() || *std::min_element(numa.begin(), numa.end()) < 0)
    return;
  const std::int64_t nodes = std::max(*std::max_element(numa.begin(), numa.end()) + 1, sockets);
  for (std::size_t gpu = 0; gpu < numa.size(); ++gpu) {
    const std::int64_t assumed =
        static_cast<std::int64_t>(gpu) * sockets / static_cast<std::int64_t>(facts_.gpus);
    if (numa[gpu] * sockets / nodes != assumed) {
      result_.warnings.push_back(
          fmt::format("{}: GPU {} is on NUMA node {}, and a profile hangs the first GPUs on the first "
                      "socket: it counts as on socket {}",
                      request_.file_name, gpu, numa[gpu], assumed));
      return;
    }
  }
}

// What is said, else what is lent, which is told; `nothing` where neither says it.
template <class Value>
Value MachineDocument::said_or_lent(const std::string& part, const Value& said, const Value& lent,
                                    const Value& nothing) {
  if (said != nothing || lent == nothing)
    return said;
  take(part);
  return lent;
}

std::int64_t MachineDocument::sockets(const MachineClaims& lent) {
  if (const ordered_json sockets = stated("host", "sockets"); sockets.is_number_integer())
    return sockets.get<std::int64_t>();
  const std::int64_t sockets = said_or_lent("host.sockets", said_.sockets, lent.sockets, std::int64_t{0});
  if (sockets == 0 && facts_.gpus > 1)
    ask("host.sockets", "2", "does not say how many sockets the host has (a NUMA node may be a part of one)");
  return sockets;
}

std::string MachineDocument::socket_link(const MachineClaims& lent, std::int64_t sockets) {
  if (sockets == 1 || facts_.gpus == 1)
    return "";
  const std::string link =
      said_or_lent("host.socket_link", said_.socket_link, lent.socket_link, std::string());
  if (link.empty())
    ask("host.socket_link", "upi", "does not say what joins the sockets");
  return link;
}

ordered_json MachineDocument::host() {
  const MachineClaims lent = base_ == nullptr ? MachineClaims{} : claims_of(*base_);
  const std::int64_t count = sockets(lent);
  const std::string link = socket_link(lent, count);
  const std::string pcie = said_or_lent("host.pcie", said_.pcie, lent.pcie, std::string());
  const auto switches = said_or_lent("host.pcie_switches", said_.pcie_switches, lent.pcie_switches, {});
  ordered_json host = ordered_json::object();
  if (count > 0)
    host["sockets"] = count;
  if (!link.empty())
    host["socket_link"] = link;
  if (!pcie.empty())
    host["pcie"] = pcie;
  if (!switches.empty())
    host["pcie_switches"] = switches;
  warn_of_sockets(count);
  return host;
}

// Of a dump that shows none.
ordered_json MachineDocument::lent_nics() {
  if (base_ != nullptr && base_->contains("nics")) {
    take("nics");
    return (*base_)["nics"];
  }
  if (stated("nics").is_null())
    result_.warnings.push_back(fmt::format(
        "{}: {}: the machine has none, so that it is one node alone (--set nics.count=8 --set "
        "nics.link=ndr400)",
        request_.file_name, facts_.has_nics ? "shows no NICs" : "a dump of this kind says nothing of NICs"));
  return {};
}

void MachineDocument::lend_links(std::vector<NicPlace>& places) {
  const std::vector<NicPlace> lent = base_ == nullptr ? std::vector<NicPlace>{} : *claims_of(*base_).nics;
  for (std::size_t nic = 0; nic < places.size() && lent.size() == places.size(); ++nic)
    if (lent[nic].gpus == places[nic].gpus)
      places[nic].link = said_or_lent("nics", places[nic].link, lent[nic].link, std::string());
}

void MachineDocument::ask_for_links(const std::vector<NicPlace>& places) {
  const auto unsaid =
      std::find_if(places.begin(), places.end(), [](const NicPlace& nic) { return nic.link.empty(); });
  if (unsaid == places.end())
    return;
  const NicFacts& nic = facts_.nics[placed_[static_cast<std::size_t>(unsaid - places.begin())].nic];
  const std::string rate =
      nic.rate.empty() ? "" : fmt::format(" ({} fits several that are shipped, or none)", nic.rate);
  ask("nic", "hdr200",
      fmt::format("does not say which link the NIC {} has{}", printable_name(nic.name), rate));
}

// {"count", "link"} where they are alike and spread evenly.
ordered_json json_of(const std::vector<NicPlace>& places, std::int64_t gpus) {
  const auto is_alike = [](const NicPlace& a, const NicPlace& b) {
    return a.link == b.link && a.gpus == b.gpus;
  };
  const auto spread = spread_evenly(places.front().link, static_cast<std::int64_t>(places.size()), gpus);
  if (std::equal(places.begin(), places.end(), spread.begin(), spread.end(), is_alike))
    return {{"count", places.size()}, {"link", places.front().link}};
  ordered_json list = ordered_json::array();
  for (const NicPlace& nic : places) list.push_back({{"link", nic.link}, {"gpus", nic.gpus}});
  return list;
}

ordered_json MachineDocument::nics() {
  if (!said_.nics)
    return lent_nics();
  std::vector<NicPlace> places = *said_.nics;
  lend_links(places);
  ask_for_links(places);
  return json_of(places, said_.gpus);
}

void MachineDocument::note_unused_nics() {
  std::set<std::size_t> used;
  for (const PlacedNic& nic : placed_) {
    used.insert(nic.nic);
    result_.keys.push_back({facts_.nics[nic.nic].name, KeyFate::used,
                            fmt::format("nics: near GPU {}", fmt::join(nic.gpus, " "))});
  }
  for (std::size_t nic = 0; nic < facts_.nics.size(); ++nic)
    if (!used.contains(nic))
      result_.keys.push_back(
          {facts_.nics[nic].name, KeyFate::left_aside,
           "every GPU is nearer to another NIC: NCCL leaves it to storage and management"});
}

void MachineDocument::ask_for_gpu() {
  const std::vector<std::string> gpus = likely_gpus();
  const std::string named = facts_.gpu_names.empty() ? "does not say which GPU the machine has"
                                                     : fmt::format("has a GPU that is not shipped ({})",
                                                                   printable_name(facts_.gpu_names.front()));
  ask("gpu", gpus.empty() ? "h100_sxm_80gb" : gpus.front(),
      named +
          (gpus.empty() ? "" : fmt::format(" ({} links each: {})", links_of_a_gpu(), fmt::join(gpus, ", "))));
}

void MachineDocument::fill() {
  ordered_json& document = result_.document;
  const std::string stem = std::filesystem::path(request_.file_name).stem().string();
  document["name"] = request_.file_name == "standard input" || stem.empty() ? "imported" : stem;
  if (said_.gpu.empty())
    ask_for_gpu();
  document["gpu"] = said_.gpu;
  document["gpus"] = said_.gpus;
  document["gpu_links"] = said_.gpu_links;
  if (const ordered_json described = host(); !described.empty())
    document["host"] = described;
  if (const ordered_json described = nics(); !described.is_null())
    document["nics"] = described;
  note_unused_nics();
  document["library"] = facts_.library;
  if (base_ == nullptr)
    return offer_machines();
  lend(document);
}

// Who is built alike may be what it is; only the user knows.
void MachineDocument::offer_machines() {
  constexpr std::size_t most = 12;
  const std::vector<std::string> alike = find_alike(said_, shelf_);
  if (!result_.questions.empty() && !alike.empty() && alike.size() <= most)
    result_.questions.back().why +=
        fmt::format(" (--set machine={} says all of it: alike in what the file says{})", alike.front(),
                    alike.size() == 1 ? ""
                                      : fmt::format(" {} {}", alike.size() == 2 ? "is" : "are",
                                                    fmt::join(alike.begin() + 1, alike.end(), ", ")));
}

void MachineDocument::lend(ordered_json& document) {
  if (base_->contains("fabric")) {
    document["fabric"] = (*base_)["fabric"];
    take("fabric");
  }
  const std::vector<std::string> fitted = shelf_.names(ShelfKind::calibration);
  if (std::find(fitted.begin(), fitted.end(), base_name_) != fitted.end())
    document["calibration"] = base_name_;
  if (!stated("machine").is_null())
    return;
  std::vector<std::string> parts;
  for (const auto& part : document["sources"].items()) parts.push_back(part.key());
  result_.warnings.push_back(
      fmt::format("{}: agrees with {} in all that it says, and {}: {} {} taken from there",
                  request_.file_name, base_name_,
                  built_alike_.empty()
                      ? "with no other machine that is shipped"
                      : fmt::format("with none that is built otherwise ({})", fmt::join(built_alike_, ", ")),
                  fmt::join(parts, ", "), parts.size() == 1 ? "is" : "are"));
}

}  // namespace

Imported write_machine(const MachineFacts& facts, const ImportRequest& request, std::vector<KeyUse> keys) {
  return MachineDocument(facts, request, std::move(keys)).write();
}

std::vector<std::string> machine_questions() {
  return {"gpu", "nic", "machine", "host", "gpu_links", "nics"};
}

}  // namespace lockstep
