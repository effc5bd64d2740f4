// rocm-smi --showtopo, printed or as JSON: what joins each pair of GPUs, and the NUMA node of each.
//
// Idea:      both forms are pairs of numbered GPUs with a word ("XGMI", "PCIE") and a weight; xGMI of weight 15 is one
//            link, more is a way through other GPUs.
// Invariant: every pair has a link type, the same both ways, or the file is refused with the line (or key).
// Reference: ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py (showHwTopology); weights: ROCm/rocm-systems, amd_smi.h.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/printable.h"
#include "sim/load/import/machine_document.h"
#include "sim/load/import/printed_table.h"

namespace lockstep {
namespace {

constexpr std::int64_t weight_of_one_link = 15;

using Pair = std::pair<std::int64_t, std::int64_t>;  // the smaller first

struct Topology {
  std::map<Pair, std::string> types;     // "XGMI", "PCIE"
  std::map<Pair, std::int64_t> weights;  // may be left out
  std::map<std::int64_t, std::int64_t> numa;
  std::map<std::int64_t, std::string> names;
  std::set<std::int64_t> gpus;
};

[[noreturn]] void refuse(const ImportRequest& request, const std::string& place, const std::string& what) {
  throw ConfigError(fmt::format("{}{}: {}", request.file_name, place, what));
}

// Both ways alike, and numbered as GPUs can be.
template <class Value>
void add(std::map<Pair, Value>& values, std::int64_t one, std::int64_t other, Value value, Topology& topology,
         const ImportRequest& request, const std::string& place) {
  for (const std::int64_t gpu : {one, other}) {
    if (gpu < 0 || gpu >= static_cast<std::int64_t>(most_imported_devices))
      refuse(request, place,
             fmt::format("found GPU {}, expected at most {} GPUs", gpu, most_imported_devices));
    topology.gpus.insert(gpu);
  }
  const auto [entry, is_new] = values.emplace(Pair(std::min(one, other), std::max(one, other)), value);
  if (!is_new && entry->second != value)
    refuse(request, place,
           fmt::format("found \"{}\" between GPUs {} and {} and \"{}\" before, expected the same both ways",
                       value, one, other, entry->second));
}

bool is_link_type(const std::string& word) {
  return word == "XGMI" || word == "PCIE";
}

enum class Section { other, weights, types, numa };

class TextReader {
 public:
  explicit TextReader(const ImportRequest& request) : request_(request) {}

  Topology read(const std::string& text) {
    for (const PrintedLine& line : printed_lines(text)) {
      place_ = fmt::format(":{}", line.number);
      if (line.text.find("===") != std::string::npos)
        enter(line.text);
      else
        read_line(line.text);
    }
    return std::move(topology_);
  }

 private:
  void enter(const std::string& title) {
    columns_.clear();
    section_ = title.find("Link Type between") != std::string::npos ? Section::types
               : title.find("Weight between") != std::string::npos  ? Section::weights
                                                                    : Section::other;
  }
  void read_line(const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    if (words.empty())
      return;
    if (text.find(": ") != std::string::npos)
      read_property(text);
    else if (section_ != Section::other && gpu_of(words[0]) >= 0)
      columns_.empty() ? read_header(words) : read_row(words);
  }
  static std::int64_t gpu_of(const std::string& word) {
    return word.starts_with("GPU") ? number_of(std::string_view(word).substr(3)) : -1;
  }
  void read_header(const std::vector<std::string>& words) {
    for (const std::string& word : words) columns_.push_back(gpu_of(word));
  }
  void read_row(const std::vector<std::string>& words);
  void read_property(const std::string& text);

  const ImportRequest& request_;
  Topology topology_ = {};
  Section section_ = Section::other;
  std::vector<std::int64_t> columns_ = {};
  std::string place_ = {};
};

void TextReader::read_row(const std::vector<std::string>& words) {
  if (words.size() != columns_.size() + 1)
    refuse(request_, place_,
           fmt::format("found {} entries, expected one for each of {} GPUs: the listing's lines were cut off",
                       words.size() - 1, columns_.size()));
  const std::int64_t row = gpu_of(words[0]);
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const std::string& word = words[column + 1];
    if (columns_[column] == row) {
      topology_.gpus.insert(row);
      continue;
    }
    if (section_ == Section::types && !is_link_type(word))
      refuse(request_, place_, fmt::format("found \"{}\", expected XGMI or PCIE", printable_name(word)));
    if (section_ == Section::types)
      add(topology_.types, row, columns_[column], word, topology_, request_, place_);
    else if (number_of(word) >= 0)
      add(topology_.weights, row, columns_[column], std::int64_t{number_of(word)}, topology_, request_,
          place_);
  }
}

// "GPU[0]\t\t: (Topology) Numa Node: 0", "GPU 0 : (Topology) Numa Node: 0", "GPU[0] : Card series: AMD Instinct MI300X OAM"
void TextReader::read_property(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::string digits;
  for (const char letter : text.substr(0, colon))
    if (letter >= '0' && letter <= '9')
      digits += letter;
  const std::int64_t gpu = number_of(digits);
  const std::size_t value = text.rfind(": ");
  if (!text.starts_with("GPU") || gpu < 0 || gpu >= static_cast<std::int64_t>(most_imported_devices) ||
      value <= colon)
    return;
  const std::string said = text.substr(text.find_first_not_of(' ', value + 1));
  const std::string_view key = std::string_view(text).substr(colon, value - colon);
  if (key.find("Numa Node") != std::string_view::npos)
    topology_.numa[gpu] = number_of(said);
  else if ((key.find("Card series") != std::string_view::npos ||
            key.find("Card Series") != std::string_view::npos))
    topology_.names[gpu] = said;
}

// "(Topology) Link type between DRM devices 0 and 1"
std::optional<Pair> pair_in(const std::string& key) {
  const std::vector<std::string> words = words_of(key);
  if (words.size() < 3 || words[words.size() - 2] != "and")
    return std::nullopt;
  return Pair(number_of(words[words.size() - 3]), number_of(words.back()));
}

std::string string_of(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_pairs(const nlohmann::ordered_json& system, Topology& topology, const ImportRequest& request) {
  for (const auto& [key, value] : system.items()) {
    const std::optional<Pair> pair = pair_in(key);
    if (!pair)
      continue;
    const std::string place = ": /system/" + printable_name(key);
    const std::string word = string_of(value);
    if (key.find("Link type") != std::string::npos) {
      if (!is_link_type(word))
        refuse(request, place, fmt::format("found \"{}\", expected XGMI or PCIE", printable_name(word)));
      add(topology.types, pair->first, pair->second, word, topology, request, place);
    } else if (key.find("Weight") != std::string::npos && number_of(word) >= 0) {
      add(topology.weights, pair->first, pair->second, std::int64_t{number_of(word)}, topology, request,
          place);
    }
  }
}

Topology read_json(const std::string& text, const ImportRequest& request) {
  const JsonDocument document = JsonDocument::from_text(text, request.file_name);
  Topology topology;
  for (const auto& [name, value] : document.value().items()) {
    const std::int64_t gpu = name.starts_with("card") ? number_of(std::string_view(name).substr(4)) : -1;
    if (name == "system" && value.is_object())
      read_pairs(value, topology, request);
    if (gpu < 0 || gpu >= static_cast<std::int64_t>(most_imported_devices) || !value.is_object())
      continue;
    topology.gpus.insert(gpu);
    for (const auto& [key, said] : value.items()) {
      if (key == "(Topology) Numa Node")
        topology.numa[gpu] = number_of(string_of(said));
      else if (key == "Card series" || key == "Card Series")
        topology.names[gpu] = string_of(said);
    }
  }
  return topology;
}

std::int64_t links_between(const Topology& topology, const Pair& pair) {
  const auto weight = topology.weights.find(pair);
  const bool is_direct = weight == topology.weights.end() || weight->second <= weight_of_one_link;
  return topology.types.at(pair) == "XGMI" && is_direct ? 1 : 0;
}

void check(const Topology& topology, const ImportRequest& request) {
  if (topology.gpus.empty())
    refuse(request, "", "found no GPUs, expected what rocm-smi --showtopo prints");
  const auto count = static_cast<std::int64_t>(topology.gpus.size());
  if (*topology.gpus.rbegin() != count - 1)
    refuse(request, "",
           fmt::format("found {} GPUs, the last of them GPU {}, expected GPUs 0 to {}", count,
                       *topology.gpus.rbegin(), count - 1));
  for (std::int64_t one = 0; one < count; ++one)
    for (std::int64_t other = one + 1; other < count; ++other)
      if (!topology.types.contains({one, other}))
        refuse(
            request, "",
            fmt::format("does not say what joins GPUs {} and {} (Link Type between two GPUs): it was cut off",
                        one, other));
}

MachineFacts facts_of(const Topology& topology, const ImportRequest& request) {
  check(topology, request);
  MachineFacts facts{.library = "rccl", .gpus = topology.gpus.size()};
  facts.peer_links.assign(facts.gpus, std::vector<std::int64_t>(facts.gpus, 0));
  facts.gpu_paths.assign(facts.gpus, std::vector<PciePath>(facts.gpus, PciePath::unknown));
  bool goes_through_others = false;
  for (const auto& [pair, type] : topology.types) {
    const std::int64_t links = links_between(topology, pair);
    goes_through_others |= type == "XGMI" && links == 0;
    facts.peer_links[static_cast<std::size_t>(pair.first)][static_cast<std::size_t>(pair.second)] = links;
    facts.peer_links[static_cast<std::size_t>(pair.second)][static_cast<std::size_t>(pair.first)] = links;
  }
  if (goes_through_others)
    facts.warnings.push_back(fmt::format(
        "{}: some GPUs reach each other through others; how many links a pair has is not printed: "
        "one is taken where it is direct (--set gpu_links.matrix=...)",
        request.file_name));
  for (const std::int64_t gpu : topology.gpus) {
    const auto node = topology.numa.find(gpu);
    facts.numa.push_back(node == topology.numa.end() ? -1 : node->second);
  }
  for (const auto& [gpu, name] : topology.names) facts.gpu_names.push_back(name);
  facts.sockets = count_sockets(facts.numa);
  return facts;
}

Imported import_showtopo(const ImportRequest& request) {
  const std::string text = read_dump(request);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  const Topology topology = is_json ? read_json(text, request) : TextReader(request).read(text);
  const MachineFacts facts = facts_of(topology, request);
  std::vector<KeyUse> keys{
      {"Link Type between two GPUs", KeyFate::used, "gpu_links"},
      {"Weight between two GPUs", KeyFate::used, "gpu_links: 15 is one xGMI link"},
      {"Hops between two GPUs", KeyFate::left_aside, "prints 1 for xGMI of any length"},
      {"Numa Node", facts.sockets > 0 ? KeyFate::used : KeyFate::left_aside,
       facts.sockets > 0 ? "host.sockets" : "its nodes may be parts of sockets"},
      {"Numa Affinity", KeyFate::left_aside, "ranks are taken to run on cores near their GPU"}};
  if (!topology.names.empty())
    keys.push_back({"Card series", KeyFate::used, "gpu"});
  return write_machine(facts, request, std::move(keys));
}

bool recognises_showtopo(std::string_view beginning) {
  return beginning.find("Link Type between two GPUs") != std::string_view::npos ||
         beginning.find("(Topology) Link type between DRM devices") != std::string_view::npos;
}

const Registration<Importer> rocm_smi_topo_registration{
    "rocm_smi_topo",
    {.import = import_showtopo,
     .recognises = recognises_showtopo,
     .makes = ImportedThing::machine,
     .description = "what rocm-smi --showtopo printed, or its JSON",
     .asks_for = machine_questions()}};

}  // namespace
}  // namespace lockstep
