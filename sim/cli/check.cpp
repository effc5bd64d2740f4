// lockstep check FILE: load a scenario or a machine and say whether everything in it is understood.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/report_text.h"
#include "sim/study/bench/collective_table.h"

namespace lockstep {
namespace {

struct CheckArguments {
  ScenarioArguments scenario;
  bool wants_json = false;
};

// A file of my own machine is as worth checking as a scenario.
bool is_machine(const LoadRequest& request) {
  const nlohmann::ordered_json document = read_document(request);
  return document.is_object() && !document.contains("cluster") && document.contains("gpus") &&
         request.overrides.empty();
}

LoadedScenario load_alone(const std::string& machine, const CommandContext& context) {
  const ProfileStore store(context.data_directory);
  const std::string path = ProfileStore::is_path(machine) ? machine : "./" + machine;
  return load_collective_setting({.machine = path}, store);
}

struct Verdict {
  std::string name;
  std::string summary;
  std::vector<std::string> warnings;
};

Verdict check_file(const ScenarioArguments& arguments, const CommandContext& context) {
  const LoadRequest request = arguments.request(context);
  if (is_machine(request)) {
    const LoadedScenario scenario = load_alone(arguments.path, context);
    const ClusterSpec& cluster = scenario.cluster;
    return {cluster.machine.name, fmt::format("a machine of {} x {}", cluster.machine.gpus, cluster.gpu.name),
            scenario.warnings};
  }
  const LoadedScenario scenario = load(request);
  return {scenario.name, summary_of(scenario), scenario.warnings};
}

nlohmann::ordered_json to_json(const Verdict& verdict, const std::string& path) {
  return {{"schema", "lockstep.check/1"},
          {"ok", true},
          {"file", path},
          {"name", verdict.name},
          {"summary", verdict.summary},
          {"warnings", verdict.warnings}};
}

int run_check(const CheckArguments& arguments, const CommandContext& context) {
  const Verdict verdict = check_file(arguments.scenario, context);
  if (arguments.wants_json) {
    print_json(to_json(verdict, arguments.scenario.path));
    return 0;
  }
  print(fmt::format("ok: {}: {}\n", arguments.scenario.path, verdict.summary));
  for (const std::string& warning : verdict.warnings) {
    print_diagnostic(fmt::format("lockstep: warning: {}\n", warning));
  }
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("check", "load a scenario or a machine, report every mistake in it, run nothing");
  const auto arguments = std::make_shared<CheckArguments>();
  arguments->scenario.add_to(*command);
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_check(*arguments, context); };
  });
}

}  // namespace lockstep
