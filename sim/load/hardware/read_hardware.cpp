#include "sim/load/hardware/read_hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/registry.h"
#include "sim/load/hardware/read_calibration.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/network/topology.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_links = 1000;
constexpr std::int64_t most_sockets = 64;
constexpr std::int64_t most_nics = 256;
constexpr Bandwidth fastest_link{1'000'000'000'000'000};
constexpr Duration longest_latency = Duration::seconds(100);

template <LinkClass link_class>
LinkSpec read_link_here(const JsonReader& json, const Place& place) {
  return read_link(json, place, link_class);
}

template <LinkClass link_class>
LinkSpec read_named_link(const JsonReader& json, const Place& place) {
  return read_named(json, place, ProfileKind::link, read_link_here<link_class>);
}

std::int64_t read_gpu_index(const JsonReader& json, std::int64_t gpus) {
  return json.integer(0, gpus - 1);
}

std::vector<std::int64_t> read_gpu_indices(const JsonReader& json, std::int64_t gpus) {
  std::vector<std::int64_t> indices;
  for (const JsonReader& element : json.elements()) {
    const std::int64_t index = read_gpu_index(element, gpus);
    if (std::find(indices.begin(), indices.end(), index) != indices.end()) {
      element.problem(fmt::format("found GPU {} twice in one list", index));
    }
    indices.push_back(index);
  }
  return indices;
}

void check_matrix(const JsonReader& json, const std::vector<std::vector<std::int64_t>>& matrix) {
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    if (matrix[row].size() != matrix.size()) {
      json.problem(fmt::format("row {} has {} entries, expected one for each of {} GPUs", row,
                               matrix[row].size(), matrix.size()));
      return;
    }
  }
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    for (std::size_t column = 0; column <= row; ++column) {
      if (matrix[row][column] != matrix[column][row] || (row == column && matrix[row][column] != 0)) {
        json.problem(fmt::format("expected a symmetric matrix with zeros on its diagonal; look at {}, {}",
                                 row, column));
        return;
      }
    }
  }
}

std::vector<std::vector<std::int64_t>> read_matrix(const JsonReader& json, std::int64_t gpus) {
  std::vector<std::vector<std::int64_t>> matrix;
  for (const JsonReader& row : json.elements()) {
    std::vector<std::int64_t>& links = matrix.emplace_back();
    for (const JsonReader& element : row.elements()) {
      links.push_back(element.integer(0, most_links));
    }
  }
  if (!json.is_missing() && std::cmp_not_equal(matrix.size(), gpus)) {
    json.problem(fmt::format("found {} rows, expected one for each of {} GPUs", matrix.size(), gpus));
    return matrix;
  }
  check_matrix(json, matrix);
  return matrix;
}

GpuLinks read_gpu_links(const JsonReader& json, const Place& place, std::int64_t gpus) {
  GpuLinks links;
  links.kind = read_spelled(json.required("kind"), gpu_link_spellings);
  const bool has_own_wires = links.kind == GpuLinkKind::nvswitch || links.kind == GpuLinkKind::mesh;
  if (has_own_wires) {
    links.link = read_named_link<LinkClass::nvlink>(json.required("link"), place / "link");
  }
  if (links.kind == GpuLinkKind::nvswitch) {
    links.links_per_gpu = json.required("links_per_gpu").integer(1, most_links);
  }
  if (links.kind == GpuLinkKind::mesh) {
    links.matrix = read_matrix(json.required("matrix"), gpus);
  }
  json.finish();
  return links;
}

void read_switches(const JsonReader& json, std::int64_t gpus, HostSpec& host) {
  std::vector<bool> is_listed(static_cast<std::size_t>(gpus), false);
  for (const JsonReader& element : json.elements()) {
    host.pcie_switches.push_back(read_gpu_indices(element, gpus));
    if (host.pcie_switches.back().empty()) {
      element.expected("at least one GPU under a switch");
    }
    for (const std::int64_t gpu : host.pcie_switches.back()) {
      if (is_listed[static_cast<std::size_t>(gpu)]) {
        element.problem(fmt::format("found GPU {} under two switches", gpu));
      }
      is_listed[static_cast<std::size_t>(gpu)] = true;
    }
  }
}

// The PCIe generation of the hosts a GPU was sold for.
std::string default_pcie(const std::string& gpu) {
  constexpr std::array third{"k80", "p100", "v100", "t4", "rtx2080ti"};
  constexpr std::array fifth{"h100",  "h200",   "h800",   "gh200",  "b200",
                             "gb200", "mi300x", "mi325x", "mi355x", "rtx5090"};
  const auto names_gpu = [&](const char* prefix) { return gpu.starts_with(prefix); };
  if (std::any_of(third.begin(), third.end(), names_gpu)) {
    return "pcie3_x16";
  }
  return std::any_of(fifth.begin(), fifth.end(), names_gpu) ? "pcie5_x16" : "pcie4_x16";
}

LinkSpec read_default_pcie(const JsonReader& machine, const Place& place, const std::string& gpu) {
  const std::string name = default_pcie(gpu);
  JsonDocument document = JsonDocument::from_value(name, machine.file_name(), machine.pointer());
  const LinkSpec link = read_named_link<LinkClass::pcie>(document.root(), place);
  place.context.add_problems(document.problems());
  place.note(fmt::format("default ({} for {})", name, gpu));
  return link;
}

HostSpec read_host(const JsonReader& json, const Place& place, std::int64_t gpus) {
  HostSpec host;
  host.sockets = integer_or(json, "sockets", 1, {1, most_sockets});
  if (const auto link = json.optional("socket_link")) {
    host.socket_link = read_named_link<LinkClass::socket>(*link, place / "socket_link");
  }
  if (const auto link = json.optional("pcie")) {
    host.pcie = read_named_link<LinkClass::pcie>(*link, place / "pcie");
  }
  if (const auto memory = json.optional("memory_bandwidth")) {
    host.memory_bandwidth = memory->bandwidth();
  }
  if (const auto time = json.optional("operator_time"))
    host.operator_time = read_operator_time(*time);
  host.peer_to_peer = boolean_or(json, "peer_to_peer", true);
  if (const auto switches = json.optional("pcie_switches")) {
    read_switches(*switches, gpus, host);
  }
  json.finish();
  return host;
}

std::vector<NicSpec> read_spread_nics(const JsonReader& json, const Place& place, std::int64_t gpus) {
  const std::int64_t count = json.required("count").integer(1, most_nics);
  const LinkSpec link = read_named_link<LinkClass::network>(json.required("link"), place / "link");
  json.finish();
  return spread_nics(link, count, gpus);
}

std::vector<NicSpec> read_nics(const JsonReader& json, const Place& place, std::int64_t gpus) {
  if (json.is_object()) {
    return read_spread_nics(json, place, gpus);
  }
  if (!place.context.origins.contains("/cluster/machine")) {
    place.note("given");  // whichever form the resolved scenario takes
  }
  std::vector<NicSpec> nics;
  for (const JsonReader& element : json.elements()) {
    const Place nic = place / std::to_string(nics.size());
    nics.push_back({.link = read_named_link<LinkClass::network>(element.required("link"), nic / "link"),
                    .gpus = read_gpu_indices(element.required("gpus"), gpus)});
    element.finish();
  }
  if (nics.size() > static_cast<std::size_t>(most_nics)) {
    json.problem(fmt::format("found {} NICs, expected at most {}", nics.size(), most_nics));
  }
  return nics;
}

std::optional<Price> read_price(const JsonReader& json) {
  Price price;
  price.usd_per_gpu_hour = json.required("usd_per_gpu_hour").number(0, 1e6, "US dollars");
  price.date = json.required("date").text();
  price.source = json.required("source").text();
  json.finish();
  return price;
}

void read_inside(const JsonReader& json, const Place& place, MachineReading& reading) {
  MachineSpec& machine = reading.machine;
  machine.gpu_links = read_gpu_links(json.required("gpu_links"), place / "gpu_links", machine.gpus);
  if (const auto host = json.optional("host")) {
    machine.host = read_host(*host, place / "host", machine.gpus);
  } else {
    (place / "host").note("default (one socket)");
  }
  if (!machine.host.pcie && reading.gpu.name != "cpu" && !reading.gpu.name.empty()) {
    machine.host.pcie = read_default_pcie(json, place / "host" / "pcie", reading.gpu.name);
  }
  if (const auto nics = json.optional("nics")) {
    machine.nics = read_nics(*nics, place / "nics", machine.gpus);
  }
}

void read_graph(const JsonReader& json, const Place& place, FabricSpec& fabric) {
  for (const JsonReader& element : json.required("switches").elements()) {
    fabric.switches.push_back(element.text());
  }
  for (const JsonReader& element : json.required("links").elements()) {
    const std::vector<JsonReader> parts = element.elements();
    if (parts.size() != 3) {
      element.expected("[from, to, link]");
      continue;
    }
    const Place link = place / "links" / std::to_string(fabric.links.size()) / "2";
    fabric.links.push_back({.from = parts[0].text(),
                            .to = parts[1].text(),
                            .link = read_named_link<LinkClass::network>(parts[2], link)});
  }
}

void read_torus(const JsonReader& json, FabricSpec& fabric) {
  for (const JsonReader& element : json.required("dims").elements()) {
    fabric.dims.push_back(element.integer(1, 1'000'000));
  }
}

void read_dragonfly(const JsonReader& json, FabricSpec& fabric) {
  fabric.groups = json.required("groups").integer(1, 100'000);
  fabric.routers_per_group = json.required("routers_per_group").integer(1, 100'000);
  fabric.nodes_per_router = json.required("nodes_per_router").integer(1, 100'000);
}

}  // namespace

std::vector<NicSpec> spread_nics(const LinkSpec& link, std::int64_t count, std::int64_t gpus) {
  std::vector<NicSpec> nics(static_cast<std::size_t>(count), NicSpec{.link = link, .gpus = {}});
  for (std::int64_t item = 0; item < std::max(count, gpus); ++item) {
    const std::int64_t nic = count < gpus ? item * count / gpus : item;
    const std::int64_t gpu = count < gpus ? item : item * gpus / count;
    nics[static_cast<std::size_t>(nic)].gpus.push_back(gpu);
  }
  return nics;
}

LinkSpec read_link(const JsonReader& json, const Place&, LinkClass link_class) {
  LinkSpec link;
  link.name = text_or(json, "name", "");
  link.source = text_or(json, "source", "");
  json.optional("sources");
  link.bandwidth = json.required("bandwidth").bandwidth();
  link.latency = json.required("latency").duration();
  link.link_class = spelled_or(json, "class", link_class, link_class_spellings);
  if (const auto planned = json.optional("nccl_bandwidth")) {
    link.nccl_bandwidth = planned->bandwidth();
  }
  if (const auto protocols = json.optional("protocols")) {
    link.protocols = read_protocols_left(*protocols);
    if (link.link_class != LinkClass::network)
      protocols->problem("found on a link inside a node; expected on a NIC's alone");
  }
  json.finish();
  if (link.bandwidth > fastest_link) {
    json.required("bandwidth").expected("at most 1 PB/s");
  }
  if (link.nccl_bandwidth > fastest_link) {
    json.required("nccl_bandwidth").expected("at most 1 PB/s");
  }
  if (link.latency > longest_latency) {
    json.required("latency").expected("at most 100 s");
  }
  return link;
}

namespace {

constexpr std::array<std::string_view, 2> kinds_with_leaves{"fat_tree", "rail_optimised"};

// Of a kind without leaves nothing is oversubscribed.
void read_oversubscription(const JsonReader& json, FabricSpec& fabric) {
  const auto factor = json.optional("oversubscription");
  if (!factor)
    return;
  fabric.oversubscription = factor->number(1, 1000, "downlinks to uplinks");
  const bool has_leaves =
      std::find(kinds_with_leaves.begin(), kinds_with_leaves.end(), fabric.kind) != kinds_with_leaves.end();
  if (!has_leaves && fabric.oversubscription > 1)
    factor->expected("1: no switch of a " + fabric.kind +
                     " has fewer ports up than down; of fat_tree and rail_optimised it says how many");
}

}  // namespace

FabricSpec read_fabric(const JsonReader& json, const Place& place) {
  FabricSpec fabric;
  fabric.name = text_or(json, "name", "");
  fabric.source = text_or(json, "source", "");
  json.optional("sources");
  fabric.kind = json.required("kind").one_of(Registry<FabricKind>::names());
  fabric.hop_latency = duration_or(json, "hop_latency", Duration::zero());
  read_oversubscription(json, fabric);
  fabric.ports_per_leaf = integer_or(json, "ports_per_leaf", fabric.ports_per_leaf, {1, 100'000});
  fabric.in_network_reduction = boolean_or(json, "in_network_reduction", false);
  if (fabric.kind == "torus") {
    read_torus(json, fabric);
  } else if (fabric.kind == "dragonfly") {
    read_dragonfly(json, fabric);
  } else if (fabric.kind == "graph") {
    read_graph(json, place, fabric);
  }
  json.finish();
  if (fabric.hop_latency > longest_latency) {
    json.required("hop_latency").expected("at most 100 s");
  }
  return fabric;
}

std::vector<std::string> read_protocols_left(const JsonReader& json) {
  const std::vector<std::string> known{"ll", "ll128", "simple"};
  std::vector<std::string> protocols;
  for (const JsonReader& element : json.elements()) {
    const std::string text = element.value().is_string() ? element.text() : "";
    if (!text.empty() && std::find(protocols.begin(), protocols.end(), text) != protocols.end())
      element.problem(fmt::format("found {} twice in one list", describe_value(element.value())));
    protocols.push_back(element.one_of(known));
  }
  if (json.value().is_array() && protocols.empty())
    json.expected("at least one of ll, ll128, simple");
  return protocols;
}

Duration read_operator_time(const JsonReader& json) {
  constexpr Duration most = Duration::seconds(1);
  const Duration time = json.duration();
  if (time > most)
    json.expected("at most " + format_duration(most));
  return time;
}

MachineReading read_machine(const JsonReader& json, const Place& place) {
  MachineReading reading;
  MachineSpec& machine = reading.machine;
  machine.name = json.required("name").text();
  machine.source = text_or(json, "source", "");
  json.optional("sources");
  reading.gpu = read_named(json.required("gpu"), place / "gpu", ProfileKind::gpu, read_gpu);
  machine.gpu = reading.gpu.name;
  machine.gpus = json.required("gpus").integer(1, most_gpus_per_machine);
  read_inside(json, place, reading);
  machine.library = spelled_or(
      json, "library", reading.gpu.name == "cpu" ? LibraryKind::gloo : LibraryKind::nccl, library_spellings);
  if (const auto fabric = json.optional("fabric")) {
    const Place where{place.context, "/cluster/fabric"};
    where.note("the machine's");
    reading.fabric_name = fabric->is_string() ? fabric->text() : "";
    reading.fabric = read_named(*fabric, where, ProfileKind::fabric, read_fabric);
  }
  if (const auto calibration = json.optional("calibration")) {
    if (calibration->is_object() && !has_base(*calibration) && !calibration->value().contains("name"))
      calibration->problem(
          "found changes, and this machine has no calibration of its own to change; expected beside them "
          "\"based_on\", the name of one");
    reading.calibration =
        read_named(*calibration, place / "calibration", ProfileKind::calibration, read_calibration);
  }
  if (const auto price = json.optional("price")) {
    machine.price = read_price(*price);
  }
  json.finish();
  return reading;
}

}  // namespace lockstep
