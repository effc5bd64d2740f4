#include "sim/load/read_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/error.h"
#include "sim/load/import/chakra_program.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// From the working directory, else from the scenario's folder.
std::string found_prefix(const std::string& name, const std::string& folder) {
  const std::string beside = (fs::path(folder) / name).string();
  for (const std::string& path : {name, beside})
    if (is_there(path) || is_there(chakra_file_of(path, 0)))
      return chakra_prefix(path);
  return name;
}

// The same GPUs of every node that it is on.
bool sits_alike(const std::vector<Rank>& group, std::uint32_t gpus_per_node) {
  std::vector<std::uint32_t> gpus;
  for (const Rank rank : group)
    if (rank.index / gpus_per_node == group.front().index / gpus_per_node)
      gpus.push_back(rank.index % gpus_per_node);
  for (std::size_t i = 0; i < group.size(); ++i)
    if (group.size() % gpus.size() != 0 || group[i].index % gpus_per_node != gpus[i % gpus.size()] ||
        group[i].index / gpus_per_node != group[i - i % gpus.size()].index / gpus_per_node)
      return false;
  return true;
}

void check_groups(const JsonReader& json, const Program& program, const ClusterSpec& cluster) {
  const auto gpus = static_cast<std::uint32_t>(cluster.gpus_per_node);
  for (const ListedGroups& set : program.sets)
    for (const std::vector<Rank>& group : set.groups)
      if (!sits_alike(group, gpus))
        return json.problem(fmt::format(
            "the group of ranks {} to {} does not sit at the same GPUs of each node that it is on, with {} "
            "GPUs a node",
            group.front().index, group.back().index, gpus));
}

// Of kernels that state what they do, and no time.
bool is_priced(const Program& program) {
  const auto is_work = [](const ProgramNode& node) { return node.work.flops > 0; };
  const auto has_work = [&](const ProgramStep& step) {
    return std::any_of(step.nodes.begin(), step.nodes.end(), is_work);
  };
  return std::any_of(
      program.programs.begin(), program.programs.end(), [&](const RankProgram& program_of_rank) {
        return std::any_of(program_of_rank.steps.begin(), program_of_rank.steps.end(), has_work);
      });
}

void check_precision(const JsonReader& json, const Scenario& scenario) {
  const auto& peak = scenario.cluster.gpu.peak;
  if (is_priced(*scenario.program) && !peak.contains(multiplied_as(scenario.model.precision)))
    json.problem(fmt::format(
        "its kernels state FLOPs and no time, and GPU {} states no peak of {}; expected precision, "
        "one that it knows",
        scenario.cluster.gpu.name, name_of(scenario.model.precision, precision_spellings)));
}

}  // namespace

void read_program(const JsonReader& json, const Place& place, Scenario& scenario) {
  scenario.model.name = "a plan of its own";
  scenario.model.measured = MeasuredModel{};
  scenario.model.batch_per_gpu = 0;
  scenario.model.precision = spelled_or(json, "precision", Precision::bf16, precision_spellings);
  if (!json.optional("precision"))
    (place / "precision").note("default (of kernels that state FLOPs and no time)");
  const std::string groups = text_or(json, "groups", "");
  const JsonReader name = json.required("chakra");
  const std::string stated = name.is_missing() ? "" : name.text();
  json.finish();
  if (stated.empty() || scenario.cluster.machine.name.empty())
    return;
  try {
    const std::string prefix = found_prefix(stated, place.context.folder);
    const bool is_beside = !groups.empty() && !is_there(groups);
    ChakraReading reading =
        read_chakra_program(prefix, is_beside ? (fs::path(place.context.folder) / groups).string() : groups);
    place.context.add_warnings(reading.warnings);
    const auto ranks = static_cast<std::int64_t>(reading.program.program_of.size());
    if (ranks != scenario.cluster.ranks())
      return name.problem(fmt::format("found traces of {} ranks, but the cluster has {} nodes of {} GPUs",
                                      ranks, scenario.cluster.nodes, scenario.cluster.gpus_per_node));
    check_groups(name, reading.program, scenario.cluster);
    scenario.program = std::make_shared<const Program>(std::move(reading.program));
    check_precision(name, scenario);
  } catch (const ConfigError& error) {
    place.context.add_problems(error.problems);
  }
}

}  // namespace lockstep
