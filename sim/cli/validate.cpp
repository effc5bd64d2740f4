// lockstep validate SUITE...: predicted against measured, case by case.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/page_file.h"
#include "sim/cli/progress_bar.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/study/fit/measurement_files.h"
#include "sim/study/picture.h"
#include "sim/study/validation/collective_validation.h"
#include "sim/study/validation/validation.h"
#include "sim/study/validation/validation_page.h"

namespace lockstep {
namespace {

struct ValidateArguments {
  std::vector<std::string> suites;
  std::optional<double> most_mape;
  bool wants_json = false;
  bool wants_markdown = false;
  std::string picture;
  std::string report_path;
  std::string leave_out;
  std::vector<std::string> profiles;
  std::string machine;      // of harness runs
  std::string calibration;  // of harness runs
  int jobs = 0;
};

std::optional<LeaveOut> parse_leave_out(const std::string& name) {
  if (name.empty()) {
    return std::nullopt;
  }
  const std::vector<std::string> valid{"cell", "group", "scale", "machine"};
  const auto found = std::find(valid.begin(), valid.end(), name);
  if (found == valid.end()) {
    throw ConfigError(fmt::format("--leave-out: found \"{}\"; {}", name, describe_choices(name, valid)));
  }
  return static_cast<LeaveOut>(found - valid.begin());
}

void check_arguments(const ValidateArguments& arguments) {
  if (arguments.most_mape && !(std::isfinite(*arguments.most_mape) && *arguments.most_mape >= 0)) {
    throw ConfigError(
        fmt::format("--max-mape: found {}, expected a percentage of at least 0", *arguments.most_mape));
  }
  if (!arguments.picture.empty()) {
    check_picture_file(arguments.picture);
  }
  static_cast<void>(PageFile(arguments.report_path));
  parse_leave_out(arguments.leave_out);
}

// Groups are never pooled: the worst one decides. A check of nothing does not hold.
bool holds(const Validation& validation, double most_mape) {
  bool is_held = !validation.groups.empty();
  for (const GroupSummary& group : validation.groups) {
    if (!(group.ours.mean_absolute <= most_mape)) {
      print_diagnostic(fmt::format("lockstep: --max-mape {}: {} ({}) has a mean absolute error of {:.2f} %\n",
                                   most_mape, group.group, group.split, group.ours.mean_absolute));
      is_held = false;
    }
  }
  if (validation.groups.empty()) {
    print_diagnostic("lockstep: --max-mape: no case counts, so nothing was checked\n");
  }
  return is_held;
}

// The sizes that bandwidth rules decide; a check of nothing does not hold.
bool holds(const CollectiveValidation& validation, double most_mape) {
  const ErrorQuantiles errors = summarise_errors(validation.points, SizeClass::large);
  const bool is_held = errors.points > 0 && errors.median * 100 <= most_mape;
  if (!is_held) {
    print_diagnostic(
        fmt::format("lockstep: --max-mape {}: collectives of {} have a median absolute error of {:.2f} %\n",
                    most_mape, size_class_name(SizeClass::large), errors.median * 100));
  }
  return is_held;
}

// The answer, and the same as a picture where one is asked for.
template <class AnyValidation>
void answer(const ValidateArguments& arguments, const CommandContext& context,
            const AnyValidation& validation, const char* script) {
  if (PageFile page(arguments.report_path); page.is_wanted())
    page.write(validation_page(to_json(validation)));
  if (arguments.wants_json) {
    print_json(to_json(validation));
  } else {
    print(arguments.wants_markdown ? to_markdown(validation) : to_text(validation));
  }
  if (!arguments.picture.empty()) {
    draw({.script = script,
          .document = to_json(validation).dump(),
          .output = arguments.picture,
          .data_directory = context.data_directory});
  }
}

int validate_tables(const ValidateArguments& arguments, const CommandContext& context,
                    const std::vector<std::string>& indexes) {
  const ProfileStore store(context.data_directory);
  const CollectiveValidation validation = validate_collectives(
      {.indexes = indexes, .leave_out = parse_leave_out(arguments.leave_out), .profiles = arguments.profiles},
      store);
  for (const MeasuredTable& table : validation.tables) {
    for (const std::string& line : table.skipped_lines) {
      print_diagnostic(fmt::format("lockstep: {}\n", line));
    }
  }
  answer(arguments, context, validation, "collectives");
  return !arguments.most_mape || holds(validation, *arguments.most_mape) ? 0 : exit_check_failed;
}

// Runs alone are drawn as what they vary: iteration time against bucket cap; kernels under their GPUs' roofs.
const char* script_of(const Validation& validation, const std::vector<std::string>& files) {
  const std::vector<ValidationCase>& cases = validation.cases;
  const auto is_kernel = [](const ValidationCase& entry) { return entry.is_kernel; };
  const auto is_product = [](const ValidationCase& entry) { return entry.figures.has_value(); };
  if (std::all_of(cases.begin(), cases.end(), is_kernel) &&
      std::any_of(cases.begin(), cases.end(), is_product))
    return "roofline";
  const bool has_setting = std::any_of(cases.begin(), cases.end(),
                                       [](const ValidationCase& entry) { return entry.setting.has_value(); });
  return files.empty() && has_setting ? "bucket_caps" : "validate";
}

// What the suites hold, but for collective tables.
struct SuiteFiles {
  std::vector<std::string> cases;
  std::vector<std::string> runs;
  std::vector<std::string> kernel_tables;

  bool is_empty() const { return cases.empty() && runs.empty() && kernel_tables.empty(); }
};

int validate_cases(const ValidateArguments& arguments, const CommandContext& context,
                   const SuiteFiles& files) {
  const Validation validation = [&] {
    ProgressBar bar("cases", context.is_quiet);
    return validate({.files = files.cases,
                     .runs = files.runs,
                     .kernel_tables = files.kernel_tables,
                     .machine = arguments.machine,
                     .calibration = arguments.calibration,
                     .data_directory = context.data_directory,
                     .jobs = arguments.jobs,
                     .accepts_any_size = context.accepts_any_size,
                     .on_progress = [&](std::size_t finished, std::size_t all) { bar.show(finished, all); }});
  }();
  for (const std::string& note : validation.notes) print_diagnostic(fmt::format("lockstep: {}\n", note));
  answer(arguments, context, validation, script_of(validation, files.cases));
  return !arguments.most_mape || holds(validation, *arguments.most_mape) ? 0 : exit_check_failed;
}

// A log among the suites is the likely mistake, and what reads one is another verb.
std::vector<std::string> find_cases(const std::vector<std::string>& suites) {
  try {
    return find_measurement_files(suites);
  } catch (const ConfigError& error) {
    std::vector<std::string> problems = error.problems;
    const bool is_json = std::all_of(suites.begin(), suites.end(), [](const std::string& suite) {
      return suite.ends_with(".json") || std::filesystem::is_directory(suite);
    });
    if (!is_json) {
      problems.emplace_back(
          "SUITE: expected .json files or folders of them; a benchmark's log is read by lockstep calibrate, "
          "or "
          "named in an index of tables");
    }
    throw ConfigError(problems);
  }
}

// What is said of runs would otherwise be said to nobody.
void refuse_run_options(const ValidateArguments& arguments, const std::vector<std::string>& runs) {
  const char* option = !arguments.machine.empty()       ? "--machine"
                       : !arguments.calibration.empty() ? "--calibration"
                                                        : nullptr;
  if (option != nullptr && runs.empty()) {
    throw ConfigError(fmt::format("{}: found no harness runs (lockstep.run/1)", option));
  }
}

// Collective tables are asked for by what concerns them alone, or by suites that hold nothing else.
int run_validate(const ValidateArguments& arguments, const CommandContext& context) {
  check_arguments(arguments);
  const SuiteFiles files{.cases = find_cases(arguments.suites),
                         .runs = find_harness_runs(arguments.suites),
                         .kernel_tables = find_kernel_tables(arguments.suites)};
  const std::vector<std::string> indexes = find_table_indexes(arguments.suites);
  refuse_run_options(arguments, files.runs);
  for (const std::vector<std::string>& inputs : {files.cases, indexes, files.runs, files.kernel_tables})
    require_files_of_their_own({json_output(arguments.wants_json),
                                {"--plot", arguments.picture},
                                {"--report", arguments.report_path}},
                               inputs);
  const char* option = !arguments.leave_out.empty()  ? "--leave-out"
                       : !arguments.profiles.empty() ? "--profile"
                                                     : nullptr;
  if (option != nullptr && indexes.empty()) {
    throw ConfigError(fmt::format("{}: found no collective tables (lockstep.collective_tables/1)", option));
  }
  if (option != nullptr || files.is_empty()) {
    if (arguments.jobs > 0)
      throw ConfigError(
          "--jobs: found no cases that run side by side; fits of collective tables use every core");
    return validate_tables(arguments, context, indexes);
  }
  return validate_cases(arguments, context, files);
}

}  // namespace

void add_validate_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("validate", "predicted against measured, case by case");
  const auto arguments = std::make_shared<ValidateArguments>();
  command
      ->add_option(
          "suite", arguments->suites,
          "files of lockstep.measurements/1, lockstep.run/1 or lockstep.collective_tables/1, tables of timed "
          "kernels (gemm.csv attention.csv conv2d.csv memory_bound.csv operators_in_a_step.csv "
          "step_against_batch.csv, or CSV with the columns of one), or folders of them")
      ->type_name("SUITE")
      ->required();
  command
      ->add_option("--max-mape", arguments->most_mape, "exit 3 when a group's mean absolute error exceeds it")
      ->type_name("PCT");
  CLI::Option* json =
      command->add_flag("--json", arguments->wants_json, "print one JSON document (lockstep.validation/1)");
  command->add_flag("--markdown", arguments->wants_markdown, "print the table of the README")->excludes(json);
  command
      ->add_option("--leave-out", arguments->leave_out,
                   "collective tables: fit the rest and predict one cell, one group, one machine, or all "
                   "above two nodes (scale)")
      ->type_name("WHAT");
  command->add_option("--profile", arguments->profiles, "collective tables: only of these profiles")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--calibration", arguments->calibration,
                   "harness runs: predict with this profile; else with each run's own microbenchmarks")
      ->type_name("PROFILE");
  command
      ->add_option("--machine", arguments->machine,
                   "harness runs: measured on this machine (GPUs), or the one that the profile is for")
      ->type_name("M");
  add_jobs_option(*command, arguments->jobs);
  add_report_option(*command, arguments->report_path);
  command->add_option("--plot", arguments->picture, "draw it (needs python3 with matplotlib)")
      ->type_name("FILE.svg|png");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_validate(*arguments, context); };
  });
}

}  // namespace lockstep
