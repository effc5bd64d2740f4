// lockstep collective OP --machine M: the table nccl-tests would print, predicted.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/cli/size_text.h"
#include "sim/report/extrapolation.h"
#include "sim/study/bench/collective_account.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/picture.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

struct CollectiveArguments {
  std::string operation;
  CollectiveSetting setting;
  LibraryChoice library;
  std::string first = "8";
  std::string last = "8G";
  std::int64_t factor = 2;
  std::string fidelity;
  std::string explained;  // a size, whose time is told apart
  bool wants_json = false;
  std::string picture;
};

CollectiveOp parse_operation(const std::string& name) {
  const std::string stem = name.ends_with("_perf") ? name.substr(0, name.size() - 5) : name;
  if (const CollectiveOp* op = find_collective_op(stem)) {
    return *op;
  }
  const std::vector<std::string> valid = collective_op_names();
  throw ConfigError(fmt::format("{}: no such collective; {}", name, describe_choices(stem, valid)));
}

SizeRange parse_range(const CollectiveArguments& arguments) {
  const SizeRange range{.first = parse_nccl_tests_size(arguments.first, "-b"),
                        .last = parse_nccl_tests_size(arguments.last, "-e"),
                        .factor = arguments.factor};
  if (range.factor < 2) {
    throw ConfigError(fmt::format("-f: found {}, expected a factor of at least 2", range.factor));
  }
  if (range.last < range.first) {
    throw ConfigError(fmt::format("-e: found {}, expected at least -b {}", arguments.last, arguments.first));
  }
  return range;
}

struct CollectiveTable {
  CollectiveOp op;
  const Scenario& scenario;
  const std::vector<CollectiveRow>& rows;
  std::vector<std::string> warnings;
  std::optional<MeshCycles> mesh_cycles;  // where GPUs are joined pair by pair
  std::optional<CollectiveAccount> account = {};
};

void warn_of_set_protocols(const Scenario& scenario, std::vector<std::string>& warnings) {
  const MachineSpec& machine = scenario.cluster.machine;
  if (machine.nics.empty() || machine.nics.front().link.protocols.empty() ||
      scenario.communication.library != LibraryKind::nccl || scenario.communication.protocol != "auto")
    return;
  const LinkSpec& nic = machine.nics.front().link;
  warnings.push_back(fmt::format("the software of {} sets NCCL_PROTO={}; --protocol takes another", nic.name,
                                 fmt::join(nic.protocols, ",")));
}

std::vector<std::string> warnings_of(const LoadedScenario& scenario, const std::vector<CollectiveRow>& rows) {
  std::vector<std::string> warnings = scenario.warnings;
  warn_beyond_fitted_scale(scenario.cluster, warnings);
  warn_beyond_fitted_sizes(scenario.cluster, rows.front().size, rows.back().size, warnings);
  warn_of_set_protocols(scenario, warnings);
  const std::string& asked = scenario.communication.algorithm;
  const auto is_asked = [&](const CollectiveRow& row) { return row.algorithm == asked; };
  if (asked != "auto" && std::none_of(rows.begin(), rows.end(), is_asked))
    warnings.push_back(fmt::format("--algorithm {} changes nothing: it cannot do this here, and {} does",
                                   asked, rows.front().algorithm));
  if (scenario.cluster.calibration.communication_residuals.empty()) {
    warnings.push_back(
        fmt::format("no calibration residuals are known for {}: the range of each time is unknown",
                    scenario.cluster.calibration.name));
  }
  return warnings;
}

std::optional<MeshCycles> mesh_cycles_of(const Scenario& scenario, const Communicator& world) {
  const bool is_mesh = scenario.cluster.machine.gpu_links.kind == GpuLinkKind::mesh;
  return is_mesh && world.gpus_per_node > 1 ? std::optional(world.mesh_cycles) : std::nullopt;
}

double gigabytes_per_second(Bandwidth bandwidth) {
  return static_cast<double>(bandwidth.count()) / 1e9;
}

double microseconds(Duration duration) {
  return static_cast<double>(duration.picoseconds()) / 1e6;
}

ordered_json microseconds_or_null(const std::optional<Duration>& duration) {
  return duration ? ordered_json(microseconds(*duration)) : ordered_json(nullptr);
}

ordered_json to_json(const CollectiveRow& row) {
  return {{"size_bytes", row.size.count()},
          {"count", row.elements},
          {"time_us", microseconds(row.time)},
          {"time_low_us", microseconds_or_null(row.low)},
          {"time_high_us", microseconds_or_null(row.high)},
          {"algbw_gbs", gigabytes_per_second(row.algbw)},
          {"busbw_gbs", gigabytes_per_second(row.busbw)},
          {"algorithm", row.algorithm},
          {"protocol", row.protocol},
          {"channels", row.channels}};
}

ordered_json to_json(const std::optional<MeshCycles>& cycles) {
  if (!cycles) {
    return nullptr;
  }
  return {{"found", cycles->found}, {"bound", cycles->bound}, {"proven", cycles->are_most}};
}

ordered_json to_json(const CollectiveTable& table) {
  ordered_json rows = ordered_json::array();
  for (const CollectiveRow& row : table.rows) {
    rows.push_back(to_json(row));
  }
  ordered_json json{{"schema", "lockstep.collective/1"},
                    {"collective", collective_op_name(table.op)},
                    {"machine", table.scenario.cluster.machine.name},
                    {"ranks", table.scenario.cluster.ranks()},
                    {"nodes", table.scenario.cluster.nodes},
                    {"gpus_per_node", table.scenario.cluster.gpus_per_node},
                    {"mesh_cycles", to_json(table.mesh_cycles)},
                    {"warnings", table.warnings},
                    {"rows", rows}};
  if (table.account)
    json["explain"] = to_json(*table.account);
  return json;
}

// As nccl-tests prints times: fewer decimals the longer.
std::string time_text(Duration duration) {
  const double time = microseconds(duration);
  return time >= 10000 ? fmt::format("{:.0f}", time) : fmt::format("{:.{}f}", time, time >= 100 ? 1 : 2);
}

constexpr std::string_view row_format = "{:>12} {:>12} {:>8} {:>6} {:>9} {:>8} {:>8}   {:<9}  {:<8} {:>8}\n";

std::string to_text(const CollectiveRow& row, std::string_view reduction) {
  return fmt::format(row_format, row.size.count(), row.elements, "float", reduction, time_text(row.time),
                     fmt::format("{:.2f}", gigabytes_per_second(row.algbw)),
                     fmt::format("{:.2f}", gigabytes_per_second(row.busbw)), row.algorithm, row.protocol,
                     row.channels);
}

bool is_reduction(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
}

std::string headline(const CollectiveTable& table) {
  const ClusterSpec& cluster = table.scenario.cluster;
  return fmt::format("# {} on {} ranks: {} x {} ({} GPUs each), predicted\n#\n", collective_op_name(table.op),
                     cluster.ranks(), cluster.nodes, cluster.machine.name, cluster.gpus_per_node);
}

std::string commented(std::string line) {
  line.erase(line.find_last_not_of(" \n") + 1);
  return "#" + line.substr(1) + "\n";
}

// A '#' before everything that is not a row, as in nccl-tests' logs.
std::string to_text(const CollectiveTable& table) {
  std::string text = headline(table);
  text += commented(fmt::format(row_format, "size", "count", "type", "redop", "time", "algbw", "busbw",
                                "algorithm", "protocol", "channels"));
  text +=
      commented(fmt::format(row_format, "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "", "", ""));
  double sum = 0;
  for (const CollectiveRow& row : table.rows) {
    text += to_text(row, is_reduction(table.op) ? "sum" : "none");
    sum += gigabytes_per_second(row.busbw);
  }
  text += fmt::format("# Avg bus bandwidth    : {:.4f}\n", sum / static_cast<double>(table.rows.size()));
  if (table.mesh_cycles) {
    text += fmt::format("# rings                : {}\n", describe(*table.mesh_cycles));
  }
  if (table.account)
    text += to_text(*table.account);
  for (const std::string& warning : table.warnings) {
    text += fmt::format("# warning: {}\n", warning);
  }
  return text;
}

int run_collective(const CollectiveArguments& arguments, const CommandContext& context) {
  const CollectiveOp op = parse_operation(arguments.operation);
  const SizeRange range = parse_range(arguments);
  CollectiveSetting setting = arguments.setting;
  setting.calibration = arguments.library.calibration;
  setting.library_version = arguments.library.library_version;
  setting.fidelity = parse_fidelity(arguments.fidelity);
  setting.accepts_any_size = context.accepts_any_size;
  const ProfileStore store(context.data_directory);
  const LoadedScenario scenario = load_collective_setting(setting, store);
  if (!arguments.picture.empty())
    check_picture_file(arguments.picture);
  require_files_of_their_own({json_output(arguments.wants_json), {"--plot", arguments.picture}},
                             scenario.files);
  const CollectiveBench bench(scenario);
  const std::vector<CollectiveRow> rows = bench.predict(op, range);
  CollectiveTable table{op, scenario, rows, warnings_of(scenario, rows),
                        mesh_cycles_of(scenario, bench.world())};
  if (!arguments.explained.empty())
    table.account =
        account_of(scenario, {op, parse_nccl_tests_size(arguments.explained, "--explain")}, store);
  if (arguments.wants_json) {
    print_json(to_json(table));
  } else {
    print(to_text(table));
  }
  if (!arguments.picture.empty())
    draw({.script = "busbw",
          .document = to_json(table).dump(),
          .output = arguments.picture,
          .data_directory = context.data_directory});
  return 0;
}

void add_setting_options(CLI::App& command, CollectiveArguments& arguments) {
  CollectiveSetting& setting = arguments.setting;
  command.add_option("--machine", setting.machine, "a machine's name or file")->type_name("M")->required();
  command.add_option("--nodes", setting.nodes, "how many of them (1)")->type_name("N");
  command.add_option("--gpus-per-node", setting.gpus_per_node, "GPUs used in each (all)")->type_name("G");
  command.add_option("--algorithm", setting.algorithm, "auto or a name of `list collectives`")
      ->type_name("A");
  command.add_option("--protocol", setting.protocol, "which protocol (auto)")
      ->type_name("auto|ll|ll128|simple");
  command.add_option("--channels", setting.channels, "force this many channels")->type_name("C");
  command.add_option("--library", setting.library, "which library (the machine's)")
      ->type_name("nccl|gloo|rccl");
  add_library_options(command, arguments.library);
  command
      .add_option("--explain", arguments.explained,
                  "where the time of this size goes, and on what that rests")
      ->type_name("SIZE");
  command.add_option("--fidelity", arguments.fidelity, "how fine to simulate (flow)")->type_name("flow|step");
}

}  // namespace

void add_collective_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("collective", "the table nccl-tests would print, predicted");
  const auto arguments = std::make_shared<CollectiveArguments>();
  command->add_option("operation", arguments->operation, "what nccl-tests' program of this name measures")
      ->type_name(fmt::format("{}", fmt::join(collective_op_names(), "|")))
      ->required();
  add_setting_options(*command, *arguments);
  command->add_option("-b", arguments->first, "smallest size, binary as in nccl-tests (8)")
      ->type_name("SIZE");
  command->add_option("-e", arguments->last, "largest size (8G)")->type_name("SIZE");
  command->add_option("-f", arguments->factor, "factor between sizes (2)")->type_name("K");
  command->add_flag("--json", arguments->wants_json, "print one JSON document (lockstep.collective/1)");
  command->add_option("--plot", arguments->picture, "draw the bus bandwidth (needs python3 with matplotlib)")
      ->type_name("FILE.svg|png");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_collective(*arguments, context); };
  });
}

}  // namespace lockstep
