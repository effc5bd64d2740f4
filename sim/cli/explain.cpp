// lockstep explain SCENARIO: every value with its source, what the strategy costs, and what if.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/anchor.h"
#include "sim/report/held_clock.h"
#include "sim/report/kernel_account.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/report/scenario_text.h"
#include "sim/report/text_table.h"
#include "sim/run/beside_communication.h"
#include "sim/study/answers/difference_text.h"
#include "sim/study/answers/faster_settings.h"
#include "sim/study/answers/strategy_cost.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

struct ExplainArguments {
  ScenarioArguments scenario;
  std::vector<std::string> questions;  // --what-if
  bool wants_json = false;
  bool wants_kernels = false;
};

struct Explanation {
  const LoadedScenario& scenario;
  StrategyCost cost;
  FasterSettings settings;
  bool fits = true;
  std::vector<Sensitivity> what_if;
  std::vector<std::string> warnings;
};

// Each on its own, beside the same scenario; all are loaded before the first is simulated.
std::vector<Sensitivity> answer(const std::vector<std::string>& questions, const ScenarioVariants& variants,
                                std::vector<std::string>& warnings) {
  std::vector<LoadedScenario> changed;
  for (const std::string& question : questions) {
    changed.push_back(solve_anchor(variants.load({.changes = {parse_change(question, "--what-if")}})));
    add_new_warnings("what if " + question + ": ", changed.back(), warnings);
  }
  std::vector<Sensitivity> answers;
  for (std::size_t i = 0; i < changed.size(); ++i)
    answers.push_back({questions[i], variants.predict_iteration(changed[i])});
  return answers;
}

ordered_json to_json(const std::vector<Sensitivity>& changes, Duration iteration) {
  ordered_json json = ordered_json::array();
  for (const Sensitivity& change : changes) {
    json.push_back({{"change", change.change},
                    {"iteration_time_s", change.iteration.in_seconds()},
                    {"difference_s", (change.iteration - iteration).in_seconds()},
                    {"difference_percent", difference_percent(iteration, change.iteration)}});
  }
  return json;
}

ordered_json to_json(const FasterSettings& settings, Duration iteration) {
  ordered_json json = ordered_json::array();
  for (const FasterSetting& setting : settings.found) {
    ordered_json set = ordered_json::object();
    for (const auto& [path, value] : setting.changes) set[path] = value;
    json.push_back({{"set", std::move(set)},
                    {"iteration_time_s", setting.iteration.in_seconds()},
                    {"difference_s", (setting.iteration - iteration).in_seconds()},
                    {"difference_percent", difference_percent(iteration, setting.iteration)},
                    {"memory_bytes", setting.memory.count()},
                    {"rounds_more", setting.rounds_more}});
  }
  return {{"found", std::move(json)}, {"tried", settings.tried}, {"left_out", settings.left_out}};
}

ordered_json to_json(const std::vector<DimensionCost>& dimensions) {
  ordered_json json = ordered_json::array();
  for (const DimensionCost& cost : dimensions)
    json.push_back(
        {{"dimension", cost.dimension},
         {"payload", name_of(cost.payload)},
         {"ranks", cost.ranks},
         {"messages_per_iteration", cost.messages},
         {"smallest_message_bytes", cost.smallest.count()},
         {"largest_message_bytes", cost.largest.count()},
         {"sent_bytes", cost.sent.count()},
         {"links", cost.links},
         {"link_bandwidth_gbs", static_cast<double>(cost.link_bandwidth.count()) / 1e9},
         {"computing_beside_s", cost.computing.in_seconds()},
         {"bandwidth_to_hide_gbs",
          cost.needs ? ordered_json(static_cast<double>(cost.needs->count()) / 1e9) : ordered_json(nullptr)},
         {"latency_it_stands_s",
          cost.stands ? ordered_json(cost.stands->in_seconds()) : ordered_json(nullptr)},
         {"exposed_s", cost.exposed.in_seconds()}});
  return json;
}

ordered_json to_json(const Explanation& explanation) {
  const StrategyCost& cost = explanation.cost;
  return {{"schema", "lockstep.explanation/1"},
          {"name", explanation.scenario.name},
          {"scenario", explanation.scenario.resolved},
          {"provenance", explanation.scenario.provenance},
          {"iteration_time_s", cost.iteration.in_seconds()},
          {"cost",
           {{"collectives_per_iteration", cost.collectives},
            {"collectives", to_json(grouped_alike(cost.listed))},
            {"bytes_per_gpu", cost.bytes_per_gpu.count()},
            {"communicating_s", cost.communicating.in_seconds()},
            {"exposed_s", cost.exposed.in_seconds()},
            {"dimensions", to_json(cost.dimensions)},
            {"kernels_beside", tell_interference(explanation.scenario)},
            {"clock", clock_json(explanation.scenario)},
            {"sensitivities", to_json(cost.sensitivities, cost.iteration)}}},
          {"faster_settings", to_json(explanation.settings, cost.iteration)},
          {"what_if", to_json(explanation.what_if, cost.iteration)},
          {"warnings", explanation.warnings}};
}

std::string comparison(const std::vector<Sensitivity>& changes, Duration iteration) {
  TextTable table({Align::left, Align::right, Align::right, Align::right});
  for (const Sensitivity& change : changes) {
    table.add_row({change.change, format_duration(change.iteration),
                   signed_duration(change.iteration - iteration),
                   fmt::format("{:+.1f} %", difference_percent(iteration, change.iteration))});
  }
  return table.text(2);
}

// Where it does not fit as it is, what holds no more than now is told.
std::string settings_heading(bool fits) {
  return fmt::format("\nThe iteration with one setting changed, where it is shorter and {}\n",
                     fits ? "fits" : "holds no more than now, which does not fit");
}

std::string settings_text(const FasterSettings& settings, Duration iteration) {
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  for (const FasterSetting& setting : settings.found)
    table.add_row({describe(setting.changes), format_duration(setting.iteration),
                   signed_duration(setting.iteration - iteration),
                   fmt::format("{:+.1f} %", difference_percent(iteration, setting.iteration)),
                   "holds " + format_bytes(setting.memory), setting.rounds_more ? "rounds more" : ""});
  std::string text = settings.found.empty()
                         ? fmt::format("  none of the {} that were tried\n", settings.tried)
                         : table.text(2) + fmt::format("  of {} that were tried\n", settings.tried);
  if (settings.left_out > 0)
    text += fmt::format("  {} more were not tried, which would take long (--yes)\n", settings.left_out);
  return text;
}

std::string cost_text(const StrategyCost& cost, const Scenario& scenario) {
  TextTable table({Align::left, Align::left});
  table.add_row({"iteration", format_duration(cost.iteration)});
  table.add_row({"collectives", std::to_string(cost.collectives)});
  table.add_row({"sent by each GPU", format_bytes(cost.bytes_per_gpu)});
  table.add_row(
      {"communicating", fmt::format("{}, of which {} with nothing to compute",
                                    format_duration(cost.communicating), format_duration(cost.exposed))});
  table.add_row({"kernels beside it", tell_interference(scenario)});
  table.add_row({"clock of products", tell_clock(scenario)});
  return table.text(2);
}

std::string sizes_text(const DimensionCost& cost) {
  const std::string largest = format_bytes(cost.largest);
  return cost.smallest == cost.largest ? largest : format_bytes(cost.smallest) + " to " + largest;
}

std::string dimensions_text(const std::vector<DimensionCost>& dimensions) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::left, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"dimension", "carries", "ranks", "messages", "of", "sent", "over", "which gives",
                 "hidden from", "stands latency", "exposed"});
  for (const DimensionCost& cost : dimensions)
    table.add_row({cost.dimension, std::string(name_of(cost.payload)), std::to_string(cost.ranks),
                   std::to_string(cost.messages), sizes_text(cost), format_bytes(cost.sent), cost.links,
                   cost.link_bandwidth.count() > 0 ? format_bandwidth(cost.link_bandwidth) : "unknown",
                   cost.needs ? format_bandwidth(*cost.needs) : "never",
                   cost.stands ? format_duration(*cost.stands) : "none", time_cell(cost.exposed)});
  return table.text(2) +
         "  hidden from: the bandwidth at which its bytes take no longer than what is computed from its "
         "first message to "
         "its last\n  stands latency: what a message may take beyond its bytes until that no longer holds\n";
}

std::string to_text(const Explanation& explanation) {
  const StrategyCost& cost = explanation.cost;
  std::string text = summary_of(explanation.scenario) + "\n\n" + listing_of(explanation.scenario);
  text += "\nWhat the strategy costs in one iteration\n" + cost_text(cost, explanation.scenario);
  if (!cost.dimensions.empty())
    text += "\nWhat each dimension asks of the network, in one iteration of one rank\n" +
            dimensions_text(cost.dimensions);
  if (!cost.listed.empty()) {
    text += "\nIts collectives\n" + to_text(grouped_alike(cost.listed), 2);
  }
  text += "\nThe iteration if one thing were better\n" + comparison(cost.sensitivities, cost.iteration);
  text += settings_heading(explanation.fits) + settings_text(explanation.settings, cost.iteration);
  if (!explanation.what_if.empty()) {
    text += "\nWhat if\n" + comparison(explanation.what_if, cost.iteration);
  }
  for (const std::string& warning : explanation.warnings) {
    text += "\nwarning: " + warning + "\n";
  }
  return text;
}

ordered_json to_json(const LoadedScenario& scenario, const std::vector<KernelGroup>& groups) {
  ordered_json json{
      {"schema", "lockstep.kernels/1"}, {"name", scenario.name}, {"kernels", ordered_json::array()}};
  for (const KernelGroup& group : groups)
    json["kernels"].push_back({{"kind", group.kind},
                               {"direction", group.direction},
                               {"count", group.kernels},
                               {"time_s", group.total().in_seconds()},
                               {"multiplying_s", group.time.matrix.in_seconds()},
                               {"memory_s", group.time.memory.in_seconds()},
                               {"starting_s", group.time.launch.in_seconds()},
                               {"waiting_for_host_s", group.waiting.in_seconds()},
                               {"of_peak", group.of_peak}});
  return json;
}

// As `calibrate --architecture` writes them; a profile may hold anything there, since nothing is predicted from it.
bool is_of_kept_aside(const ordered_json& residual) {
  return residual.is_object() && residual.contains("section") && residual["section"].is_string() &&
         residual.contains("median_percent") && residual["median_percent"].is_number() &&
         residual.contains("rows") && residual["rows"] == "kept aside";
}

// How far the kernels that were kept aside from the fit of the architecture that the GPU's constants are named after
// were missed, by section.
ordered_json residuals_of(const GpuSpec& gpu, const ProfileStore& store) {
  ordered_json residuals = ordered_json::array();
  if (!gpu.kernels || ProfileStore::is_path(gpu.kernels->name))
    return residuals;
  const auto profile = store.open(ProfileKind::architecture, gpu.kernels->name);
  if (profile && profile->value->contains("residuals"))
    for (const ordered_json& residual : profile->value->at("residuals"))
      if (is_of_kept_aside(residual))
        residuals.push_back(residual);
  return residuals;
}

std::string residuals_text(const ordered_json& residuals) {
  std::string text;
  for (const ordered_json& residual : residuals)
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", residual.at("section").get<std::string>(),
                        residual.at("median_percent").get<double>());
  return text.empty() ? "" : "\n  kernels kept aside from their fit are missed by, at the median: " + text;
}

std::string constants_text(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  return gpu.kernels ? fmt::format("constants of {}: {}", gpu.kernels->name, gpu.kernels->source)
                     : "a curve of efficiencies, no kernels one by one";
}

std::string whose_step(const Scenario& scenario) {
  const std::int64_t stages = scenario.training.layout.pipeline;
  return stages == 1 ? "one GPU's step" : fmt::format("the step of one GPU of each of {} stages", stages);
}

int explain_kernels(const ExplainArguments& arguments, const LoadedScenario& scenario,
                    const ProfileStore& store) {
  const std::vector<KernelGroup> groups = kernel_account(scenario);
  const ordered_json residuals = residuals_of(scenario.cluster.gpu, store);
  ordered_json json = to_json(scenario, groups);
  json["clock"] = clock_json(scenario);
  json["residuals"] = residuals;
  if (arguments.wants_json)
    print_json(json);
  else
    print(
        fmt::format("{}\n\nThe kernels of {}, before any measured step corrects them\n{}\n  {}: {}\n"
                    "  clock of products: {}{}\n",
                    summary_of(scenario), whose_step(scenario), to_text(groups), scenario.cluster.gpu.name,
                    constants_text(scenario), tell_clock(scenario), residuals_text(residuals)));
  return 0;
}

int run_explain(const ExplainArguments& arguments, const CommandContext& context) {
  const ScenarioVariants variants(arguments.scenario.request(context));
  if (arguments.wants_kernels)
    return explain_kernels(arguments, solve_anchor(variants.load()), ProfileStore(context.data_directory));
  const Prediction prediction = variants.predict(variants.load(), {.with_band = false});
  std::vector<std::string> warnings = prediction.scenario.warnings;
  std::vector<Sensitivity> what_if = answer(arguments.questions, variants, warnings);
  const Explanation explanation{prediction.scenario,
                                find_strategy_cost(prediction),
                                find_faster_settings(variants, prediction),
                                prediction.report.memory.fits(),
                                std::move(what_if),
                                std::move(warnings)};
  if (arguments.wants_json) {
    print_json(to_json(explanation));
  } else {
    print(to_text(explanation));
  }
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("explain", "every value of a scenario with its source, and what if");
  const auto arguments = std::make_shared<ExplainArguments>();
  arguments->scenario.add_to(*command);
  CLI::Option* what_if =
      command
          ->add_option("--what-if", arguments->questions,
                       "the iteration time with this change; may be repeated, each on its own")
          ->type_name("PATH=VALUE")
          ->allow_extra_args(false);
  arguments->scenario.add_library_options(*command);
  arguments->scenario.add_simulation_options(*command);
  command
      ->add_flag("--kernels", arguments->wants_kernels,
                 "the kernels of one GPU's step instead: time, share and what bounds them")
      ->excludes(what_if);
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_explain(*arguments, context); };
  });
}

}  // namespace lockstep
