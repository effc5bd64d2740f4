// lockstep predict SCENARIO: iteration time and where it goes.

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/page_file.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/cli/statistics.h"
#include "sim/load/import/chakra_program.h"
#include "sim/report/chakra_export.h"
#include "sim/report/html.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/report/schedule_picture.h"
#include "sim/report/timeline_picture.h"
#include "sim/report/trace.h"
#include "sim/study/answers/strategy_comparison.h"
#include "sim/study/picture.h"

namespace lockstep {
namespace {

struct PredictArguments {
  ScenarioArguments scenario;
  bool wants_json = false;
  bool wants_statistics = false;
  std::string trace_path;
  TraceExtent trace_extent;
  std::string chakra_prefix;
  std::string report_path;
  std::string picture;
};

constexpr std::size_t large_trace = 100'000'000;  // bytes; what viewers open without complaint

// Who reads the hint need not wait for the rest, and a disk that it fills is no surprise.
void write_trace_file(AtomicFile& file, const Prediction& prediction, const TraceExtent& extent) {
  std::size_t bytes = 0;
  write_trace(
      prediction.scenario, prediction.simulation,
      [&](std::string_view text) {
        if (bytes <= large_trace && bytes + text.size() > large_trace)
          print_diagnostic(fmt::format(
              "lockstep: the trace is above {} MB; --trace-iterations and --trace-ranks limit it\n",
              large_trace / 1'000'000));
        bytes += text.size();
        file.write(text);
      },
      extent);
  file.commit();
}

// Of the files of all ranks the first stands for the others.
std::vector<OutputFile> chakra_outputs(const std::string& prefix) {
  if (prefix.empty())
    return {};
  const std::string option = "--export-chakra";
  return {
      {option, prefix + ".json"}, {option, chakra_groups_file(prefix)}, {option, chakra_file_of(prefix, 0)}};
}

// A rank more than the cluster has would be read as one of its own.
void check_chakra_export(const std::string& prefix, const Scenario& scenario) {
  if (prefix.empty())
    return;
  if (const std::string reason = reason_against_chakra(scenario); !reason.empty())
    throw ConfigError(in_file(scenario, "--export-chakra: " + reason));
  const std::string beyond = chakra_file_of(prefix, static_cast<std::uint32_t>(scenario.cluster.ranks()));
  std::error_code ignored;
  if (std::filesystem::exists(beyond, ignored))
    throw ConfigError(
        fmt::format("--export-chakra: found {}, of a rank that this cluster does not have; remove it, or "
                    "take another name",
                    beyond));
  static_cast<void>(AtomicFile(prefix + ".json"));
}

using ComparedStrategies = std::vector<ComparedStrategy>;

void print_report(const PredictArguments& arguments, const Prediction& prediction,
                  const std::optional<ComparedStrategies>& comparison) {
  const auto& [scenario, simulation, report] = prediction;
  if (arguments.wants_json) {
    print_json(with_comparison(to_json(report, scenario), comparison));
  } else {
    print_coloured(to_text(report, scenario, {.has_colour = wants_colour()}) +
                   (comparison ? printable(to_text(*comparison, scenario)) : ""));
  }
}

// The curves of the strategies that the scenario compares, else the schedule of its pipeline, else where the time goes.
void draw_prediction(const PredictArguments& arguments, const Prediction& prediction,
                     const std::optional<ComparedStrategies>& comparison, const std::string& data_directory) {
  const bool has_schedule = !comparison && prediction.scenario.training.layout.pipeline > 1;
  const nlohmann::ordered_json document =
      has_schedule ? schedule_picture(prediction.scenario, prediction.simulation)
                   : with_comparison(to_json(prediction.report, prediction.scenario), comparison);
  draw({.script = comparison     ? "loss"
                  : has_schedule ? "schedule"
                                 : "breakdown",
        .document = document.dump(),
        .output = arguments.picture,
        .data_directory = data_directory});
}

// Text tells no more of the scenario than its name.
bool writes_document(const PredictArguments& arguments) {
  return arguments.wants_json || !arguments.report_path.empty() || !arguments.picture.empty();
}

bool draws_times(const PredictArguments& arguments) {
  return !arguments.trace_path.empty() || !arguments.report_path.empty() || !arguments.picture.empty();
}

// One plan is written and run: what its arrays grow out of goes back to the system at once instead of leaving holes
// (GPT-3 175B on 1,024 GPUs: 295 in place of 311 MB). Searches, whose plans come and go, keep their heap: they would
// spend a fifth of their time on fresh pages.
void give_back_large_blocks() {
#ifdef __GLIBC__
  constexpr int block = 256 * 1024;
  mallopt(M_MMAP_THRESHOLD, block);
#endif
}

int run_predict(const PredictArguments& arguments, const CommandContext& context) {
  const Stopwatch since_start;
  give_back_large_blocks();
  const ScenarioVariants variants(arguments.scenario.request(context));
  LoadedScenario scenario = variants.load({.writes_resolved = writes_document(arguments)});
  std::vector<OutputFile> outputs = chakra_outputs(arguments.chakra_prefix);
  outputs.insert(outputs.end(), {json_output(arguments.wants_json),
                                 {"--trace", arguments.trace_path},
                                 {"--report", arguments.report_path},
                                 {"--plot", arguments.picture}});
  std::vector<std::string> inputs = scenario.files;
  if (scenario.program)
    inputs.push_back(chakra_file_of(scenario.program->source, 0));
  require_files_of_their_own(outputs, inputs);
  // What cannot be written is found before anything is simulated.
  std::optional<AtomicFile> trace;
  if (!arguments.trace_path.empty())
    trace.emplace(arguments.trace_path);
  PageFile page(arguments.report_path);
  check_chakra_export(arguments.chakra_prefix, scenario);
  if (!arguments.picture.empty())
    check_picture_file(arguments.picture);
  Prediction prediction = variants.predict(std::move(scenario), {.with_times = draws_times(arguments)});
  MemoryReport& memory = prediction.report.memory;
  if (!memory.fits())
    memory.remedies = variants.find_remedies(prediction.scenario);
  const std::optional<ComparedStrategies> comparison =
      prediction.scenario.comparison ? std::optional(compare_strategies(prediction.scenario)) : std::nullopt;
  if (page.is_wanted())
    page.write(to_html(prediction.report, prediction.scenario, timeline_picture(prediction.simulation)));
  if (trace)
    write_trace_file(*trace, prediction, arguments.trace_extent);
  if (!arguments.chakra_prefix.empty())
    export_chakra(prediction.scenario, arguments.chakra_prefix, write_file_atomically);
  print_report(arguments, prediction, comparison);
  if (!arguments.picture.empty())
    draw_prediction(arguments, prediction, comparison, context.data_directory);
  if (arguments.wants_statistics) {
    const Stopwatch simulating;
    const Report again = summarise(prediction.scenario, simulate(prediction.scenario));
    print_statistics(since_start, again.engine.events, simulating.seconds());
  }
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("predict", "iteration time of a training run, and where it goes");
  const auto arguments = std::make_shared<PredictArguments>();
  arguments->scenario.add_to(*command);
  command->add_flag("--json", arguments->wants_json, "print one JSON document (lockstep.result/1)");
  command->add_option("--trace", arguments->trace_path, "write a trace for ui.perfetto.dev")
      ->type_name("FILE");
  command
      ->add_option("--trace-iterations", arguments->trace_extent.iterations, "in the trace, the last N (all)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--trace-ranks", arguments->trace_extent.ranks,
                   "in the trace, the first N simulated (all)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command
      ->add_option(
          "--export-chakra", arguments->chakra_prefix,
          "write the plan of an iteration as Chakra execution traces: PREFIX.RANK.et, PREFIX.groups.json "
          "and PREFIX.json, the scenario that runs them")
      ->type_name("PREFIX");
  add_report_option(*command, arguments->report_path);
  command
      ->add_option("--plot", arguments->picture,
                   "draw what `compare` compares, else a pipeline's schedule, else where the time goes "
                   "(needs python3 with matplotlib)")
      ->type_name("FILE.svg|FILE.png");
  arguments->scenario.add_library_options(*command);
  arguments->scenario.add_simulation_options(*command);
  command->add_flag("--stats", arguments->wants_statistics, "print the simulator's own speed to stderr");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_predict(*arguments, context); };
  });
}

}  // namespace lockstep
