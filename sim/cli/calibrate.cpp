// lockstep calibrate --machine M LOG... -o PROFILE.json: a machine's communication from its benchmark logs or
// from runs of the training harness, and its processor from the latter.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/study/calibration_report.h"
#include "sim/study/collective_table.h"
#include "sim/study/harness_calibration.h"
#include "sim/study/harness_tables.h"
#include "sim/study/measured_processor.h"

namespace lockstep {
namespace {

struct CalibrateArguments {
  CalibrationRequest request;
  std::string output;
  std::string gpu_output;  // of harness runs
  bool wants_json = false;
};

void print_lines(std::string_view prefix, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) print_diagnostic(fmt::format("lockstep: {}{}\n", prefix, line));
}

template <class Report>
void print_report(const CalibrateArguments& arguments, const Report& report) {
  if (arguments.wants_json) {
    nlohmann::ordered_json document = to_json(report);
    document["output"] = arguments.output;
    print_json(document);
  } else {
    print(to_text(report) +
          fmt::format("\nwrote the calibration {} to {}\n", report.calibration.name, arguments.output));
  }
}

template <class Report>
void finish(const CalibrateArguments& arguments, const Report& report) {
  print_lines("warning: ", report.warnings);
  write_file_atomically(arguments.output, report.profile.dump(2) + "\n");
  print_report(arguments, report);
}

// Refuses, before anything is fitted, what cannot be written and what would overwrite a log. No temporary
// file waits for the fit to end, so that even a kill -9 leaves none behind.
void check_outputs(const CalibrateArguments& arguments) {
  std::vector<std::string> inputs = arguments.request.files;
  inputs.push_back(arguments.request.machine);
  require_files_of_their_own({{"--output", arguments.output}, {"--gpu-output", arguments.gpu_output}}, inputs);
  for (const std::string& output : {arguments.output, arguments.gpu_output})
    if (!output.empty())
      static_cast<void>(AtomicFile(output));
}

// Runs and logs measure different things; a file that cannot be read is left to the reader of logs.
bool are_runs(const std::vector<std::string>& files) {
  const auto is_run = [](const std::string& file) {
    return file.ends_with(".json") && std::filesystem::exists(file) && is_harness_run(file);
  };
  const auto first_run = std::find_if(files.begin(), files.end(), is_run);
  const auto first_other = std::find_if_not(files.begin(), files.end(), is_run);
  if (first_run != files.end() && first_other != files.end()) {
    throw ConfigError(fmt::format(
        "{}: is a harness run (lockstep.run/1), and {} is none: fit runs and benchmark logs apart",
        *first_run, *first_other));
  }
  return first_run != files.end();
}

void check_run_options(const CalibrateArguments& arguments) {
  std::vector<std::string> given = given_options(arguments.request.facts);
  if (!arguments.request.profile.empty()) {
    given.emplace_back("--profile");
  }
  if (!given.empty()) {
    throw ConfigError(
        fmt::format("{}: is said of benchmark logs; harness runs say all of it themselves", given.front()));
  }
}

std::vector<HarnessRun> read_runs(const std::vector<std::string>& files, const Scenario& setting) {
  const MachineSpec& machine = setting.cluster.machine;
  const bool is_gloo = machine.library == LibraryKind::gloo;
  std::vector<HarnessRun> runs;
  for (const std::string& file : files) {
    runs.push_back(read_harness_run(file));
    if (is_gloo != (runs.back().backend == "cpu")) {
      throw ConfigError(fmt::format("{}: /harness/backend: found \"{}\", and the ranks of a {} {}", file,
                                    runs.back().backend, machine.name,
                                    is_gloo ? "are CPU processes (Gloo)" : "are GPUs (NCCL)"));
    }
  }
  return runs;
}

void write_processor(const CalibrateArguments& arguments, const std::vector<HarnessRun>& runs,
                     const Scenario& setting, const ProfileStore& store) {
  if (arguments.gpu_output.empty()) {
    return;
  }
  const auto base = store.open(ProfileKind::gpu, setting.cluster.machine.gpu);
  const MeasuredProcessor processor =
      measured_processor(runs, base ? *base->value : shipped_processor(runs.front(), store));
  print_lines("warning: ", processor.warnings);
  if (processor.profile.is_null()) {
    throw ConfigError("--gpu-output: the runs hold no matmuls and no memory_copies to write");
  }
  write_file_atomically(arguments.gpu_output, processor.profile.dump(2) + "\n");
  if (!arguments.wants_json) {
    print(fmt::format("wrote the processor {} to {}\n", processor.profile.at("name").get<std::string>(),
                      arguments.gpu_output));
  }
}

Duration link_latency(const MachineSpec& machine) {
  return machine.nics.empty() ? Duration::zero() : machine.nics.front().link.latency;
}

void fit_processes(const CalibrateArguments& arguments, const std::vector<HarnessRun>& runs,
                   const MachineSpec& machine, const ProfileStore& store) {
  HarnessCalibration report =
      calibrate_to_runs(runs, {.name = machine.name, .link_latency = link_latency(machine)}, store);
  report.machine = machine.name;
  finish(arguments, report);
}

void fit_gpus(const CalibrateArguments& arguments, const std::vector<HarnessRun>& runs,
              const MachineSpec& machine, const ProfileStore& store) {
  CalibrationInputs inputs;
  inputs.machine = machine.name;
  inputs.profile = machine.name;
  inputs.tables = tables_of_runs(runs, arguments.request.machine);
  inputs.holds_nothing_out = arguments.request.holds_nothing_out;
  if (inputs.tables.empty()) {
    throw ConfigError(
        fmt::format("{}: found no all-reduce of several ranks in collective_curve: communication cannot be "
                    "fitted{}",
                    runs.front().file, arguments.gpu_output.empty() ? "" : " (--gpu-output is written)"));
  }
  CalibrationReport report = calibrate(inputs, store);
  add_run_figures(runs, report);
  finish(arguments, report);
}

int calibrate_runs(const CalibrateArguments& arguments, const ProfileStore& store) {
  check_run_options(arguments);
  const Scenario setting = load_collective_setting({.machine = arguments.request.machine}, store);
  const MachineSpec& machine = setting.cluster.machine;
  const std::vector<HarnessRun> runs = read_runs(arguments.request.files, setting);
  write_processor(arguments, runs, setting, store);
  if (machine.library == LibraryKind::gloo) {
    fit_processes(arguments, runs, machine, store);
  } else {
    fit_gpus(arguments, runs, machine, store);
  }
  return 0;
}

int run_calibrate(const CalibrateArguments& arguments, const CommandContext& context) {
  const ProfileStore store(context.data_directory);
  check_outputs(arguments);
  if (are_runs(arguments.request.files)) {
    return calibrate_runs(arguments, store);
  }
  if (!arguments.gpu_output.empty()) {
    throw ConfigError("--gpu-output: is written from harness runs (lockstep.run/1), and none was given");
  }
  const CalibrationInputs inputs = read_calibration_inputs(arguments.request, store);
  print_lines("", inputs.notes);
  finish(arguments, calibrate(inputs, store));
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
  CLI::App* command =
      app.add_subcommand("calibrate", "fit a machine's communication to its benchmark logs or harness runs");
  const auto arguments = std::make_shared<CalibrateArguments>();
  CalibrationRequest& request = arguments->request;
  command
      ->add_option("log", request.files,
                   "logs of nccl-tests or rccl-tests, CSV, or indexes of tables "
                   "(.json, lockstep.collective_tables/1); or harness runs (.json, lockstep.run/1)")
      ->type_name("LOG")
      ->required();
  command->add_option("--machine", request.machine, "a machine's name or file")->type_name("M")->required();
  command->add_option("-o,--output", arguments->output, "the calibration profile")
      ->type_name("PROFILE.json")
      ->required();
  command
      ->add_option("--gpu-output", arguments->gpu_output,
                   "harness runs: the GPU's (or CPU's) measured efficiencies as a profile of its own")
      ->type_name("GPU.json");
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
