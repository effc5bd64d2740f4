// lockstep layouts SCENARIO: the fastest ways to cut its model over a cluster.

#include <memory>
#include <optional>

#include "sim/base/failure.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/page_file.h"
#include "sim/cli/progress_bar.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/prediction.h"
#include "sim/study/answers/layout_page.h"
#include "sim/study/answers/layout_text.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_gpus = 1'000'000;
constexpr std::size_t most_layouts = 1000;

struct LayoutsArguments {
  ScenarioArguments scenario;
  std::optional<std::int64_t> gpus;
  std::size_t top = 10;
  int jobs = 0;
  bool wants_json = false;
  std::string report_path;
};

int run_layouts(const LayoutsArguments& arguments, const CommandContext& context) {
  ProgressBar bar("layouts", context.is_quiet);
  const LayoutQuestion question{
      .base = arguments.scenario.request(context),
      .gpus = arguments.gpus,
      .top = arguments.top,
      .jobs = arguments.jobs,
      .team = context.team,
      .on_progress = [&](std::size_t finished, std::size_t all) { bar.show(finished, all); }};
  if (context.only_helps()) {
    search_layouts(question);
    return exit_done;
  }
  if (!arguments.report_path.empty())
    require_files_of_their_own({json_output(arguments.wants_json), {"--report", arguments.report_path}},
                               ScenarioVariants(question.base).load().files);
  PageFile page(arguments.report_path);
  const LayoutAnswer answer = search_layouts(question);
  if (page.is_wanted())
    page.write(layout_page(to_json(answer)));
  if (arguments.wants_json)
    print_json(to_json(answer));
  else
    print(to_text(answer));
  if (!answer.layouts.empty())
    return exit_done;
  print_diagnostic("lockstep: " + describe_nothing_fits(answer) + "\n");
  return exit_check_failed;
}

void add_layouts_options(CLI::App& command, LayoutsArguments& arguments) {
  command.add_option("--gpus", arguments.gpus, "on so many GPUs, whole nodes of them (the scenario's)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, most_gpus));
  command.add_option("--top", arguments.top, "how many to tell (10)")
      ->type_name("K")
      ->check(CLI::Range(std::size_t{1}, most_layouts));
  add_jobs_option(command, arguments.jobs);
  command.add_flag("--json", arguments.wants_json, "print one JSON document (lockstep.layouts/1)");
  add_report_option(command, arguments.report_path);
}

}  // namespace

void add_layouts_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("layouts", "the fastest ways to cut a model over a cluster");
  const auto arguments = std::make_shared<LayoutsArguments>();
  arguments->scenario.add_to(*command);
  add_layouts_options(*command, *arguments);
  arguments->scenario.add_library_options(*command);
  arguments->scenario.add_simulation_options(*command);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_layouts(*arguments, context); };
  });
}

}  // namespace lockstep
