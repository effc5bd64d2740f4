// lockstep calibrate --machine M LOG... -o PROFILE.json: a machine's communication from its benchmark logs.

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/study/calibration_report.h"

namespace lockstep {
namespace {

struct CalibrateArguments {
  CalibrationRequest request;
  std::string output;
  bool wants_json = false;
};

void print_lines(std::string_view prefix, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) print_diagnostic(fmt::format("lockstep: {}{}\n", prefix, line));
}

void print_report(const CalibrateArguments& arguments, const CalibrationReport& report) {
  if (arguments.wants_json) {
    nlohmann::ordered_json document = to_json(report);
    document["output"] = arguments.output;
    print_json(document);
  } else {
    print(to_text(report) +
          fmt::format("\nwrote the calibration {} to {}\n", report.calibration.name, arguments.output));
  }
}

// Refuses, before anything is fitted, what cannot be written and what would overwrite a log. No temporary
// file waits for the fit to end, so that even a kill -9 leaves none behind.
void check_output(const CalibrateArguments& arguments) {
  for (const std::string& file : arguments.request.files) {
    std::error_code ignored;
    if (std::filesystem::equivalent(file, arguments.output, ignored)) {
      throw ConfigError(fmt::format("--output: found {}, which is to be read, expected a file of its own",
                                    arguments.output));
    }
  }
  static_cast<void>(AtomicFile(arguments.output));
}

int run_calibrate(const CalibrateArguments& arguments, const CommandContext& context) {
  const ProfileStore store(context.data_directory);
  check_output(arguments);
  const CalibrationInputs inputs = read_calibration_inputs(arguments.request, store);
  print_lines("", inputs.notes);
  const CalibrationReport report = calibrate(inputs, store);
  print_lines("warning: ", report.warnings);
  write_file_atomically(arguments.output, report.profile.dump(2) + "\n");
  print_report(arguments, report);
  return 0;
}

void add_log_options(CLI::App& command, LogFacts& facts) {
  command.add_option("--collective", facts.collective, "what was measured, where a log does not say it")
      ->type_name("OP");
  command.add_option("--nodes", facts.nodes, "on how many nodes, where a log does not say it")
      ->type_name("N");
  command.add_option("--gpus-per-node", facts.gpus_per_node, "and with how many GPUs on each")
      ->type_name("G");
  command.add_option("--library-version", facts.library_version, "by which release, e.g. 2.18.3")
      ->type_name("V");
  command.add_option("--algorithm", facts.algorithm, "forced when the log was made")->type_name("A");
  command.add_option("--protocol", facts.protocol, "forced when the log was made")->type_name("P");
  command.add_flag("--single-process", facts.is_single_process,
                   "one process drove all GPUs of its node (nccl-tests -g above 1)");
}

}  // namespace

void add_calibrate_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("calibrate", "fit a machine's communication to its benchmark logs");
  const auto arguments = std::make_shared<CalibrateArguments>();
  CalibrationRequest& request = arguments->request;
  command
      ->add_option("log", request.files,
                   "logs of nccl-tests or rccl-tests, CSV, or indexes of tables "
                   "(.json, lockstep.collective_tables/1)")
      ->type_name("LOG")
      ->required();
  command->add_option("--machine", request.machine, "a machine's name or file")->type_name("M")->required();
  command->add_option("-o,--output", arguments->output, "the calibration profile")
      ->type_name("PROFILE.json")
      ->required();
  command->add_option("--profile", request.profile, "of an index: only the tables of this profile")
      ->type_name("NAME");
  add_log_options(*command, request.facts);
  command->add_flag("--quick", request.holds_nothing_out,
                    "hold nothing out: bands are the fit's own residuals, widened");
  command->add_flag("--accept-broken", request.accepts_broken_runs,
                    "fit to runs whose figures cannot be of a sound run as well");
  command->add_flag("--json", arguments->wants_json,
                    "print one JSON document (lockstep.calibration_report/1)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_calibrate(*arguments, context); };
  });
}

}  // namespace lockstep
