// lockstep sweep SCENARIO --vary PATH=...: a grid of predictions.

#include "sim/study/answers/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/cli/commands.h"
#include "sim/cli/measured_file.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/page_file.h"
#include "sim/cli/progress_bar.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/prediction.h"
#include "sim/study/answers/sweep_measured.h"
#include "sim/study/answers/sweep_page.h"
#include "sim/study/answers/sweep_shard.h"
#include "sim/study/answers/sweep_text.h"
#include "sim/study/picture.h"

namespace lockstep {
namespace {

struct QuestionArguments {
  std::vector<std::string> minimized;
  std::vector<std::string> maximized;
  std::vector<std::string> conditions;
  bool allows_out_of_memory = false;
};

struct SweepArguments {
  ScenarioArguments scenario;
  std::vector<std::string> varied;
  bool is_zipped = false;
  QuestionArguments question;
  int jobs = 0;
  bool is_resumed = false;
  bool discards = false;
  bool is_strict = false;
  bool wants_json = false;
  std::string shard = "1/1";
  std::vector<std::string> merged;
  std::string output;
  std::string picture;
  std::string measured;  // file
  std::string report_path;
};

// `path` itself, or what holds it. A name is applied before what changes the named.
bool wipes(const SweepAxis& axis, std::string_view path) {
  if (path == axis.path)
    return true;
  const auto is_name = [](const nlohmann::ordered_json& value) { return value.is_string(); };
  return path.starts_with(axis.path + ".") && !std::all_of(axis.values.begin(), axis.values.end(), is_name);
}

// Every cell would lose what was said before. What lies inside is kept only where it is varied after what holds it.
void refuse_what_is_wiped(const Overrides& set, const SweepGrid& grid) {
  const std::vector<SweepAxis>& axes = grid.axes();
  for (const auto& [path, value] : set)
    for (const SweepAxis& axis : axes)
      if (wipes(axis, path))
        throw ConfigError(
            fmt::format("--set {}={}: found a path that --vary {} sets in every cell; expected one of them",
                        path, value, axis.path));
  for (std::size_t later = 0; later < axes.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (wipes(axes[later], axes[earlier].path))
        throw ConfigError(
            fmt::format("--vary {}: found a path that --vary {} sets anew in every cell; expected it first",
                        axes[earlier].path, axes[later].path));
}

SweepOptions read_options(const SweepArguments& arguments, const CommandContext& context) {
  SweepGrid grid = SweepGrid::parse(arguments.varied, arguments.is_zipped ? Pairing::zip : Pairing::product);
  for (const SweepAxis& axis : grid.axes())
    refuse_said_twice(arguments.scenario.library, axis.path, "--vary");
  LoadRequest base = arguments.scenario.request(context);
  refuse_what_is_wiped(base.overrides, grid);
  return {.base = std::move(base),
          .grid = std::move(grid),
          .shard = parse_shard(arguments.shard),
          .jobs = arguments.jobs,
          .output = arguments.output,
          .resume = arguments.is_resumed,
          .discard = arguments.discards,
          .team = context.team};
}

SweepTable run_grid(SweepOptions options, bool is_quiet) {
  ProgressBar bar("cells", is_quiet);
  options.on_progress = [&](std::size_t finished, std::size_t all) { bar.show(finished, all); };
  return sweep(options);
}

nlohmann::ordered_json document_of(const SweepTable& table, const SweepRanking& ranking) {
  nlohmann::ordered_json document = to_json(table, ranking);
  if (table.measured)
    document["measured"] = measured_json(table);
  return document;
}

void print_table(const SweepArguments& arguments, const SweepTable& table, const SweepRanking& ranking) {
  if (arguments.wants_json) {
    print_json(document_of(table, ranking));
  } else {
    print(to_text(table, ranking) + (table.measured ? measured_text(measured_json(table)) : ""));
  }
}

void check_outputs(const SweepArguments& arguments, const SweepOptions& options) {
  if (arguments.is_resumed && arguments.discards)
    throw ConfigError("--discard: begins again, and --resume goes on; expected one of them");
  std::vector<std::string> inputs = files_of_sweep(options);
  if (!arguments.measured.empty())
    inputs.push_back(arguments.measured);
  require_files_of_their_own(
      {json_output(arguments.wants_json),
       {"--output", arguments.output},
       {"--output (cells on the way)", partial_of(arguments.output)},
       {"--output (which shard it is)", options.shard.count > 1 ? shard_note_of(arguments.output) : ""},
       {"--plot", arguments.picture},
       {"--report", arguments.report_path}},
      inputs);
}

void add_goals(const std::vector<std::string>& keys, bool is_largest, std::vector<SweepGoal>& goals) {
  for (const std::string& key : keys) {
    const SweepGoal goal = find_goal(key, is_largest);
    const auto is_it = [&](const SweepGoal& other) { return other.key == goal.key; };
    if (std::any_of(goals.begin(), goals.end(), is_it))
      throw ConfigError(fmt::format("{}: found {}, which is a goal already; expected each key once",
                                    is_largest ? "--maximize" : "--minimize", key));
    goals.push_back(goal);
  }
}

SweepQuestion read_question(const QuestionArguments& arguments) {
  SweepQuestion question{.goals = {}, .allows_out_of_memory = arguments.allows_out_of_memory};
  add_goals(arguments.minimized, false, question.goals);
  add_goals(arguments.maximized, true, question.goals);
  if (question.goals.empty()) {
    question.goals.push_back(find_goal("iteration_time_s", false));
  }
  for (const std::string& condition : arguments.conditions) {
    question.conditions.push_back(parse_condition(condition));
  }
  return question;
}

// A scenario that cannot be loaded has a page as well, of its cells' errors.
std::string title_of(const nlohmann::ordered_json& scenario) {
  const bool has_name = scenario.is_object() && scenario.contains("name") && scenario["name"].is_string();
  return has_name ? scenario["name"].get<std::string>() : "sweep";
}

// As the scenario names it; empty where it is described in place.
std::string machine_of(const nlohmann::ordered_json& scenario) {
  const nlohmann::ordered_json::json_pointer machine("/cluster/machine");
  const nlohmann::ordered_json::json_pointer name = machine / "name";
  for (const auto& place : {machine, name})
    if (scenario.contains(place) && scenario[place].is_string())
      return scenario[place].get<std::string>();
  return "";
}

// A word that begins like an option would be read as one, so that values stand behind a sign of equality.
std::vector<std::string> plot_arguments(const SweepArguments& arguments, const SweepTable& table,
                                        const SweepRanking& ranking, const nlohmann::ordered_json& scenario) {
  std::vector<std::string> words{"--key", ranking.key_of(0), "--name=" + title_of(scenario),
                                 "--machine=" + machine_of(scenario)};
  if (ranking.best()) {
    words.insert(words.end(), {"--best", std::to_string(*ranking.best())});
  }
  // A run has caps beside the sweep's as well; what else was measured stands in the table.
  if (table.measured && ranking.key_of(0) == "iteration_time_s")
    words.push_back(table.measured->kind == "run" ? "--measured=" + arguments.measured
                                                  : "--measured-by=" + table.measured->name);
  return words;
}

std::string how_to_go_on(const std::string& output) {
  return fmt::format("finished cells are in {}: the same command with --resume goes on", partial_of(output));
}

// A launcher may end all processes before any of them can say a word.
void say_how_to_go_on(const SweepOptions& options) {
  if (options.team != nullptr)
    print_diagnostic(fmt::format("lockstep: {} processes; {} should they end early\n", options.team->size(),
                                 how_to_go_on(options.output)));
}

// In a worker of a team.
int help(const SweepOptions& options) {
  try {
    help_to_sweep(options);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(fmt::format("{}; {}", error.what(), how_to_go_on(options.output)));
  }
  return exit_done;
}

void warn_of_transfers(const SweepTable& table) {
  if (table.transferred > 0)
    print_diagnostic(
        fmt::format("lockstep: warning: in {} of {} cells computing is carried over by the model of "
                    "computing from a step that was "
                    "measured under other conditions\n",
                    table.transferred, table.rows.size()));
}

// What predict would tell of each; what some cells alone would be told is one line.
void tell_warnings(const SweepTable& table) {
  std::size_t others = 0;
  for (const auto& [warning, cells] : table.warnings)
    if (cells == table.ran)
      print_diagnostic(fmt::format("lockstep: warning: {}\n", warning));
    else
      ++others;
  if (others > 0)
    print_diagnostic(
        fmt::format("lockstep: warnings of some cells alone: {}; predict --set tells them\n", others));
}

std::string first_error(const SweepTable& table) {
  const std::vector<std::size_t>& places = table.rows.with_error();
  const SweepRow row = table.rows[*std::min_element(places.begin(), places.end())];
  return fmt::format("the first, {}: {}", choice_text(table, row.cell), row.error);
}

// What the cells' mistakes make of the exit code.
int judge_errors(const SweepTable& table, bool is_strict) {
  const std::size_t errors = table.rows.with_error().size();
  if (errors == 0) {
    return exit_done;
  }
  if (table.is_all_errors()) {
    throw ConfigError(fmt::format("none of the {} cells could be simulated; {}", errors, first_error(table)));
  }
  print_diagnostic(fmt::format("lockstep: {}{} of {} cells could not be simulated; {}\n",
                               is_strict ? "" : "warning: ", errors, table.rows.size(), first_error(table)));
  return is_strict ? exit_wrong_input : exit_done;
}

void draw_table(const SweepArguments& arguments, const CommandContext& context, const SweepTable& table,
                const SweepRanking& ranking, const nlohmann::ordered_json& scenario) {
  draw({.script = "sweep",
        .document = to_csv(table),
        .output = arguments.picture,
        .arguments = plot_arguments(arguments, table, ranking, scenario),
        .data_directory = context.data_directory});
}

void warn_of_nothing_to_resume(const SweepArguments& arguments) {
  const std::string partial = partial_of(arguments.output);
  std::error_code ignored;
  if (arguments.is_resumed && !arguments.output.empty() && !std::filesystem::exists(partial, ignored))
    print_diagnostic(
        fmt::format("lockstep: warning: --resume: found no {}: all cells are predicted anew\n", partial));
}

// Before anything runs.
void require_arguments(const SweepArguments& arguments) {
  if (arguments.scenario.path.empty())
    throw ConfigError("scenario is required; see lockstep sweep --help");
  if (arguments.varied.empty())
    throw ConfigError("--vary is required; see lockstep sweep --help");
  if (!arguments.picture.empty())
    check_picture_file(arguments.picture);
}

int run_sweep(const SweepArguments& arguments, const CommandContext& context) {
  require_arguments(arguments);
  SweepOptions options = read_options(arguments, context);
  const SweepQuestion question = read_question(arguments.question);
  if (context.only_helps())
    return help(options);
  if (!arguments.measured.empty())
    options.measured = read_measured_cells(arguments.measured, options.base, options.grid);
  check_outputs(arguments, options);
  PageFile page(arguments.report_path);
  say_when_interrupted("lockstep: interrupted; " + how_to_go_on(arguments.output));
  say_how_to_go_on(options);
  warn_of_nothing_to_resume(arguments);
  const SweepTable table = run_grid(options, context.is_quiet);
  say_when_interrupted("");
  const SweepRanking ranking(table, question);
  if (page.is_wanted())
    page.write(sweep_page(document_of(table, ranking),
                          {.scenario = title_of(ScenarioVariants(options.base).document())}));
  print_table(arguments, table, ranking);
  tell_warnings(table);
  warn_of_transfers(table);
  const int exit_code = judge_errors(table, arguments.is_strict);
  if (!arguments.picture.empty()) {
    draw_table(arguments, context, table, ranking, ScenarioVariants(options.base).document());
  }
  return exit_code;
}

void require_nothing_else(const SweepArguments& arguments) {
  const QuestionArguments& question = arguments.question;
  const bool is_question = !question.minimized.empty() || !question.maximized.empty() ||
                           !question.conditions.empty() || question.allows_out_of_memory;
  const bool is_sweep = !arguments.scenario.path.empty() || !arguments.varied.empty() ||
                        arguments.is_zipped || arguments.is_resumed || arguments.discards ||
                        arguments.is_strict || !arguments.measured.empty();
  const bool is_asked_more = is_question || is_sweep || arguments.wants_json || !arguments.picture.empty() ||
                             !arguments.report_path.empty();
  if (is_asked_more)
    throw ConfigError("--merge: joins tables and simulates nothing; expected only their names and --output");
}

int run_merge(const SweepArguments& arguments) {
  require_nothing_else(arguments);
  std::vector<std::string> inputs = arguments.merged;
  for (const std::string& table : arguments.merged) inputs.push_back(shard_note_of(table));
  require_files_of_their_own({{"--output", arguments.output}}, inputs);
  const MergedSweep merged = merge_shards(arguments.merged, arguments.output);
  print(fmt::format("{}: {} rows of {} shards, {} with an error\n", arguments.output, merged.rows,
                    arguments.merged.size(), merged.errors));
  return exit_done;
}

// Which row is the best.
void add_question_options(CLI::App& command, QuestionArguments& question) {
  command
      .add_option(
          "--minimize", question.minimized,
          "a result to find the smallest of (iteration_time_s); may be repeated, also beside --maximize: "
          "then the rows that no other beats are told")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_option("--maximize", question.maximized, "a result to find the largest of, e.g. samples_per_s")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command
      .add_option(
          "--where", question.conditions,
          "only rows of which this holds may be the best: memory_bytes.fits, \"iteration_time_s<0.5\"; "
          "may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_flag("--allow-oom", question.allows_out_of_memory,
                   "what does not fit in memory may be the best, too");
}

void add_sweep_options(CLI::App& command, SweepArguments& arguments) {
  command
      .add_option(
          "--vary", arguments.varied,
          "values for one path: V1,V2,... or FROM:TO:xK or FROM:TO:+K; may be repeated, the last varies "
          "fastest")
      ->type_name("PATH=VALUES")
      ->allow_extra_args(false);
  command.add_flag("--zip", arguments.is_zipped,
                   "all --vary advance together, each through as many values, instead of every combination");
  command.add_option("-o,--output", arguments.output, "the table, as CSV")->type_name("FILE.csv")->required();
  add_question_options(command, arguments.question);
  command
      .add_option(
          "--measured", arguments.measured,
          "what was measured of the cells: a run of the harness over bucket_cap_mb, or measurements as "
          "validate reads them; errors as columns, and what the predicted best takes as measured")
      ->type_name("FILE.json");
  command.add_option("--plot", arguments.picture, "draw it (needs python3 with matplotlib)")
      ->type_name("FILE.svg|png");
  add_report_option(command, arguments.report_path);
  add_jobs_option(command, arguments.jobs);
  command.add_option("--shard", arguments.shard, "run only each n-th cell, from the i-th")->type_name("i/n");
  command
      .add_option("--merge", arguments.merged,
                  "join the tables of all shards of a sweep, in any order, into one")
      ->type_name("SHARD.csv");
  command.add_flag("--strict", arguments.is_strict, "exit with 2 where a cell could not be simulated");
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
  command->get_option("scenario")->required(false);  // --merge has none
  add_sweep_options(*command, *arguments);
  arguments->scenario.add_library_options(*command);
  arguments->scenario.add_simulation_options(*command);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      if (arguments->merged.empty())
        return run_sweep(*arguments, context);
      return context.only_helps() ? exit_done : run_merge(*arguments);
    };
  });
}

}  // namespace lockstep
