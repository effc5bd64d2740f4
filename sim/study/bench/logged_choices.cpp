#include "sim/study/bench/logged_choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/report/text_table.h"
#include "sim/study/bench/collective_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// A single name that the log's environment forced, as NCCL_ALGO=Ring does; "auto": none, or a list.
std::string forced(const ordered_json& log, const char* variable, std::vector<std::string>& warnings) {
  const std::string said = log.value("environment", ordered_json::object()).value(variable, "");
  std::string name;
  for (const char letter : said) name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (name == "nvlstree")
    name = "nvls_tree";
  const bool is_one = name == "ring" || name == "tree" || name == "nvls" || name == "nvls_tree" ||
                      name == "pat" || name == "ll" || name == "ll128" || name == "simple";
  if (!name.empty() && !is_one)
    warnings.push_back(fmt::format("{}={} was set: it is not forced here", variable, said));
  return is_one ? name : "auto";
}

CollectiveSetting setting_of(const ordered_json& log, const LoggedSetting& setting,
                             std::vector<std::string>& warnings) {
  const std::int64_t ranks = log.at("ranks");
  const std::int64_t nodes = setting.nodes > 0 ? setting.nodes : log.at("nodes").get<std::int64_t>();
  if (ranks < 1 || nodes < 1 || ranks % nodes != 0)
    throw ConfigError(fmt::format(
        "found {} ranks on {} nodes logged, expected as many on each: --set nodes=N says how many nodes",
        ranks, nodes));
  const std::string version = log.value("version", "");
  const bool is_known = parse_nccl_version(version).has_value();
  if (!is_known)
    warnings.emplace_back("the log names no release of NCCL: the newest known one chooses");
  return {.machine = setting.machine,
          .nodes = nodes,
          .gpus_per_node = ranks / nodes,
          .algorithm = forced(log, "NCCL_ALGO", warnings),
          .protocol = forced(log, "NCCL_PROTO", warnings),
          .library = log.value("library", ""),
          .library_version = is_known ? version : ""};
}

ComparedChoice compare(const ordered_json& logged, CollectiveOp op, const Communicator& world,
                       const Scenario& scenario) {
  const CommunicationSpec& wanted = scenario.communication;
  const std::int64_t parts = logged.value("of_one_rank", false) ? world.ranks() : 1;
  const Choice here = choose_collective({.world = world,
                                         .op = op,
                                         .bytes = Bytes{logged.at("bytes").get<std::int64_t>()} * parts,
                                         .library = wanted.library,
                                         .library_version = wanted.library_version,
                                         .algorithm = wanted.algorithm,
                                         .protocol = wanted.protocol});
  return {.collective = logged.at("collective"),
          .bytes = logged.at("bytes"),
          .logged = {logged.at("algorithm"), logged.at("protocol"), logged.at("channels")},
          .here = {here.algorithm, here.protocol_name, here.channels}};
}

std::string channels_text(std::int64_t channels) {
  return channels == 0 ? "-" : std::to_string(channels);
}

ordered_json to_json(const ChosenHow& how) {
  return {{"algorithm", how.algorithm},
          {"protocol", how.protocol},
          {"channels", how.channels == 0 ? ordered_json(nullptr) : ordered_json(how.channels)}};
}

std::int64_t count_alike(const ComparedChoices& compared) {
  return std::count_if(compared.choices.begin(), compared.choices.end(),
                       [](const ComparedChoice& choice) { return choice.is_alike(); });
}

void warn_of_multicast(const ordered_json& log, ComparedChoices& compared) {
  const ordered_json channels = log.value("channels", ordered_json::object());
  const bool multicasts_here =
      std::any_of(compared.choices.begin(), compared.choices.end(),
                  [](const ComparedChoice& choice) { return choice.here.algorithm.starts_with("nvls"); });
  if (multicasts_here && channels.value("nvls", std::int64_t{1}) == 0)
    compared.warnings.emplace_back(
        "the log has no NVLS channels, which are chosen here: NVLS was off (NCCL_NVLS_ENABLE=0), or its "
        "driver denies multicast");
}

}  // namespace

ComparedChoices compare_logged_choices(const ordered_json& log, const LoggedSetting& setting,
                                       const ProfileStore& store) {
  ComparedChoices compared{.machine = setting.machine};
  const CollectiveSetting where = setting_of(log, setting, compared.warnings);
  compared.nodes = where.nodes;
  compared.gpus_per_node = *where.gpus_per_node;
  const LoadedScenario scenario = load_collective_setting(where, store);
  const CollectiveBench bench(scenario);
  compared.channels = bench.world().channels();
  compared.logged_channels = log.value("channels", ordered_json::object()).value("coll", std::int64_t{0});
  std::int64_t unknown = 0;
  for (const ordered_json& choice : log.at("choices")) {
    const CollectiveOp* op = find_collective_op(choice.at("collective").get<std::string>());
    if (op == nullptr || choice.at("bytes") == 0)
      ++unknown;
    else
      compared.choices.push_back(compare(choice, *op, bench.world(), scenario));
  }
  if (unknown > 0)
    compared.warnings.push_back(fmt::format(
        "{} choices are not compared: they are of no bytes, or the log does not name their collective "
        "(--set collective=all_reduce)",
        unknown));
  warn_of_multicast(log, compared);
  return compared;
}

std::string to_text(const ComparedChoices& compared) {
  std::string text = fmt::format("beside {} x {} GPUs of {}: {} channels logged, {} here", compared.nodes,
                                 compared.gpus_per_node, compared.machine,
                                 channels_text(compared.logged_channels), compared.channels);
  if (compared.choices.empty())
    return text + "\n";
  text += fmt::format("; {} of {} choices alike\n", count_alike(compared), compared.choices.size());
  TextTable table({Align::left, Align::right, Align::left, Align::left, Align::right, Align::left,
                   Align::left, Align::right, Align::left});
  table.add_row({"collective", "bytes", "logged", "", "channels", "here", "", "channels", ""});
  for (const ComparedChoice& choice : compared.choices)
    table.add_row({choice.collective, grouped(choice.bytes), choice.logged.algorithm, choice.logged.protocol,
                   channels_text(choice.logged.channels), choice.here.algorithm, choice.here.protocol,
                   channels_text(choice.here.channels), choice.is_alike() ? "" : "differs"});
  return text + table.text(2);
}

ordered_json to_json(const ComparedChoices& compared) {
  ordered_json choices = ordered_json::array();
  for (const ComparedChoice& choice : compared.choices)
    choices.push_back({{"collective", choice.collective},
                       {"bytes", choice.bytes},
                       {"logged", to_json(choice.logged)},
                       {"here", to_json(choice.here)},
                       {"alike", choice.is_alike()}});
  return {{"machine", compared.machine},
          {"nodes", compared.nodes},
          {"gpus_per_node", compared.gpus_per_node},
          {"channels", {{"logged", compared.logged_channels}, {"here", compared.channels}}},
          {"alike", count_alike(compared)},
          {"choices", choices}};
}

}  // namespace lockstep
