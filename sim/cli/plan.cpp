// lockstep plan REQUEST: which cluster trains a model in time and for the money.

#include <memory>
#include <optional>

#include "sim/base/failure.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/page_file.h"
#include "sim/cli/progress_bar.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/study/capacity/plan_page.h"
#include "sim/study/capacity/plan_text.h"
#include "sim/study/picture.h"

namespace lockstep {
namespace {

constexpr std::size_t most_plans = 1000;

struct PlanArguments {
  std::string path;
  std::vector<std::string> changes;  // "PATH=VALUE" of the request
  std::size_t top = 10;
  int jobs = 0;
  bool wants_json = false;
  std::string picture;
  std::string report_path;
};

Overrides changes_in(const PlanArguments& arguments) {
  Overrides changes;
  for (const std::string& change : arguments.changes) changes.push_back(parse_change(change, "--set"));
  return changes;
}

int run_plan_command(const PlanArguments& arguments, const CommandContext& context) {
  ProgressBar bar("steps", context.is_quiet);
  std::optional<ProgressBar> layouts;
  const PlanQuestion question{
      .request = read_plan_request(arguments.path, changes_in(arguments)),
      .data_directory = context.data_directory,
      .top = arguments.top,
      .jobs = arguments.jobs,
      .accepts_any_size = context.accepts_any_size,
      .team = context.team,
      .on_progress = [&](std::size_t finished, std::size_t all) { bar.show(finished, all); },
      .on_layout =
          [&](std::size_t finished, std::size_t all) {
            if (finished == 1)
              layouts.emplace("layouts of an option", context.is_quiet);
            layouts->show(finished, all);
          }};
  if (context.only_helps()) {
    search_plans(question);
    return exit_done;
  }
  if (!arguments.picture.empty())
    check_picture_file(arguments.picture);
  if (!arguments.report_path.empty() || !arguments.picture.empty())
    require_files_of_their_own({json_output(arguments.wants_json),
                                {"--plot", arguments.picture},
                                {"--report", arguments.report_path}},
                               files_of_plan(question));
  PageFile page(arguments.report_path);
  const PlanAnswer answer = search_plans(question);
  if (page.is_wanted())
    page.write(plan_page(to_json(answer)));
  if (arguments.wants_json)
    print_json(to_json(answer));
  else
    print(to_text(answer));
  if (!answer.plans.empty()) {
    if (!arguments.picture.empty())
      draw({.script = "pareto",
            .document = to_json(answer).dump(),
            .output = arguments.picture,
            .data_directory = context.data_directory});
    return exit_done;
  }
  print_diagnostic("lockstep: " + describe_no_plan(answer) + "\n");
  return exit_check_failed;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("plan", "which cluster trains a model in time and for the money");
  const auto arguments = std::make_shared<PlanArguments>();
  command->add_option("request", arguments->path, "what to train, until when, on which machines (JSON)")
      ->type_name("REQUEST")
      ->required();
  command->add_option("--set", arguments->changes, "change a value of the request")->type_name("PATH=VALUE");
  command->add_option("--top", arguments->top, "how many plans to tell beside those that none beats (10)")
      ->type_name("K")
      ->check(CLI::Range(std::size_t{1}, most_plans));
  add_jobs_option(*command, arguments->jobs);
  command->add_flag("--json", arguments->wants_json, "print one JSON document (lockstep.plan/1)");
  command->add_option("--plot", arguments->picture, "draw time against cost (needs python3 with matplotlib)")
      ->type_name("FILE.svg|png");
  add_report_option(*command, arguments->report_path);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_plan_command(*arguments, context); };
  });
}

}  // namespace lockstep
