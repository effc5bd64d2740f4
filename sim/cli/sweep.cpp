// lockstep sweep SCENARIO --vary PATH=...: a grid of predictions.

#include "sim/study/answers/sweep.h"

#include <fmt/format.h>

#include <memory>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/progress_bar.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/study/picture.h"

namespace lockstep {
namespace {

struct SweepArguments {
  ScenarioArguments scenario;
  std::vector<std::string> varied;
  std::string minimized;
  std::string maximized;
  bool allows_out_of_memory = false;
  int jobs = 0;
  bool is_resumed = false;
  bool discards = false;
  bool wants_json = false;
  std::string shard = "1/1";
  std::string output;
  std::string picture;
};

SweepOptions read_options(const SweepArguments& arguments, const CommandContext& context) {
  SweepGrid grid = SweepGrid::parse(arguments.varied);
  for (const SweepAxis& axis : grid.axes())
    refuse_said_twice(arguments.scenario.library, axis.path, "--vary");
  return {.base = arguments.scenario.request(context),
          .grid = std::move(grid),
          .shard = parse_shard(arguments.shard),
          .jobs = arguments.jobs,
          .output = arguments.output,
          .resume = arguments.is_resumed,
          .discard = arguments.discards};
}

SweepTable run_grid(SweepOptions options, bool is_quiet) {
  ProgressBar bar("cells", is_quiet);
  options.on_progress = [&](std::size_t finished, std::size_t all) { bar.show(finished, all); };
  return sweep(options);
}

void print_table(const SweepArguments& arguments, const SweepTable& table, const SweepGoal& goal) {
  if (arguments.wants_json) {
    print_json(to_json(table, goal));
  } else {
    print(to_text(table, goal));
  }
}

void check_outputs(const SweepArguments& arguments, const SweepOptions& options) {
  if (arguments.is_resumed && arguments.discards)
    throw ConfigError("--discard: begins again, and --resume goes on; expected one of them");
  require_files_of_their_own({{"--output", arguments.output},
                              {"--output (cells on the way)", partial_of(arguments.output)},
                              {"--plot", arguments.picture}},
                             files_of_sweep(options));
}

SweepGoal read_goal(const SweepArguments& arguments) {
  if (!arguments.minimized.empty() && !arguments.maximized.empty())
    throw ConfigError("--maximize: is given beside --minimize; expected one of them");
  const bool is_largest = !arguments.maximized.empty();
  const std::string least = arguments.minimized.empty() ? "iteration_time_s" : arguments.minimized;
  SweepGoal goal = find_goal(is_largest ? arguments.maximized : least, is_largest);
  goal.allows_out_of_memory = arguments.allows_out_of_memory;
  return goal;
}

std::vector<std::string> plot_arguments(const SweepTable& table, const SweepGoal& goal) {
  std::vector<std::string> words{"--key", table.keys[goal.key]};
  if (goal.is_largest)
    words.emplace_back("--largest");
  if (goal.allows_out_of_memory)
    words.emplace_back("--allow-oom");
  return words;
}

std::string how_to_go_on(const SweepArguments& arguments) {
  return fmt::format(
      "lockstep: interrupted; finished cells are in {}: the same command with --resume goes on",
      partial_of(arguments.output));
}

void warn_of_transfers(const SweepTable& table) {
  if (table.transferred > 0)
    print_diagnostic(
        fmt::format("lockstep: warning: in {} of {} cells computing is carried over by the model of "
                    "computing from a step that was "
                    "measured under other conditions\n",
                    table.transferred, table.rows.size()));
}

int run_sweep(const SweepArguments& arguments, const CommandContext& context) {
  const SweepOptions options = read_options(arguments, context);
  const SweepGoal goal = read_goal(arguments);
  if (!arguments.picture.empty()) {
    check_picture_file(arguments.picture);
  }
  check_outputs(arguments, options);
  say_when_interrupted(how_to_go_on(arguments));
  const SweepTable table = run_grid(options, context.is_quiet);
  say_when_interrupted("");
  print_table(arguments, table, goal);
  warn_of_transfers(table);
  if (table.is_all_errors()) {
    throw ConfigError(fmt::format("none of the {} cells could be simulated; the first: {}", table.rows.size(),
                                  table.rows.front().error));
  }
  if (!arguments.picture.empty()) {
    draw({.script = "sweep",
          .document = to_csv(table),
          .output = arguments.picture,
          .arguments = plot_arguments(table, goal),
          .data_directory = context.data_directory});
  }
  return 0;
}

void add_sweep_options(CLI::App& command, SweepArguments& arguments) {
  command
      .add_option(
          "--vary", arguments.varied,
          "values for one path: V1,V2,... or FROM:TO:xK or FROM:TO:+K; may be repeated, the last varies "
          "fastest")
      ->type_name("PATH=VALUES")
      ->required()
      ->allow_extra_args(false);
  command.add_option("-o,--output", arguments.output, "the table, as CSV")->type_name("FILE.csv")->required();
  command
      .add_option("--minimize", arguments.minimized, "a result to find the smallest of (iteration_time_s)")
      ->type_name("KEY");
  command
      .add_option("--maximize", arguments.maximized, "a result to find the largest of, e.g. samples_per_s")
      ->type_name("KEY");
  command.add_flag("--allow-oom", arguments.allows_out_of_memory,
                   "what does not fit in memory may be the best, too");
  command.add_option("--plot", arguments.picture, "draw it (needs python3 with matplotlib)")
      ->type_name("FILE.svg|png");
  add_jobs_option(command, arguments.jobs);
  command.add_option("--shard", arguments.shard, "run only each n-th cell, from the i-th")->type_name("i/n");
  command.add_flag("--resume", arguments.is_resumed,
                   "go on with FILE.csv.partial of a sweep that was stopped");
  command.add_flag("--discard", arguments.discards, "begin again, and drop what FILE.csv.partial holds");
  command.add_flag("--json", arguments.wants_json, "print one JSON document (lockstep.sweep/1)");
}

}  // namespace

void add_sweep_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("sweep", "a grid of predictions");
  const auto arguments = std::make_shared<SweepArguments>();
  arguments->scenario.add_to(*command);
  add_sweep_options(*command, *arguments);
  arguments->scenario.add_library_options(*command);
  arguments->scenario.add_simulation_options(*command);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_sweep(*arguments, context); };
  });
}

}  // namespace lockstep
