// lockstep check FILE: load a scenario and say whether everything in it is understood.

#include <fmt/format.h>

#include <memory>

#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/report_text.h"

namespace lockstep {
namespace {

struct CheckArguments {
  ScenarioArguments scenario;
  bool wants_json = false;
};

nlohmann::ordered_json to_json(const Scenario& scenario, const std::string& path) {
  return {{"schema", "lockstep.check/1"},
          {"ok", true},
          {"file", path},
          {"name", scenario.name},
          {"summary", summary_of(scenario)},
          {"warnings", scenario.warnings}};
}

int run_check(const CheckArguments& arguments, const CommandContext& context) {
  const Scenario scenario = load(arguments.scenario.request(context));
  if (arguments.wants_json) {
    print_json(to_json(scenario, arguments.scenario.path));
    return 0;
  }
  print(fmt::format("ok: {}: {}\n", arguments.scenario.path, summary_of(scenario)));
  for (const std::string& warning : scenario.warnings) {
    print_diagnostic(fmt::format("lockstep: warning: {}\n", warning));
  }
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("check", "load a scenario, report every mistake in it, run nothing");
  const auto arguments = std::make_shared<CheckArguments>();
  arguments->scenario.add_to(*command);
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_check(*arguments, context); };
  });
}

}  // namespace lockstep
