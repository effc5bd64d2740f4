// lockstep calibrate --machine M LOG... -o PROFILE.json: a machine's communication from its benchmark logs or
// from runs of the training harness; its processor from such runs and from tables of timed kernels.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/study/calibration_report.h"
#include "sim/study/collective_table.h"
#include "sim/study/gpu_name.h"
#include "sim/study/harness_calibration.h"
#include "sim/study/harness_gpu_calibration.h"
#include "sim/study/kernel_calibration.h"
#include "sim/study/kernel_validation.h"
#include "sim/study/launch_table.h"
#include "sim/study/measured_processor.h"
#include "sim/study/measurement_files.h"

namespace lockstep {
namespace {

struct CalibrateArguments {
  CalibrationRequest request;
  std::string output;
  std::string gpu_output;  // of harness runs and of tables of kernels
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
  write_file_atomically(arguments.output, report.profile.dump(2) + "\n");
  return answer_of(report, arguments.output, "the calibration " + report.calibration.name);
}

// Refuses, before anything is fitted, what cannot be written and what would overwrite a log. No temporary
// file waits for the fit to end, so that even a kill -9 leaves none behind.
void check_output(const char* option, const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& file : inputs) {
    std::error_code ignored;
    if (std::filesystem::equivalent(file, output, ignored)) {
      throw ConfigError(
          fmt::format("{}: found {}, which is to be read, expected a file of its own", option, output));
    }
  }
  static_cast<void>(AtomicFile(output));
}

void check_outputs(const CalibrateArguments& arguments, const std::vector<std::string>& inputs) {
  if (arguments.output.empty() && arguments.gpu_output.empty()) {
    throw ConfigError("--output: is required (-o PROFILE.json), or --gpu-output for computing alone");
  }
  if (!arguments.output.empty()) {
    check_output("--output", arguments.output, inputs);
  }
  if (!arguments.gpu_output.empty()) {
    check_output("--gpu-output", arguments.gpu_output, inputs);
  }
}

// What files and folders hold; of a folder, what is measured by the harness and by a GPU benchmark.
struct CalibrationFiles {
  std::vector<std::string> runs;
  std::vector<std::string> kernel_tables;
  std::vector<std::string> launch_tables;
  std::vector<std::string> logs;

  bool has_measurements() const { return !runs.empty() || !kernel_tables.empty() || !launch_tables.empty(); }
  std::vector<std::string> all() const {
    std::vector<std::string> files = runs;
    for (const auto* more : {&kernel_tables, &launch_tables, &logs}) {
      files.insert(files.end(), more->begin(), more->end());
    }
    return files;
  }
};

// A file that cannot be read is left to the reader of logs.
bool is_run(const std::string& file) {
  return file.ends_with(".json") && std::filesystem::exists(file) && is_harness_run(file);
}

void append(std::vector<std::string>& files, const std::vector<std::string>& more) {
  files.insert(files.end(), more.begin(), more.end());
}

CalibrationFiles sort_files(const std::vector<std::string>& arguments) {
  CalibrationFiles files;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(argument, ignored);
    const std::vector<std::string> kernel_tables = find_kernel_tables({argument});
    const std::vector<std::string> launch_tables = find_launch_tables({argument});
    append(files.kernel_tables, kernel_tables);
    append(files.launch_tables, launch_tables);
    if (is_folder) {
      append(files.runs, find_harness_runs({argument}));
    } else if (is_run(argument)) {
      files.runs.push_back(argument);
    } else if (kernel_tables.empty() && launch_tables.empty()) {
      files.logs.push_back(argument);
    }
    if (is_folder && !files.has_measurements()) {
      throw ConfigError(argument +
                        ": found no harness runs (lockstep.run/1) and no tables of kernels (gemm.csv, ...)");
    }
  }
  return files;
}

// Runs and logs measure different things.
void check_apart(const CalibrationFiles& files) {
  if (files.has_measurements() && !files.logs.empty()) {
    const bool is_of_run = !files.runs.empty();
    throw ConfigError(fmt::format("{}: is a {}, and {} is none: fit {} and benchmark logs apart",
                                  files.all().front(),
                                  is_of_run ? "harness run (lockstep.run/1)" : "table of kernels",
                                  files.logs.front(), is_of_run ? "runs" : "kernels"));
  }
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
  return runs;
}

// The machine's GPU as it is shipped or stated in a file; null where the machine states it itself.
nlohmann::ordered_json gpu_of(const MachineSpec& machine, const ProfileStore& store) {
  const auto profile = store.open(ProfileKind::gpu, machine.gpu);
  return profile ? *profile->value : nlohmann::ordered_json();
}

// The rows of the machine's GPU; those of others are told of.
std::vector<KernelCase> kernels_of(const nlohmann::ordered_json& gpu, const MachineSpec& machine,
                                   const std::vector<std::string>& tables) {
  std::vector<KernelCase> kernels = read_kernel_tables(tables);
  const std::size_t rows = kernels.size();
  std::set<std::string> others;
  std::erase_if(kernels, [&](const KernelCase& kernel) {
    const bool is_other = others.contains(kernel.gpu) || !is_gpu_named(kernel.gpu, gpu);
    if (is_other) {
      others.insert(kernel.gpu);
    }
    return is_other;
  });
  if (kernels.empty() && !tables.empty()) {
    throw ConfigError(fmt::format("{}: found rows of {}, and the GPU of a {} is {}", tables.front(),
                                  fmt::join(others, ", "), machine.name, machine.gpu));
  }
  if (kernels.size() < rows) {
    print_lines("", {fmt::format("passed over {} rows of other GPUs than {}: {}", rows - kernels.size(),
                                 machine.gpu, fmt::join(others, ", "))});
  }
  return kernels;
}

std::optional<LaunchTimes> launches_of(const nlohmann::ordered_json& gpu, const MachineSpec& machine,
                                       const std::vector<std::string>& tables) {
  if (tables.size() > 1) {
    throw ConfigError(fmt::format("{}: is a second table of launches, expected one", tables[1]));
  }
  if (tables.empty()) {
    return std::nullopt;
  }
  LaunchTimes launches = read_launch_table(tables.front());
  if (!is_gpu_named(launches.gpu, gpu)) {
    throw ConfigError(fmt::format("{}: found {}, and the GPU of a {} is {}", tables.front(), launches.gpu,
                                  machine.name, machine.gpu));
  }
  return launches;
}

// A machine's processor, from all that was timed of it alone.
class ProcessorFit {
 public:
  ProcessorFit(const CalibrationFiles& files, const MachineSpec& machine, const ProfileStore& store)
      : store_(store),
        gpu_(gpu_of(machine, store)),
        kernels_(kernels_of(gpu_, machine, files.kernel_tables)),
        launches_(launches_of(gpu_, machine, files.launch_tables)) {}

  bool has_kernels() const { return !kernels_.empty() || launches_; }

  // Matrix products and copies of the runs first, then what tables of kernels know better.
  Answer fit(const std::vector<HarnessRun>& runs, const std::string& output) const {
    nlohmann::ordered_json profile = base(runs);
    if (!runs.empty()) {
      profile = of_runs(runs, std::move(profile));
    }
    if (!has_kernels()) {
      write_file_atomically(output, profile.dump(2) + "\n");
      return {.text = fmt::format("wrote the processor {} to {}\n", profile.at("name").get<std::string>(),
                                  output),
              .document = {{"schema", "lockstep.calibration_report/1"},
                           {"gpu", profile.at("name")},
                           {"profile", profile},
                           {"output", output}}};
    }
    const KernelCalibration report =
        calibrate_gpu({.kernels = kernels_, .launches = launches_, .gpu = std::move(profile)}, store_);
    print_lines("warning: ", report.warnings);
    write_file_atomically(output, report.profile.dump(2) + "\n");
    return answer_of(report, output, "the GPU " + report.profile.at("name").get<std::string>());
  }

 private:
  nlohmann::ordered_json base(const std::vector<HarnessRun>& runs) const {
    if (!gpu_.is_null()) {
      return gpu_;
    }
    const nlohmann::ordered_json shipped = shipped_processor(runs.front(), store_);
    if (shipped.is_null()) {
      throw ConfigError("--machine: states its GPU itself, and " + runs.front().device +
                        " is not shipped; expected a machine whose \"gpu\" is a name or a path");
    }
    return shipped;
  }

  nlohmann::ordered_json of_runs(const std::vector<HarnessRun>& runs, nlohmann::ordered_json profile) const {
    MeasuredProcessor measured = measured_processor(runs, profile);
    if (!measured.profile.is_null()) {
      print_lines("warning: ", measured.warnings);
      return std::move(measured.profile);
    }
    if (!has_kernels()) {
      print_lines("warning: ", measured.warnings);
      throw ConfigError("--gpu-output: the runs hold no matmuls and no memory_copies to write");
    }
    return profile;
  }

  const ProfileStore& store_;
  nlohmann::ordered_json gpu_;
  std::vector<KernelCase> kernels_;
  std::optional<LaunchTimes> launches_;
};

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

int calibrate_measurements(const CalibrateArguments& arguments, const CalibrationFiles& files,
                           const ProfileStore& store) {
  check_run_options(arguments);
  const MachineSpec machine =
      load_collective_setting({.machine = arguments.request.machine}, store).cluster.machine;
  const std::vector<HarnessRun> runs = read_runs(files.runs, machine);
  if (machine.library != LibraryKind::gloo) {
    check_gpu_runs(runs);
  }
  const ProcessorFit processor(files, machine, store);
  const bool fits_communication = has_communication(runs, machine);
  const std::string output = processor_output(arguments, fits_communication, processor.has_kernels());
  Answer answer;
  if (!output.empty()) {
    answer = processor.fit(runs, output);
  }
  if (fits_communication) {
    Answer communication = machine.library == LibraryKind::gloo
                               ? fit_processes(arguments, runs, machine, store)
                               : fit_gpus(arguments, runs, store);
    answer.text += communication.text;
    if (processor.has_kernels()) {
      communication.document["kernels"] = answer.document;
    }
    answer.document = std::move(communication.document);
  } else {
    print_lines("", {"no run has all-reduces of several ranks: computing alone is calibrated"});
  }
  print_answer(arguments, answer);
  return 0;
}

int run_calibrate(const CalibrateArguments& arguments, const CommandContext& context) {
  const ProfileStore store(context.data_directory);
  const CalibrationFiles files = sort_files(arguments.request.files);
  check_apart(files);
  check_outputs(arguments, files.all());
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
  CLI::App* command = app.add_subcommand(
      "calibrate", "fit a machine to its benchmark logs, harness runs or tables of timed kernels");
  const auto arguments = std::make_shared<CalibrateArguments>();
  CalibrationRequest& request = arguments->request;
  command
      ->add_option(
          "log", request.files,
          "logs of nccl-tests or rccl-tests, CSV, or indexes of tables "
          "(.json, lockstep.collective_tables/1); or harness runs (.json, lockstep.run/1) and tables "
          "of timed kernels (gemm.csv memory_bound.csv launches.csv ...), or folders of these")
      ->type_name("LOG")
      ->required();
  command->add_option("--machine", request.machine, "a machine's name or file")->type_name("M")->required();
  command
      ->add_option("-o,--output", arguments->output,
                   "the calibration profile; of tables of kernels alone, the GPU's profile")
      ->type_name("PROFILE.json");
  command
      ->add_option(
          "--gpu-output", arguments->gpu_output,
          "harness runs and tables of kernels: what the GPU (or CPU) reaches, as a profile of its own")
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
