// MLCommons Chakra execution traces (schema 1.0, and 0.0.4 as ASTRA-sim's examples are): a scenario whose plan they are.
//
// One file of a row NAME.RANK.et is read here; the others when the scenario is loaded. A trace does not say on which
// machine it ran: that is asked for.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/error.h"
#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_program.h"
#include "sim/load/import/import_file.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// As many nodes as it takes, where the machine is known and its GPUs divide the ranks.
void add_cluster(const ImportRequest& request, std::uint32_t ranks, ordered_json& document) {
  const ordered_json cluster = request.stated.value("cluster", ordered_json::object());
  if (!cluster.is_object() || !cluster.contains("machine") || !cluster["machine"].is_string() ||
      cluster.contains("nodes") || request.profiles == nullptr)
    return;
  const ordered_json* machine =
      request.profiles->find(ShelfKind::machine, cluster["machine"].get<std::string>());
  const std::int64_t gpus = machine == nullptr ? 0 : machine->value("gpus", std::int64_t{0});
  const std::int64_t each = cluster.value("gpus_per_node", std::min<std::int64_t>(gpus, ranks));
  if (each > 0 && ranks % each == 0)
    document["cluster"] = {{"nodes", ranks / each}, {"gpus_per_node", each}};
}

Imported import_chakra(const ImportRequest& request) {
  const std::string bytes = read_whole(request);
  if (!begins_as_chakra(bytes))
    refuse_file(bytes, request, "a Chakra execution trace");
  const std::string prefix = chakra_prefix(request.file_name);
  Imported imported{.document = {{"name", std::filesystem::path(prefix).filename().string()}},
                    .keys = account_of_chakra(bytes, request.file_name)};
  if (imported.keys.empty())
    throw ConfigError(fmt::format("{}: found a trace without nodes", request.file_name));
  add_cluster(request, std::max(count_chakra_files(prefix), 1u), imported.document);
  imported.document["plan"] = {{"chakra", prefix}};
  imported.questions.push_back(
      {"cluster.machine", "dgx_h100", "a trace does not say on which machine its ranks run"});
  return imported;
}

// A file that is of no row stands for itself, to be told what was expected.
std::string first_file(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string prefix = chakra_prefix(path);
  const std::string first = chakra_file_of(prefix, 0);
  std::error_code ignored;
  const bool is_alone = prefix == path && !fs::exists(first, ignored) && fs::is_regular_file(path, ignored);
  return path == "-" || is_alone ? path : first;
}

const Registration<Importer> chakra_registration{
    "chakra",
    Importer{.import = import_chakra,
             .recognises = begins_as_chakra,
             .makes = ImportedThing::scenario,
             .description =
                 "MLCommons Chakra execution traces, one file a rank: NAME of NAME.0.et, or their folder",
             .asks_for = {"cluster"},
             .first_file = first_file}};

}  // namespace
}  // namespace lockstep
