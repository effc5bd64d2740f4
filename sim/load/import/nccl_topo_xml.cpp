// NCCL_TOPO_DUMP_FILE of NCCL and RCCL: <system> of NUMA nodes (<cpu>), each a tree of PCI bridges (<pci>) with GPUs and
// NICs at its leaves; a GPU lists its <nvlink>s or <xgmi>s.
//
// Idea:      the distance of a GPU and a NIC is where their branches part: below one bridge, one root port, one NUMA node,
//            or not at all. PCI ids name the GPU, rate and class of a device its link.
// Invariant: entities, document types and includes are never followed; the tree is at most 64 deep.
// Reference: NVIDIA/nccl, src/graph/xml.cc, topo.cc (ncclTopoGetSystemFromXml), paths.cc; ROCm/rccl, src/graph/xml.cc;
//            CPU models: Linux, arch/x86/include/asm/intel-family.h; devices: pci.ids.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/load/import/machine_document.h"

namespace lockstep {
namespace {

constexpr std::size_t most_depth = 64;

struct Device {
  pugi::xml_node node;                // <gpu> or <net>
  pugi::xml_node pci;                 // its own
  std::vector<pugi::xml_node> above;  // <cpu>, then bridges down to its own <pci>, which is left out
};

std::int64_t number_in(const pugi::xml_node& node, const char* name, int base = 10) {
  std::string_view text = node.attribute(name).as_string();
  if (base == 16 && text.starts_with("0x"))
    text.remove_prefix(2);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

std::string text_in(const pugi::xml_node& node, const char* name) {
  return node.attribute(name).as_string();
}

// What becomes of attributes; of others it is said that NCCL alone needs them.
KeyFate fate_of(const std::string& key) {
  static const std::set<std::string> used{
      "cpu numaid", "cpu familyid", "cpu modelid",   "cpu vendor",     "cpu host_hash",  "pci busid",
      "pci class",  "pci vendor",   "pci device",    "pci link_speed", "pci link_width", "gpu dev",
      "gpu sm",     "gpu gcn",      "nvlink target", "nvlink count",   "nvlink tclass",  "xgmi target",
      "xgmi count", "net name",     "net speed",     "net gdr",        "gpu gdr"};
  return used.contains(key) ? KeyFate::used : KeyFate::left_aside;
}

class TreeReader {
 public:
  TreeReader(const std::string& text, const ImportRequest& request) : text_(text), request_(request) {
    const pugi::xml_parse_result parsed =
        document_.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_doctype);
    if (!parsed)
      refuse(static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0)), parsed.description());
    for (const pugi::xml_node& node : document_)
      if (node.type() == pugi::node_doctype)
        refuse(at(node), "found a document type, expected none: NCCL writes no entities");
    system_ = document_.child("system");
    if (!system_)
      refuse(0, "found no <system>, expected a dump of NCCL_TOPO_DUMP_FILE");
    for (const pugi::xml_node& cpu : system_.children("cpu")) walk(cpu, {});
    check_host();
    sort_gpus();
  }

  MachineFacts facts();
  const std::vector<KeyUse>& keys() const { return keys_; }

 private:
  std::size_t at(const pugi::xml_node& node) const {
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0));
  }
  [[noreturn]] void refuse(std::size_t offset, const std::string& what) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text_.size()));
    throw ConfigError(
        fmt::format("{}:{}: {}", request_.file_name, 1 + std::count(text_.begin(), end, '\n'), what));
  }
  void walk(const pugi::xml_node& node, std::vector<pugi::xml_node> above);
  void note(const pugi::xml_node& node);
  void check_host() const;
  void sort_gpus();
  void add_links(MachineFacts& facts) const;
  void add_link(const pugi::xml_node& link, std::size_t gpu, MachineFacts& facts,
                std::int64_t& to_switches) const;
  void add_nics(MachineFacts& facts) const;
  void add_host(MachineFacts& facts) const;
  std::string link_of(const Device& net) const;
  std::string pcie_of(const Device& gpu) const;

  const std::string& text_;
  const ImportRequest& request_;
  pugi::xml_document document_ = {};
  pugi::xml_node system_ = {};
  std::vector<Device> gpus_ = {};
  std::vector<Device> nets_ = {};
  std::set<std::string> noted_ = {};
  std::vector<KeyUse> keys_ = {};
};

void TreeReader::note(const pugi::xml_node& node) {
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    const std::string key =
        fmt::format("{} {}", printable_name(node.name()), printable_name(attribute.name()));
    if (!noted_.insert(key).second)
      continue;
    const KeyFate fate = fate_of(key);
    keys_.push_back(
        {key, fate,
         fate == KeyFate::used ? "the machine's tree" : "nothing in a machine's profile depends on it"});
  }
}

void TreeReader::walk(const pugi::xml_node& node, std::vector<pugi::xml_node> above) {
  if (above.size() > most_depth)
    refuse(at(node), fmt::format("found elements more than {} deep", most_depth));
  note(node);
  for (const pugi::xml_node& child : node.children()) {
    const std::string_view name = child.name();
    if (name == "pci" || name == "nic") {
      std::vector<pugi::xml_node> below = above;
      below.push_back(node);
      walk(child, std::move(below));
    } else if (name == "gpu" || name == "net") {
      note(child);
      const bool is_in_nic = std::string_view(node.name()) == "nic" && !above.empty();
      const pugi::xml_node pci = is_in_nic ? above.back() : node;
      std::vector<pugi::xml_node> bridges = above;
      if (is_in_nic)
        bridges.pop_back();
      (name == "gpu" ? gpus_ : nets_).push_back({child, pci, std::move(bridges)});
      for (const pugi::xml_node& link : child.children()) note(link);
    } else {
      note(child);
    }
  }
}

void TreeReader::check_host() const {
  if (gpus_.empty())
    refuse(0,
           "found no <gpu>, expected what NCCL_TOPO_DUMP_FILE writes (a file for NCCL_TOPO_FILE may leave "
           "them out)");
  if (gpus_.size() > most_imported_devices || nets_.size() > most_imported_devices)
    refuse(0, fmt::format("found {} GPUs and {} NICs, expected at most {} of each", gpus_.size(),
                          nets_.size(), most_imported_devices));
  std::set<std::string> hosts;
  for (const pugi::xml_node& cpu : system_.children("cpu")) hosts.insert(text_in(cpu, "host_hash"));
  if (hosts.size() > 1)
    refuse(0, fmt::format("found {} hosts (host_hash), expected the dump of one machine", hosts.size()));
}

void TreeReader::sort_gpus() {
  std::map<std::int64_t, std::size_t> lines;
  for (const Device& gpu : gpus_) {
    const std::int64_t dev = number_in(gpu.node, "dev");
    if (dev < 0 || dev >= static_cast<std::int64_t>(gpus_.size()) || !lines.emplace(dev, at(gpu.node)).second)
      refuse(at(gpu.node), fmt::format("found GPU dev=\"{}\", expected each of 0 to {} once",
                                       printable_name(text_in(gpu.node, "dev")), gpus_.size() - 1));
  }
  std::sort(gpus_.begin(), gpus_.end(), [](const Device& a, const Device& b) {
    return number_in(a.node, "dev") < number_in(b.node, "dev");
  });
}

// Where two branches part.
PciePath path_between(const Device& one, const Device& other) {
  std::size_t common = 0;
  const std::size_t most = std::min(one.above.size(), other.above.size());
  while (common < most && one.above[common] == other.above[common]) ++common;
  if (common == 0)
    return PciePath::sys;
  if (common == 1)
    return one.pci == other.pci ? PciePath::pix : PciePath::phb;
  const std::size_t bridges = one.above.size() + other.above.size() - 2 * common + 1;
  return bridges == 1 ? PciePath::pix : PciePath::pxb;
}

void TreeReader::add_link(const pugi::xml_node& link, std::size_t gpu, MachineFacts& facts,
                          std::int64_t& to_switches) const {
  constexpr std::int64_t most_links = 1000;
  const std::int64_t count = number_in(link, "count");
  if (count < 1 || count > most_links)
    refuse(at(link), fmt::format("found count=\"{}\", expected 1 to {} links",
                                 printable_name(text_in(link, "count")), most_links));
  const std::string target = text_in(link, "target");
  const auto peer = std::find_if(gpus_.begin(), gpus_.end(),
                                 [&](const Device& other) { return text_in(other.pci, "busid") == target; });
  if (peer != gpus_.end())
    facts.peer_links[gpu][static_cast<std::size_t>(peer - gpus_.begin())] += count;
  else if (text_in(link, "tclass") == "0x068000")
    to_switches += count;
}

void TreeReader::add_links(MachineFacts& facts) const {
  facts.peer_links.assign(facts.gpus, std::vector<std::int64_t>(facts.gpus, 0));
  for (std::size_t gpu = 0; gpu < facts.gpus; ++gpu) {
    std::int64_t to_switches = 0;
    for (const pugi::xml_node& link : gpus_[gpu].node.children())
      if (const std::string_view name = link.name(); name == "nvlink" || name == "xgmi")
        add_link(link, gpu, facts, to_switches);
    if (gpu > 0 && to_switches != facts.switch_links)
      refuse(at(gpus_[gpu].node), fmt::format("found {} links to switches, expected {} as of GPU 0",
                                              to_switches, facts.switch_links));
    facts.switch_links = to_switches;
  }
  for (std::size_t gpu = 0; gpu < facts.gpus; ++gpu)
    for (std::size_t other = 0; other <= gpu; ++other)
      if (facts.peer_links[gpu][other] != facts.peer_links[other][gpu] ||
          (gpu == other && facts.peer_links[gpu][gpu] > 0))
        refuse(at(gpus_[gpu].node),
               fmt::format("found {} links from GPU {} to GPU {} and {} back, expected as many",
                           facts.peer_links[gpu][other], gpu, other, facts.peer_links[other][gpu]));
}

// ConnectX-4 and 5, 6, 7, 8; 0x101e is a virtual function of any.
std::string_view infiniband_generation(std::string_view device) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> generations{{{"0x1013", "edr"},
                                                                                      {"0x1015", "edr"},
                                                                                      {"0x1017", "edr"},
                                                                                      {"0x1019", "edr"},
                                                                                      {"0x101b", "hdr"},
                                                                                      {"0x101d", "hdr"},
                                                                                      {"0x101f", "hdr"},
                                                                                      {"0x1021", "ndr"},
                                                                                      {"0x1023", "xdr"}}};
  const auto found = std::find_if(generations.begin(), generations.end(),
                                  [&](const auto& entry) { return entry.first == device; });
  return found == generations.end() ? "" : found->second;
}

// A shipped link by its kind of network and its rate; empty: none, or it cannot be told.
std::string TreeReader::link_of(const Device& net) const {
  const std::string name = text_in(net.node, "name");
  const std::int64_t gbit = number_in(net.node, "speed") / 1000;
  std::string link;
  if (name.starts_with("efa") || name.starts_with("rdmap"))
    link = fmt::format("efa{}", gbit);
  else if (name.starts_with("cxi") || name.starts_with("hsn"))
    link = gbit == 100 ? "slingshot10" : gbit == 200 ? "slingshot11" : "";
  else if (text_in(net.pci, "class") == "0x020700" && gbit >= 400)
    link = fmt::format("{}{}", gbit == 400 ? "ndr" : "xdr", gbit);
  else if (text_in(net.pci, "class") == "0x020700")
    link = fmt::format("{}{}", infiniband_generation(text_in(net.pci, "device")), gbit);
  else if (name.starts_with("mlx") || name.starts_with("bnxt_re") || name.starts_with("roce"))
    link = fmt::format("roce_{}g", gbit);
  else
    link = gbit == 1 ? "gbe1" : fmt::format("ethernet_{}g", gbit);
  const bool is_shipped =
      request_.profiles != nullptr && request_.profiles->find(ShelfKind::link, link) != nullptr;
  return is_shipped ? link : "";
}

void TreeReader::add_nics(MachineFacts& facts) const {
  facts.has_nics = true;
  for (const Device& net : nets_) {
    NicFacts& nic = facts.nics.emplace_back();
    nic.name = text_in(net.node, "name");
    nic.link = link_of(net);
    nic.rate = fmt::format("{} Mbit/s", printable_name(text_in(net.node, "speed")));
    for (const Device& gpu : gpus_) nic.to_gpus.push_back(path_between(gpu, net));
    if (text_in(net.node, "gdr") == "0")
      facts.warnings.push_back(fmt::format(
          "{}: the NIC {} does not reach GPUs directly (gdr=\"0\"): see --calibration for a machine "
          "measured so",
          request_.file_name, printable_name(nic.name)));
  }
  if (facts.warnings.size() > 1)
    facts.warnings.resize(1);
}

// What joins sockets of this processor; empty: not known.
std::string socket_link_of(const pugi::xml_node& cpu) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 6> intel{{{63, "qpi"},
                                                                       {79, "qpi"},
                                                                       {85, "upi"},
                                                                       {106, "upi_icelake"},
                                                                       {143, "upi_sapphire_rapids"},
                                                                       {207, "upi_emerald_rapids"}}};
  const std::string vendor = text_in(cpu, "vendor");
  if (vendor == "AuthenticAMD")
    return "xgmi";
  const auto found = std::find_if(intel.begin(), intel.end(), [&](const auto& entry) {
    return entry.first == number_in(cpu, "modelid");
  });
  return vendor == "GenuineIntel" && number_in(cpu, "familyid") == 6 && found != intel.end() ? found->second
                                                                                             : "";
}

std::string TreeReader::pcie_of(const Device& gpu) const {
  const std::string speed = text_in(gpu.pci, "link_speed");
  const std::int64_t width = number_in(gpu.pci, "link_width");
  const char* generation = speed.starts_with("8")    ? "pcie3"
                           : speed.starts_with("16") ? "pcie4"
                           : speed.starts_with("32") ? "pcie5"
                                                     : "";
  const std::string link = fmt::format("{}_x{}", generation, width);
  const bool is_shipped =
      request_.profiles != nullptr && request_.profiles->find(ShelfKind::link, link) != nullptr;
  return is_shipped ? link : "";
}

void TreeReader::add_host(MachineFacts& facts) const {
  std::vector<std::int64_t> nodes;
  for (const pugi::xml_node& cpu : system_.children("cpu")) {
    nodes.push_back(number_in(cpu, "numaid"));
    facts.socket_link = socket_link_of(cpu);
  }
  for (const Device& gpu : gpus_)
    facts.numa.push_back(number_in(gpu.above.empty() ? gpu.pci : gpu.above.front(), "numaid"));
  facts.sockets = count_sockets(nodes);
  // An EPYC socket has up to four nodes (NPS4), and a host up to two sockets.
  const std::int64_t most = *std::max_element(nodes.begin(), nodes.end());
  if (facts.sockets == 0 && facts.socket_link == "xgmi" && most >= 4 && most <= 7)
    facts.sockets = 2;
  facts.pcie = pcie_of(gpus_.front());
}

MachineFacts TreeReader::facts() {
  MachineFacts facts{.gpus = gpus_.size()};
  add_links(facts);
  for (const Device& gpu : gpus_) {
    std::vector<PciePath>& paths = facts.gpu_paths.emplace_back();
    for (const Device& other : gpus_)
      paths.push_back(&gpu == &other ? PciePath::unknown : path_between(gpu, other));
    const std::string vendor = text_in(gpu.pci, "vendor");
    const std::string device = text_in(gpu.pci, "device");
    if (vendor.starts_with("0x") && device.starts_with("0x"))
      facts.gpu_names.push_back(vendor.substr(2) + ":" + device.substr(2));
    if (vendor == "0x1002" || gpu.node.attribute("gcn"))
      facts.library = "rccl";
    else if (const std::int64_t sm = number_in(gpu.node, "sm"); sm > 0)
      facts.compute_capability = fmt::format("{}.{}", sm / 10, sm % 10);
  }
  add_nics(facts);
  add_host(facts);
  return facts;
}

Imported import_tree(const ImportRequest& request) {
  const std::string text = read_dump(request);
  TreeReader reader(text, request);
  const MachineFacts facts = reader.facts();
  return write_machine(facts, request, reader.keys());
}

bool recognises_tree(std::string_view beginning) {
  const std::size_t system = beginning.find("<system");
  return system != std::string_view::npos && beginning.find("<cpu", system) != std::string_view::npos &&
         beginning.find_first_not_of(" \t\r\n") < beginning.size() &&
         beginning[beginning.find_first_not_of(" \t\r\n")] == '<';
}

const Registration<Importer> nccl_topo_xml_registration{
    "nccl_topo_xml",
    {.import = import_tree,
     .recognises = recognises_tree,
     .makes = ImportedThing::machine,
     .description = "what NCCL or RCCL wrote to NCCL_TOPO_DUMP_FILE",
     .asks_for = machine_questions()}};

}  // namespace
}  // namespace lockstep
