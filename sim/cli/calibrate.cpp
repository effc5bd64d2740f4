// lockstep calibrate --machine M LOG... -o PROFILE.json: a machine's communication from its benchmark logs or
// from runs of the training harness; its processor from such runs and from tables of timed kernels.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/load/error_model_json.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/kernel_residuals.h"
#include "sim/study/fit/architecture_calibration.h"
#include "sim/study/fit/calibration_files.h"
#include "sim/study/fit/calibration_report.h"
#include "sim/study/fit/harness_calibration.h"
#include "sim/study/fit/harness_gpu_calibration.h"
#include "sim/study/fit/measurement_files.h"
#include "sim/study/fit/parts_calibration.h"
#include "sim/study/fit/processor_calibration.h"
#include "sim/study/validation/error_calibration.h"

namespace lockstep {
namespace {

struct CalibrateArguments {
  CalibrationRequest request;
  std::string output;
  std::string gpu_output;    // of harness runs and of tables of kernels
  std::string architecture;  // whose kernels were timed, instead of a machine
  std::string without;       // a GPU of it that is left out
  bool is_of_parts = false;  // fits the parts of all machines
  bool is_of_bands = false;  // fits the errors of validation suites
  bool wants_json = false;
};

void print_lines(std::string_view prefix, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) print_diagnostic(fmt::format("lockstep: {}{}\n", prefix, line));
}

// One answer of one or two reports: what is printed, and the same as a document.
struct Answer {
  std::string text;
  nlohmann::ordered_json document;
};

template <class Report>
Answer answer_of(const Report& report, const std::string& output, const std::string& what) {
  Answer answer{.text = to_text(report) + fmt::format("\nwrote {} to {}\n", what, output),
                .document = to_json(report)};
  answer.document["output"] = output;
  return answer;
}

void print_answer(const CalibrateArguments& arguments, const Answer& answer) {
  if (arguments.wants_json) {
    print_json(answer.document);
  } else {
    print(answer.text);
  }
}

// Writes the profile of a report.
template <class Report>
Answer finish(const CalibrateArguments& arguments, const Report& report) {
  print_lines("warning: ", report.warnings);
  write_profile(arguments.output, report.profile);
  return answer_of(report, arguments.output, "the calibration " + report.calibration.name);
}

// Refuses, before anything is fitted, what cannot be written and what would overwrite a log. No temporary
// file waits for the fit to end, so that even a kill -9 leaves none behind.
void check_outputs(const CalibrateArguments& arguments, std::vector<std::string> inputs) {
  if (arguments.output.empty() && arguments.gpu_output.empty()) {
    throw ConfigError("--output: is required (-o PROFILE.json), or --gpu-output for computing alone");
  }
  if (!arguments.request.machine.empty()) {
    inputs.push_back(arguments.request.machine);
  }
  require_files_of_their_own({json_output(arguments.wants_json),
                              {"--output", arguments.output},
                              {"--gpu-output", arguments.gpu_output}},
                             inputs);
  for (const std::string& output : {arguments.output, arguments.gpu_output})
    if (!output.empty())
      static_cast<void>(AtomicFile(output));
}

void check_run_options(const CalibrateArguments& arguments) {
  std::vector<std::string> given = given_options(arguments.request.facts);
  if (!arguments.request.profile.empty()) {
    given.emplace_back("--profile");
  }
  if (!given.empty()) {
    throw ConfigError(fmt::format(
        "{}: is said of benchmark logs; harness runs say all of it themselves, and so do tables of kernels",
        given.front()));
  }
}

std::vector<HarnessRun> read_runs(const std::vector<std::string>& files, const MachineSpec& machine) {
  const bool is_gloo = machine.library == LibraryKind::gloo;
  std::vector<HarnessRun> runs;
  for (const std::string& file : files) {
    runs.push_back(read_harness_run(file));
    const HarnessRun& run = runs.back();
    if (is_gloo != (run.backend == "cpu")) {
      throw ConfigError(fmt::format("{}: /harness/backend: found \"{}\", and the ranks of a {} {}", file,
                                    run.backend, machine.name,
                                    is_gloo ? "are CPU processes (Gloo)" : "are GPUs (NCCL)"));
    }
    for (const std::string& failure : describe_failures(run)) {
      print_lines("warning: ", {run.name + ": " + failure});
    }
  }
  if (!is_gloo) {
    check_gpu_runs(runs);
  }
  return runs;
}

nlohmann::ordered_json document_of(const ProcessorCalibration& processor) {
  return processor.kernels ? to_json(*processor.kernels)
                           : nlohmann::ordered_json{{"schema", "lockstep.calibration_report/1"},
                                                    {"gpu", processor.profile.at("name")},
                                                    {"warnings", processor.warnings},
                                                    {"profile", processor.profile}};
}

Answer fit_processor(const ProcessorInputs& inputs, const std::vector<HarnessRun>& runs,
                     const std::string& output, const ProfileStore& store) {
  const ProcessorCalibration processor = calibrate_processor(inputs, runs, store);
  print_lines("warning: ", processor.warnings);
  write_profile(output, processor.profile);
  Answer answer{.text = processor.kernels ? to_text(*processor.kernels) + "\n" : "",
                .document = document_of(processor)};
  answer.text +=
      fmt::format("wrote the processor {} to {}\n", processor.profile.at("name").get<std::string>(), output);
  answer.document["output"] = output;
  return answer;
}

Duration link_latency(const MachineSpec& machine) {
  return machine.nics.empty() ? Duration::zero() : machine.nics.front().link.latency;
}

Answer fit_processes(const CalibrateArguments& arguments, const std::vector<HarnessRun>& runs,
                     const MachineSpec& machine, const ProfileStore& store) {
  HarnessCalibration report =
      calibrate_to_runs(runs, {.name = machine.name, .link_latency = link_latency(machine)}, store);
  report.machine = machine.name;
  return finish(arguments, report);
}

Answer fit_gpus(const CalibrateArguments& arguments, const std::vector<HarnessRun>& runs,
                const ProfileStore& store) {
  return finish(arguments, calibrate_to_gpu_runs(runs,
                                                 {.machine = arguments.request.machine,
                                                  .holds_nothing_out = arguments.request.holds_nothing_out},
                                                 store));
}

// Runs of one GPU, and tables of kernels, say nothing of communication.
bool has_communication(const std::vector<HarnessRun>& runs, const MachineSpec& machine) {
  return !runs.empty() &&
         (machine.library == LibraryKind::gloo || !tables_of_runs(runs, machine.name).empty());
}

// Where the processor goes; empty: nobody asked for it.
std::string processor_output(const CalibrateArguments& arguments, bool fits_communication, bool has_kernels) {
  if (fits_communication && arguments.output.empty()) {
    throw ConfigError("--output: is required (-o PROFILE.json): the runs are of several ranks");
  }
  if (has_kernels && fits_communication && arguments.gpu_output.empty()) {
    throw ConfigError("--gpu-output: is required: tables of kernels are fitted to a GPU's profile");
  }
  if (fits_communication || !arguments.gpu_output.empty()) {
    return arguments.gpu_output;
  }
  if (!has_kernels) {
    throw ConfigError(
        "--output: found no all-reduce of several ranks in the runs: communication cannot be fitted, and "
        "computing goes to --gpu-output");
  }
  return arguments.output;
}

Answer fit_communication(const CalibrateArguments& arguments, const std::vector<HarnessRun>& runs,
                         const MachineSpec& machine, const ProfileStore& store) {
  return machine.library == LibraryKind::gloo ? fit_processes(arguments, runs, machine, store)
                                              : fit_gpus(arguments, runs, store);
}

// Both reports as one: the communication's document holds that of the kernels.
Answer joined(Answer processor, Answer communication, bool has_kernels) {
  communication.text = processor.text + communication.text;
  if (has_kernels) {
    communication.document["kernels"] = std::move(processor.document);
  }
  return communication;
}

int calibrate_measurements(const CalibrateArguments& arguments, const CalibrationFiles& files,
                           const ProfileStore& store) {
  check_run_options(arguments);
  const MachineSpec machine =
      load_collective_setting({.machine = arguments.request.machine}, store).cluster.machine;
  const std::vector<HarnessRun> runs = read_runs(files.runs, machine);
  const ProcessorInputs inputs = read_processor_inputs(files, machine, store);
  print_lines("", inputs.notes);
  const bool fits_communication = has_communication(runs, machine);
  const std::string output = processor_output(arguments, fits_communication, inputs.has_kernels());
  Answer answer;
  if (!output.empty()) {
    answer = fit_processor(inputs, runs, output, store);
  }
  if (fits_communication) {
    answer =
        joined(std::move(answer), fit_communication(arguments, runs, machine, store), inputs.has_kernels());
  } else {
    print_lines("", {"no run has all-reduces of several ranks: computing alone is calibrated"});
  }
  print_answer(arguments, answer);
  return 0;
}

int calibrate_kernels(const CalibrateArguments& arguments, const CalibrationFiles& files,
                      const ProfileStore& store) {
  if (!arguments.request.machine.empty())
    throw ConfigError("--architecture: stands beside --machine; expected one of the two");
  if (!arguments.gpu_output.empty())
    throw ConfigError("--gpu-output: is a machine's GPU; what is fitted to --architecture goes to --output");
  if (files.kernel_tables.empty())
    throw ConfigError("--architecture: is fitted to tables of timed kernels, and none was given");
  const ArchitectureCalibration report = calibrate_architecture(
      arguments.architecture, read_kernel_tables(files.kernel_tables), arguments.without, store);
  print_lines("warning: ", report.warnings);
  write_profile(arguments.output, report.profile);
  print_answer(arguments, answer_of(report, arguments.output, "the architecture " + arguments.architecture));
  return 0;
}

// Where the models go that each group of measurements is judged by.
std::string left_out_file(const std::string& output) {
  const std::filesystem::path path(output);
  return (path.parent_path() / (path.stem().string() + "_left_out" + path.extension().string())).string();
}

int calibrate_bands(const CalibrateArguments& arguments, const CommandContext& context) {
  const CalibrationRequest& request = arguments.request;
  if (!request.machine.empty() || !arguments.architecture.empty() || !arguments.gpu_output.empty())
    throw ConfigError(
        "--band: is fitted to validation suites; expected no --machine, --architecture, --gpu-output");
  if (arguments.output.empty())
    throw ConfigError("--output: is required (-o ERRORS.json)");
  const ValidationOptions suites{.files = find_measurement_files(request.files),
                                 .runs = find_harness_runs(request.files),
                                 .data_directory = context.data_directory,
                                 .accepts_any_size = context.accepts_any_size};
  const std::string left_out = left_out_file(arguments.output);
  for (const std::vector<std::string>& inputs : {suites.files, suites.runs})
    require_files_of_their_own(
        {json_output(arguments.wants_json), {"--output", arguments.output}, {"--output", left_out}}, inputs);
  const ErrorCalibration report = calibrate_errors(suites);
  write_json(arguments.output, profile_of(report), 1);
  write_json(left_out, write_left_out_models(report.without), 1);
  Answer answer = answer_of(report, arguments.output, "the errors of steps");
  answer.text += fmt::format("wrote those without each group to {}\n", left_out);
  answer.document["output_left_out"] = left_out;
  print_answer(arguments, answer);
  return 0;
}

// What belongs to one machine, or to logs that do not say it.
void refuse_options_of_one_machine(const CalibrateArguments& arguments) {
  std::vector<std::string> options = given_options(arguments.request.facts);
  const auto add = [&](bool is_given, const char* option) {
    if (is_given)
      options.emplace_back(option);
  };
  add(!arguments.request.machine.empty(), "--machine");
  add(!arguments.request.profile.empty(), "--profile");
  add(!arguments.architecture.empty(), "--architecture");
  add(!arguments.gpu_output.empty(), "--gpu-output");
  add(arguments.request.accepts_broken_runs, "--accept-broken");
  add(arguments.wants_json, "--json");
  if (!options.empty())
    throw ConfigError(fmt::format("--parts: is fitted to the tables of all machines; expected no {}",
                                  fmt::join(options, ", ")));
}

// Every index is read before anything is fitted, and all files are written after all of it.
int calibrate_all_parts(const CalibrateArguments& arguments, const CommandContext& context) {
  refuse_options_of_one_machine(arguments);
  if (arguments.output.empty() || !std::filesystem::is_directory(arguments.output))
    throw ConfigError(
        "--output: is required: the folder that holds parts/ and calibration/ (-o hw_profiles)");
  const ProfileStore store(context.data_directory);
  std::vector<MeasuredTable> tables;
  for (const std::string& index : arguments.request.files)
    for (MeasuredTable& table : read_measured_tables(index))
      if (table.healthy)
        tables.push_back(std::move(table));
  if (tables.empty())
    throw ConfigError("--parts: found no healthy table in the indexes, expected at least one");
  const PartsCalibration fitted = calibrate_parts(tables,
                                                  {.holds_no_cells_out = arguments.request.holds_nothing_out,
                                                   .tell =
                                                       [&](const std::string& what) {
                                                         if (!context.is_quiet)
                                                           print_diagnostic(what + "\n");
                                                       }},
                                                  store);
  const std::filesystem::path folder(arguments.output);
  const auto write_all = [&](const char* name, const auto& files) {
    std::filesystem::create_directories(folder / name);
    for (const auto& [file, document] : files)
      write_profile((folder / name / (file + ".json")).string(), document);
  };
  write_all("parts", fitted.parts);
  write_all("calibration", fitted.calibrations);
  print(fitted.text);
  return 0;
}

int run_calibrate(const CalibrateArguments& arguments, const CommandContext& context) {
  if (arguments.is_of_parts)
    return calibrate_all_parts(arguments, context);
  if (arguments.is_of_bands)
    return calibrate_bands(arguments, context);
  const ProfileStore store(context.data_directory);
  const CalibrationFiles files = sort_calibration_files(arguments.request.files);
  check_outputs(arguments, files.all());
  if (!arguments.architecture.empty()) {
    return calibrate_kernels(arguments, files, store);
  }
  if (!arguments.without.empty()) {
    throw ConfigError("--without: is said of --architecture, whose GPU it leaves out");
  }
  if (arguments.request.machine.empty()) {
    throw ConfigError("--machine: is required (or --architecture, of tables of timed kernels)");
  }
  if (files.has_measurements()) {
    return calibrate_measurements(arguments, files, store);
  }
  if (!arguments.gpu_output.empty()) {
    throw ConfigError(
        "--gpu-output: is written from harness runs (lockstep.run/1) and tables of kernels, and none was "
        "given");
  }
  const CalibrationInputs inputs = read_calibration_inputs(arguments.request, store);
  print_lines("", inputs.notes);
  print_answer(arguments, finish(arguments, calibrate(inputs, store)));
  return 0;
}

void add_log_options(CLI::App& command, LogFacts& facts) {
  command
      .add_option("--collective", facts.collective,
                  "what was measured, where neither a log's words nor its busbw say it")
      ->type_name(fmt::format("{}", fmt::join(collective_op_names(), "|")));
  command.add_option("--nodes", facts.nodes, "on how many nodes, where a log does not say it")
      ->type_name("N");
  command.add_option("--gpus-per-node", facts.gpus_per_node, "and with how many GPUs on each")
      ->type_name("G");
  command.add_option("--library-version", facts.library_version, "by which release, e.g. 2.18.3")
      ->type_name("V");
  command.add_option("--algorithm", facts.algorithm, "forced when the log was made")->type_name("A");
  command.add_option("--protocol", facts.protocol, "forced when the log was made")
      ->type_name("ll|ll128|simple");
  command.add_flag("--single-process", facts.is_single_process,
                   "one process drove all GPUs of its node (nccl-tests -g above 1)");
}

// What is fitted, and to which file.
void add_fit_options(CLI::App& command, CalibrateArguments& arguments) {
  command.add_option("--machine", arguments.request.machine, "a machine's name or file")->type_name("M");
  command
      .add_option("--architecture", arguments.architecture,
                  "of tables of timed kernels: fit the constants of this GPU architecture")
      ->type_name("NAME");
  command.add_flag(
      "--parts", arguments.is_of_parts,
      "of indexes of tables: fit the parts of all machines at once, and each machine; -o is the folder of "
      "profiles");
  command.add_flag("--band", arguments.is_of_bands,
                   "of validation suites: fit how far predictions miss, which every band rests on");
  command
      .add_option("--without", arguments.without,
                  "with --architecture: leave out the rows of this GPU, as the tables name it")
      ->type_name("GPU");
  command
      .add_option("-o,--output", arguments.output,
                  "the calibration profile; of tables of kernels alone, the GPU's profile")
      ->type_name("PROFILE.json");
  command
      .add_option(
          "--gpu-output", arguments.gpu_output,
          "harness runs and tables of kernels: what the GPU (or CPU) reaches, as a profile of its own")
      ->type_name("GPU.json");
  command.add_option("--profile", arguments.request.profile, "of an index: only the tables of this profile")
      ->type_name("NAME");
}

}  // namespace

void add_calibrate_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "fit a machine to its benchmark logs, harness runs or tables of timed kernels");
  const auto arguments = std::make_shared<CalibrateArguments>();
  CalibrationRequest& request = arguments->request;
  command
      ->add_option(
          "log", request.files,
          "logs of nccl-tests or rccl-tests, CSV, or indexes of tables "
          "(.json, lockstep.collective_tables/1); or harness runs (.json, lockstep.run/1) and tables "
          "of timed kernels (gemm.csv memory_bound.csv launches.csv ...), or folders of these; - is a log "
          "on standard input")
      ->type_name("LOG")
      ->required();
  add_fit_options(*command, *arguments);
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
