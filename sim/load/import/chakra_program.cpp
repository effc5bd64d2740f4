#include "sim/load/import/chakra_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/printable.h"
#include "sim/load/import/chakra_checks.h"
#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_rank.h"
#include "sim/load/import/import_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".et";
constexpr std::uint32_t most_files = 1'000'000;
constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;

// "NAME" of "NAME.12.et"; empty: it is not called so.
std::string name_before_rank(const std::string& path) {
  if (!path.ends_with(suffix))
    return "";
  const std::string stem = path.substr(0, path.size() - suffix.size());
  const std::size_t dot = stem.rfind('.');
  const bool is_numbered = dot != stem.npos && dot + 1 < stem.size() &&
                           std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(dot) + 1, stem.end(),
                                       [](char c) { return c >= '0' && c <= '9'; });
  return is_numbered ? stem.substr(0, dot) : "";
}

std::string prefix_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator file(folder, ignored), end; !ignored && file != end; file.increment(ignored))
    if (const std::string name = name_before_rank(file->path().string()); !name.empty())
      names.insert(name);
  if (names.size() != 1)
    throw ConfigError(
        fmt::format("{}: found {} rows of files NAME.0.et, NAME.1.et, ... in this folder; expected one",
                    folder, names.size()));
  return *names.begin();
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream file = open_import_file(path);
  std::error_code ignored;
  if (const auto size = fs::file_size(path, ignored); !ignored && size > largest_file)
    throw ConfigError(fmt::format("{}: found {} bytes, expected at most 1 GiB", path, size));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Equal programs are kept once.
class ProgramShelf {
 public:
  explicit ProgramShelf(Program& program) : program_(program) {}

  std::uint32_t keep(RankProgram program) {
    std::vector<std::uint32_t>& alike = by_fingerprint_[fingerprint(program)];
    for (const std::uint32_t known : alike)
      if (program_.programs[known] == program)
        return known;
    alike.push_back(static_cast<std::uint32_t>(program_.programs.size()));
    program_.programs.push_back(std::move(program));
    return alike.back();
  }

 private:
  static std::uint64_t fingerprint(const RankProgram& program) {
    std::uint64_t hash = program.steps.size();
    const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u; };
    for (const ProgramStep& step : program.steps) {
      mix(step.dependencies.size());
      for (const ProgramNode& node : step.nodes) {
        mix(static_cast<std::uint64_t>(node.work.duration.picoseconds()));
        mix(static_cast<std::uint64_t>(node.bytes.count()));
        mix(node.set);
      }
    }
    return hash;
  }

  Program& program_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_fingerprint_;
};

std::vector<std::string> warnings_of(const ChakraTables& tables) {
  std::vector<std::string> warnings;
  for (const auto& [type, count] : tables.left_aside)
    warnings.push_back(fmt::format("{} nodes of type {} state no time, and take none", count, type));
  return warnings;
}

}  // namespace

std::string chakra_prefix(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return prefix_in(path);
  const std::string name = name_before_rank(path);
  return name.empty() ? path : name;
}

std::string chakra_file_of(const std::string& prefix, std::uint32_t rank) {
  return fmt::format("{}.{}{}", prefix, rank, suffix);
}

std::string chakra_groups_file(const std::string& prefix) {
  return prefix + ".groups.json";
}

std::uint32_t count_chakra_files(const std::string& prefix) {
  std::uint32_t count = 0;
  std::error_code ignored;
  while (count < most_files && fs::exists(chakra_file_of(prefix, count), ignored)) ++count;
  return count;
}

ChakraReading read_chakra_program(const std::string& prefix, const std::string& groups_file) {
  ChakraTables tables;
  tables.ranks = count_chakra_files(prefix);
  if (tables.ranks == 0)
    throw ConfigError(fmt::format("{}: there is no such file; expected one for each rank, from 0 on",
                                  chakra_file_of(prefix, 0)));
  const std::string beside = chakra_groups_file(prefix);
  std::error_code ignored;
  if (!groups_file.empty() || fs::exists(beside, ignored)) {
    const std::string& file = groups_file.empty() ? beside : groups_file;
    tables.groups.add_all(JsonDocument::from_file(file).value(), file);
  }
  ProgramShelf shelf(tables.program);
  for (std::uint32_t rank = 0; rank < tables.ranks; ++rank) {
    const std::string file = chakra_file_of(prefix, rank);
    ChakraRank read = read_chakra_rank(bytes_of_file(file), file, rank, tables);
    if (rank == 0)
      tables.program.steps = read.steps;
    if (read.steps != tables.program.steps || (rank > 0 && read.is_exact != tables.program.steps_overlap))
      throw ConfigError(
          fmt::format("{}: found {} iterations, but rank 0 has {}", file, read.steps, tables.program.steps));
    tables.program.steps_overlap = read.is_exact;
    tables.program.program_of.push_back(shelf.keep(std::move(read.program)));
  }
  tables.program.source = prefix;
  tables.program.sets = tables.groups.sets(tables.ranks, prefix);
  check_chakra_program(tables.program, prefix);
  return {std::move(tables.program), warnings_of(tables)};
}

std::vector<KeyUse> account_of_chakra(std::string_view bytes, const std::string& file_name) {
  std::map<std::uint32_t, std::size_t> types;
  std::map<std::string, std::size_t> attributes;
  read_chakra(bytes, file_name, [&](const ChakraNode& node) {
    ++types[node.type];
    for (const ChakraAttribute& attribute : node.attributes) ++attributes[attribute.name];
  });
  static const std::map<std::string, std::string, std::less<>> used{
      {"is_cpu_op", "whose lane a node runs on"},
      {"comm_type", "which collective"},
      {"comm_size", "what a rank puts in"},
      {"comm_src", "who sends"},
      {"comm_dst", "who receives"},
      {"comm_tag", "which message"},
      {"pg_name", "which group"},
      {"involved_dim", "all ranks, if all"},
      {"num_ops", "FLOPs, where a kernel states no time"},
      {"tensor_size", "bytes that it moves"}};
  std::vector<KeyUse> uses;
  for (const auto& [type, count] : types) {
    const bool is_known = type < std::size(chakra_node_types);
    uses.push_back({.key = is_known ? std::string(chakra_node_types[type]) : fmt::format("type {}", type),
                    .fate = is_known ? KeyFate::used : KeyFate::refused,
                    .said = is_known ? fmt::format("{} nodes", count) : "is no type of Chakra's"});
  }
  for (const auto& [name, count] : attributes) {
    const auto found = used.find(name);
    const bool is_ours = name.starts_with("lockstep.");
    uses.push_back({.key = printable_name("attr." + name),
                    .fate = found != used.end() || is_ours ? KeyFate::used : KeyFate::left_aside,
                    .said = found != used.end() ? found->second
                            : is_ours           ? "as it was exported"
                                                : "changes nothing of when a node runs"});
  }
  return uses;
}

}  // namespace lockstep
