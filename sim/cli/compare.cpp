// lockstep compare A B: what differs between two scenarios or results, and what each difference costs.

#include <fmt/format.h>

#include <memory>

#include "sim/base/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/page_file.h"
#include "sim/cli/progress_bar.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/study/answers/comparison_page.h"
#include "sim/study/answers/scenario_comparison.h"

namespace lockstep {
namespace {

struct CompareArguments {
  std::string a, b;
  ScenarioArguments of_b;  // --set is said of B
  int jobs = 0;
  bool wants_json = false;
  std::string report_path;
};

LoadRequest request_of_a(const CompareArguments& arguments, const CommandContext& context) {
  ScenarioArguments of_a = arguments.of_b;
  of_a.path = arguments.a;
  of_a.changes.clear();
  return of_a.request(context);
}

// What both are said to be is read once: a pipe is empty the second time.
LoadRequest request_of_b(const CompareArguments& arguments, const LoadRequest& a,
                         const CommandContext& context) {
  ScenarioArguments of_b = arguments.of_b;
  of_b.path = arguments.b.empty() ? arguments.a : arguments.b;
  return of_b.request(context, of_b.path == arguments.a ? a.text : std::nullopt);
}

int run_compare(const CompareArguments& arguments, const CommandContext& context) {
  if (arguments.b.empty() && arguments.of_b.changes.empty())
    throw ConfigError(fmt::format(
        "compare: found only {}, expected another file or --set PATH=VALUE to compare it with", arguments.a));
  const LoadRequest a = request_of_a(arguments, context);
  const LoadRequest b = request_of_b(arguments, a, context);
  require_files_of_their_own({json_output(arguments.wants_json), {"--report", arguments.report_path}},
                             {a.path, b.path});
  PageFile page(arguments.report_path);
  ProgressBar bar("runs", context.is_quiet);
  const ScenarioComparison comparison = compare_scenarios(
      {.a = a, .b = b, .jobs = arguments.jobs, .on_progress = [&](std::size_t finished, std::size_t all) {
         bar.show(finished, all);
       }});
  if (page.is_wanted())
    page.write(comparison_page(to_json(comparison)));
  if (arguments.wants_json)
    print_json(to_json(comparison));
  else
    print(to_text(comparison));
  return 0;
}

void add_compare_options(CLI::App& command, CompareArguments& arguments) {
  command.add_option("a", arguments.a, "a scenario, or what predict --json printed")
      ->type_name("SCENARIO|RESULT")
      ->required();
  command.add_option("b", arguments.b, "another; left out: A with what --set says")
      ->type_name("SCENARIO|RESULT");
  command.add_option("--set", arguments.of_b.changes, "change one value of B; may be repeated")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  arguments.of_b.add_simulation_options(command);
  add_jobs_option(command, arguments.jobs);
  add_report_option(command, arguments.report_path);
  command.add_flag("--json", arguments.wants_json, "print one JSON document (lockstep.compare/1)");
}

}  // namespace

void add_compare_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("compare", "what differs between two scenarios or results, and what each costs");
  const auto arguments = std::make_shared<CompareArguments>();
  add_compare_options(*command, *arguments);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_compare(*arguments, context); };
  });
}

}  // namespace lockstep
