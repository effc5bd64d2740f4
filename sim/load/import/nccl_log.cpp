// What a program prints under NCCL_DEBUG=INFO (subsystems INIT, GRAPH, TUNING, COLL as they were asked for): who talks to
// whom over what, and what NCCL chose for each size.
//
// Idea:      lines are told by their words, wherever a launcher put its own before them; what several ranks print alike
//            counts once. It makes no machine: its document (lockstep.nccl_log/1) lists what was logged, and with
//            --set machine=NAME the verb sets what Lockstep chooses there beside it.
// Invariant: one line in memory; at most 10,000 different choices and 1,024 rings are kept; more are counted.
// Reference: NVIDIA/nccl, src/init.cc ("Channel %02d/%02d", "Trees", "coll channels"), src/enqueue.cc ("Bytes -> Algo"),
//            src/transport/*.cc ("via").

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/load/import/import_file.h"
#include "sim/load/import/printed_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t longest_line = std::size_t{1} << 16;
constexpr std::size_t most_choices = 10'000;
constexpr std::size_t most_rings = 1024;

constexpr std::array<std::string_view, 7> algorithms{"tree", "ring",      "collnet", "collnet_chain",
                                                     "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> protocols{"ll", "ll128", "simple"};

// Past `words`; empty where they do not stand.
std::string_view after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + words.size());
}

std::string first_word(std::string_view text) {
  const std::vector<std::string> words = words_of(text.substr(0, 256));
  return words.empty() ? "" : words.front();
}

std::int64_t number_after(std::string_view text, std::string_view words) {
  const std::string word = first_word(after(text, words));
  return number_of(
      std::string_view(word).substr(0, std::min(word.find_first_not_of("0123456789"), word.size())));
}

// "4 Bytes", "1073741824 Bytes"; -1: more digits than any size has.
std::int64_t size_of(const std::string& word) {
  const bool is_size =
      !word.empty() && word.size() <= 18 && word.find_first_not_of("0123456789") == std::string::npos;
  return is_size ? std::stoll(word) : -1;
}

// "1", "RING", "COLLNET_DIRECT" as Lockstep calls it; empty: nothing known.
template <std::size_t count>
std::string name_in(const std::array<std::string_view, count>& names, std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (word == "collnet_direct")
    return "collnet";
  if (const long number = number_of(word); number >= 0)
    return static_cast<std::size_t>(number) < count ? std::string(names[static_cast<std::size_t>(number)])
                                                    : "";
  const auto found = std::find(names.begin(), names.end(), word);
  return found == names.end() ? "" : std::string(*found);
}

std::string collective_in(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> names{
      {{"AllReduce: ", "all_reduce"},
       {"AllGather: ", "all_gather"},
       {"ReduceScatter: ", "reduce_scatter"},
       {"Broadcast: ", "broadcast"},
       {"Reduce: ", "reduce"}}};
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& entry) { return text.starts_with(entry.first); });
  return found == names.end() ? "" : std::string(found->second);
}

struct LoggedChoice {
  std::string collective;  // empty: the release does not print it
  std::int64_t bytes = 0;
  std::string algorithm;
  std::string protocol;
  std::int64_t channels = 0;  // 0: not printed
  auto operator<=>(const LoggedChoice&) const = default;

  // Releases that print channels (2.23 on) print what one rank gives or gets, earlier ones the whole buffer.
  bool is_of_one_rank() const {
    return channels > 0 && (collective == "all_gather" || collective == "reduce_scatter");
  }
};

struct LoggedCommunicator {
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  auto operator<=>(const LoggedCommunicator&) const = default;
};

class LogReader {
 public:
  void read(std::string_view line) {
    read_version(line);
    const std::string_view text = after(line, "NCCL INFO ");
    if (text.empty())
      return;
    ++lines_;
    const bool is_known = read_environment(text) || read_communicator(text) || read_ring(text) ||
                          read_tree(text) || read_connection(text) || read_channels(text) ||
                          read_choice(text) || read_collective(text) || read_network(text);
    other_lines_ += is_known ? 0 : 1;
    if (text.find("comm 0x") != std::string_view::npos && hosts_.size() < most_choices)
      hosts_.insert(host_in(line.substr(0, line.size() - text.size())));
  }

  bool is_log() const { return lines_ > 0 || !version_.empty(); }
  ordered_json document(const std::string& stated_collective) const;
  std::string report(const ordered_json& document) const;
  std::vector<KeyUse> keys() const;
  std::vector<std::string> warnings(const std::string& file) const;

 private:
  // Of "host:pid:tid [device] NCCL INFO", behind what a launcher puts before it.
  static std::string host_in(std::string_view prefix) {
    std::string host;
    for (const std::string& word : words_of(prefix))
      if (std::count(word.begin(), word.end(), ':') == 2)
        host = word.substr(0, std::min<std::size_t>(word.find(':'), 255));
    return host;
  }
  void read_version(std::string_view line);
  bool read_environment(std::string_view text);
  bool read_communicator(std::string_view text);
  bool read_ring(std::string_view text);
  bool read_tree(std::string_view text);
  bool read_connection(std::string_view text);
  bool read_channels(std::string_view text);
  bool read_choice(std::string_view text);
  bool read_collective(std::string_view text);
  bool read_network(std::string_view text);
  bool has_several_sizes() const;
  std::string only_collective() const { return collectives_.size() == 1 ? *collectives_.begin() : ""; }

  std::string library_ = "nccl";
  std::string version_ = {};
  std::string network_ = {};
  std::map<std::string, std::string> environment_ = {};
  std::set<LoggedCommunicator> communicators_ = {};
  std::map<std::string, std::int64_t> channels_ = {};  // "coll": 24
  std::set<std::string> rings_ = {};                   // "05/16: 0 7 6 13 ..."
  std::set<std::string> trees_ = {};
  std::map<std::string, std::int64_t> transports_ = {};
  std::map<LoggedChoice, std::int64_t> choices_ = {};
  std::set<std::string> collectives_ = {};
  std::set<std::string> hosts_ = {};
  std::int64_t dropped_choices_ = 0;
  std::int64_t lines_ = 0;
  std::int64_t other_lines_ = 0;
};

// "NCCL version 2.18.3+cuda12.1", "RCCL version 2.18.3+hip6.0"
void LogReader::read_version(std::string_view line) {
  for (const std::string_view library : {"NCCL version ", "RCCL version "}) {
    const std::string word = first_word(after(line, library));
    const std::string version = word.substr(0, word.find_first_not_of("0123456789."));
    if (!version_.empty() || std::count(version.begin(), version.end(), '.') < 1)
      continue;
    version_ = version;
    library_ = library.starts_with("R") ? "rccl" : "nccl";
  }
}

// "NCCL_ALGO set by environment to Ring."
bool LogReader::read_environment(std::string_view text) {
  const std::string_view value = after(text, " set by environment to ");
  if (value.empty() || !text.starts_with("NCCL_") || environment_.size() >= most_rings)
    return false;
  std::string said = printable_name(value.substr(0, 200));
  if (said.ends_with('.'))
    said.pop_back();
  environment_[first_word(text)] = said;
  return true;
}

// "comm 0x5558 rank 13 nRanks 16 nNodes 2 localRanks 8 ...", "comm 0x5a0c rank 1 nranks 4 cudaDev 1 ... - Init COMPLETE"
bool LogReader::read_communicator(std::string_view text) {
  if (text.find("comm 0x") == std::string_view::npos || text.find(" rank ") == std::string_view::npos)
    return false;
  const std::int64_t ranks = std::max(number_after(text, " nranks "), number_after(text, " nRanks "));
  if (ranks < 1 || communicators_.size() >= most_rings)
    return false;
  communicators_.insert({.ranks = ranks, .nodes = std::max<std::int64_t>(number_after(text, " nNodes "), 0)});
  return true;
}

// "Channel 05/16 :    0   7   6  13", but not "Channel 05/0 : 0[0] -> 1[1] via ..."
bool LogReader::read_ring(std::string_view text) {
  const std::size_t colon = text.find(" :");
  if (!text.starts_with("Channel ") || colon == std::string_view::npos ||
      text.find("->") != std::string_view::npos)
    return false;
  const std::vector<std::string> ranks = words_of(text.substr(colon + 2));
  const bool are_ranks =
      !ranks.empty() &&
      std::all_of(ranks.begin(), ranks.end(), [](const std::string& word) { return number_of(word) >= 0; });
  if (are_ranks && rings_.size() < most_rings)
    rings_.insert(fmt::format("{}: {}", first_word(text.substr(8)), fmt::join(ranks, " ")));
  return are_ranks;
}

// "Trees [0] 14/-1/-1->12->11 [1] ..."
bool LogReader::read_tree(std::string_view text) {
  if (!text.starts_with("Trees ["))
    return false;
  for (const std::string& word : words_of(text))
    if (word.starts_with("["))
      trees_.insert(word.substr(0, 8));
  return true;
}

// "Channel 00/0 : 16[0] -> 0[0] [receive] via NET/IB/7/GDRDMA": what joins them, without the device's number.
bool LogReader::read_connection(std::string_view text) {
  const std::string via = first_word(after(text, " via "));
  if (!text.starts_with("Channel ") && !text.starts_with("Ring "))
    return false;
  if (via.empty() || text.find("->") == std::string_view::npos)
    return false;
  std::string kind;
  for (std::size_t at = 0; at <= via.size();) {
    const std::size_t end = std::min(via.find('/', at), via.size());
    const std::string part = via.substr(at, end - at);
    if (number_of(part) < 0)
      kind += (kind.empty() ? "" : "/") + part;
    at = end + 1;
  }
  if (transports_.size() < most_rings)
    ++transports_[printable_name(std::string_view(kind).substr(0, 64))];
  return true;
}

// "24 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer"
bool LogReader::read_channels(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  if (words.size() < 3 || words[1] != "coll" || !words[2].starts_with("channels"))
    return false;
  for (std::size_t at = 0; at + 2 < words.size(); at += 3)
    if (const long count = number_of(words[at]); count >= 0 && words[at + 2].starts_with("channels"))
      channels_.emplace(printable_name(words[at + 1]),
                        count);  // the first of a kind: the last one is per peer
  return true;
}

// "4 Bytes -> Algo 0 proto 0 time 25.200462", "AllReduce: 4 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}"
bool LogReader::read_choice(std::string_view text) {
  const std::size_t arrow = text.find(" Bytes -> Algo ");
  if (arrow == std::string_view::npos)
    return false;
  const std::vector<std::string> before = words_of(text.substr(0, arrow));
  const std::string_view chosen = text.substr(arrow);
  LoggedChoice choice{.collective = collective_in(text),
                      .bytes = before.empty() ? -1 : size_of(before.back()),
                      .algorithm = name_in(algorithms, first_word(after(chosen, "Algo "))),
                      .protocol = name_in(protocols, first_word(after(chosen, "proto ")))};
  const std::string_view range = after(chosen, "={");
  if (const long last = number_after(range, ".."); last >= 0)
    choice.channels = last - std::max(0L, number_of(range.substr(0, range.find('.')))) + 1;
  if (choice.bytes < 0 || choice.algorithm.empty() || choice.protocol.empty())
    return false;
  if (choices_.size() < most_choices || choices_.contains(choice))
    ++choices_[choice];
  else
    ++dropped_choices_;
  return true;
}

// "AllReduce: opCount 1e7 sendbuff ... count 18816 datatype 7 ..."
bool LogReader::read_collective(std::string_view text) {
  const std::string collective = collective_in(text);
  if (collective.empty() || text.find(" opCount ") == std::string_view::npos)
    return false;
  collectives_.insert(collective);
  return true;
}

bool LogReader::read_network(std::string_view text) {
  if (!text.starts_with("Using network ") || !network_.empty())
    return text.starts_with("Using network ");
  network_ = printable_name(first_word(after(text, "Using network ")));
  return true;
}

ordered_json LogReader::document(const std::string& stated_collective) const {
  ordered_json document{{"schema", "lockstep.nccl_log/1"}, {"library", library_}, {"version", version_}};
  const LoggedCommunicator largest = communicators_.empty() ? LoggedCommunicator{} : *communicators_.rbegin();
  const std::int64_t nodes = largest.nodes > 0 ? largest.nodes : static_cast<std::int64_t>(hosts_.size());
  document["ranks"] = largest.ranks;
  document["nodes"] = nodes;
  document["network"] = network_;
  document["channels"] = channels_;
  document["rings"] = rings_;
  document["trees"] = trees_.size();
  document["transports"] = transports_;
  document["environment"] = environment_;
  document["choices"] = ordered_json::array();
  for (const auto& [choice, times] : choices_) {
    const std::string unsaid = stated_collective.empty() ? only_collective() : stated_collective;
    document["choices"].push_back({{"collective", choice.collective.empty() ? unsaid : choice.collective},
                                   {"bytes", choice.bytes},
                                   {"of_one_rank", choice.is_of_one_rank()},
                                   {"algorithm", choice.algorithm},
                                   {"protocol", choice.protocol},
                                   {"channels", choice.channels},
                                   {"times", times}});
  }
  return document;
}

std::string LogReader::report(const ordered_json& document) const {
  const auto list = [](const auto& entries) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : entries) parts.push_back(fmt::format("{} {}", name, value));
    return parts.empty() ? std::string("none logged") : fmt::format("{}", fmt::join(parts, ", "));
  };
  std::string text =
      fmt::format("{} {}, {} ranks on {} nodes{}\n", library_ == "nccl" ? "NCCL" : "RCCL",
                  version_.empty() ? "(version not logged)" : version_, document["ranks"].get<std::int64_t>(),
                  document["nodes"].get<std::int64_t>(), network_.empty() ? "" : ", network " + network_);
  text += fmt::format("channels:    {}\n", list(channels_));
  text += fmt::format("connections: {}\n", list(transports_));
  text += fmt::format("environment: {}\n", list(environment_));
  text += fmt::format("rings:       {}, trees: {}\n", rings_.size(), trees_.size());
  for (const std::string& ring : rings_) text += fmt::format("  {}\n", ring);
  if (choices_.empty())
    text += "choices:     none logged (NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING,COLL logs them)\n";
  else
    text += fmt::format("{:<16} {:>14}  {:<13}  {:<8}  {:>8}\n", "collective", "bytes", "algorithm",
                        "protocol", "channels");
  for (const ordered_json& choice : document["choices"])
    text += fmt::format("{:<16} {:>14}  {:<13}  {:<8}  {:>8}\n", choice["collective"].get<std::string>(),
                        choice["bytes"].get<std::int64_t>(), choice["algorithm"].get<std::string>(),
                        choice["protocol"].get<std::string>(),
                        choice["channels"] == 0 ? "-" : choice["channels"].dump());
  return text;
}

std::vector<KeyUse> LogReader::keys() const {
  return {{"NCCL version", version_.empty() ? KeyFate::left_aside : KeyFate::used,
           version_.empty() ? "not logged" : "version"},
          {"comm ... rank", KeyFate::used, "ranks, nodes"},
          {"Channel NN/MM : ranks", KeyFate::used, "rings"},
          {"Trees", KeyFate::used, "trees"},
          {"Channel ... via", KeyFate::used, "transports"},
          {"coll channels", KeyFate::used, "channels"},
          {"Bytes -> Algo", KeyFate::used, "choices"},
          {"set by environment", KeyFate::used, "environment"},
          {fmt::format("{} other lines of NCCL INFO", other_lines_), KeyFate::left_aside,
           "say nothing of what was chosen"}};
}

// A line that does not say how many nodes says nothing of another communicator.
bool LogReader::has_several_sizes() const {
  const auto differ = [](const LoggedCommunicator& one, const LoggedCommunicator& next) {
    return one.ranks != next.ranks || (one.nodes > 0 && one.nodes != next.nodes);
  };
  return std::adjacent_find(communicators_.begin(), communicators_.end(), differ) != communicators_.end();
}

std::vector<std::string> LogReader::warnings(const std::string& file) const {
  std::vector<std::string> warnings;
  if (has_several_sizes())
    warnings.push_back(fmt::format(
        "{}: holds communicators of several sizes: the largest is named, choices are of all of them", file));
  if (dropped_choices_ > 0)
    warnings.push_back(fmt::format("{}: logs more than {} different choices: {} lines are left out", file,
                                   most_choices, dropped_choices_));
  return warnings;
}

// A line's beginning: what is longer is passed over.
bool next_line(std::istream& file, std::string& line) {
  line.resize(longest_line);
  file.getline(line.data(), static_cast<std::streamsize>(line.size()));
  const auto read = static_cast<std::size_t>(file.gcount());
  if (read == 0)
    return false;
  const bool is_cut = file.fail() && !file.eof();
  if (is_cut) {
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  line.resize(std::find(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(read), '\0') - line.begin());
  return true;
}

Imported import_log(const ImportRequest& request) {
  if (request.file.peek() == std::istream::traits_type::eof())
    throw ConfigError(fmt::format("{}: found an empty file", request.file_name));
  LogReader reader;
  for (std::string line; next_line(request.file, line);)
    for (const PrintedLine& part : printed_lines(line)) reader.read(part.text);
  if (request.file.bad())
    throw ConfigError(fmt::format("{}: cannot be read", request.file_name));
  if (!reader.is_log())
    throw ConfigError(fmt::format("{}: found no line of NCCL_DEBUG=INFO, expected some with \"NCCL INFO\"",
                                  request.file_name));
  const ordered_json stated = request.stated.value("collective", ordered_json());
  Imported imported{.document = reader.document(stated.is_string() ? stated.get<std::string>() : ""),
                    .keys = reader.keys()};
  imported.warnings = reader.warnings(request.file_name);
  imported.report = reader.report(imported.document);
  for (const char* key : {"machine", "nodes", "collective"})
    if (request.stated.contains(key))
      imported.answered.emplace_back(key);
  return imported;
}

const Registration<Importer> nccl_log_registration{"nccl_log",
                                                   {.import = import_log,
                                                    .makes = ImportedThing::log,
                                                    .description = "what NCCL printed under NCCL_DEBUG=INFO",
                                                    .asks_for = {"machine", "nodes", "collective"}}};

}  // namespace
}  // namespace lockstep
