#include "sim/load/measured_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/compute/kernel_time.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/resolved.h"
#include "sim/load/training/compute_presets.h"
#include "sim/load/training/option_text.h"
#include "sim/run/host_issue.h"
#include "sim/run/step_transfer.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Measurements of one and the same step agree this far, and the factors of several steps with each of them.
constexpr double most_spread = 0.05;
constexpr double most_residual = 0.2;

// ---- the scenario that a step is of ----

const ordered_json* member_of(const ordered_json& json, std::string_view key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && !found->is_null() ? &*found : nullptr;
}

// A section as an object; a name stands for {`name_key`: name}.
ordered_json section_of(const ordered_json& document, std::string_view key, std::string_view name_key) {
  const ordered_json* section = member_of(document, key);
  if (section == nullptr)
    return ordered_json::object();
  return section->is_string() ? ordered_json{{std::string(name_key), *section}} : *section;
}

void copy_members(const ordered_json& from, const auto& keys, ordered_json& to) {
  for (const char* key : keys)
    if (const ordered_json* value = member_of(from, key))
      to[key] = *value;
}

// What a file need not state, since whoever loads it may: the batch.
ordered_json model_there(const ordered_json& here, const ordered_json& stated,
                         const ordered_json& conditions) {
  const ordered_json own = section_of(here, "model", "name");
  ordered_json model = section_of(stated, "model", "name");
  if (!model.is_object() || model.empty())
    model = own;
  if (member_of(conditions, "model") != nullptr) {
    ordered_json renamed = ordered_json::object();
    copy_members(model, conditions_of_model, renamed);
    renamed.update(section_of(conditions, "model", "name"));
    model = std::move(renamed);
  }
  if (!model.contains("batch_per_gpu") && own.contains("batch_per_gpu"))
    model["batch_per_gpu"] = own["batch_per_gpu"];
  copy_members(conditions, conditions_of_model, model);
  model.erase("summary");
  return model;
}

ordered_json training_there(const ordered_json& here, const ordered_json& stated,
                            const ordered_json& conditions) {
  ordered_json training = section_of(here, "training", "strategy");
  for (const char* key : {"global_batch", "data_parallel"}) training.erase(key);
  for (const char* key : conditions_of_training) training.erase(key);
  copy_members(section_of(stated, "training", "strategy"), conditions_of_training, training);
  copy_members(conditions, conditions_of_training, training);
  return training;
}

// Of a machine, what a step of one GPU depends on; nothing: as here.
struct StepHardware {
  std::optional<ordered_json> gpu = std::nullopt;
  std::optional<ordered_json> operator_time = std::nullopt;  // of the host beside it
};

// The machine's own, as the document has it; nothing where it cannot be read.
StepHardware hardware_in(const ordered_json& document, const LoadOptions& options) {
  const ordered_json cluster = section_of(document, "cluster", "machine");
  const ordered_json* machine = member_of(cluster, "machine");
  if (machine == nullptr)
    return {};
  LoadContext context{.store = options.store, .folder = options.folder};
  JsonDocument alone = JsonDocument::from_value(*machine, options.file_name, "/cluster/machine");
  const MachineReading reading =
      read_named(alone.root(), {context, "/cluster/machine"}, ProfileKind::machine, read_machine);
  if (!alone.problems().empty() || !context.problems.empty() || reading.machine.name.empty())
    return {};
  return {.gpu = write_gpu(reading.gpu), .operator_time = exact_text(operator_time(reading.machine.host))};
}

// Of the framework that the document trains with.
std::string compute_preset_in(const ordered_json& document) {
  const ordered_json training = section_of(document, "training", "strategy");
  const auto text = [&](const char* key) {
    const ordered_json* found = member_of(training, key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string framework = text("framework");
  return std::string(usual_compute_preset(framework.empty() ? usual_framework(text("strategy")) : framework));
}

class Documents {
 public:
  Documents(const ordered_json& here, const StatedSteps& stated) : here_(here), stated_(stated.document) {
    if (section_of(here_, "cluster", "")["machine"] != section_of(stated_, "cluster", "")["machine"])
      stated_hardware_ = hardware_in(stated_, stated.options);
  }

  // This document without what no step depends on.
  ordered_json own() const { return with(here_, ordered_json::object(), {}); }

  ordered_json of(const StatedStep& step) const {
    StepHardware hardware = stated_hardware_;
    if (const ordered_json* gpu = member_of(step.conditions, "gpu"))
      hardware.gpu = *gpu;
    if (const ordered_json* time = member_of(step.conditions, "operator_time"))
      hardware.operator_time = *time;
    return with(stated_, step.conditions, hardware);
  }

 private:
  ordered_json with(const ordered_json& stated, const ordered_json& conditions,
                    const StepHardware& hardware) const {
    ordered_json document = here_;
    for (const char* key : {"compare", "input", "simulation"}) document.erase(key);
    document["model"] = model_there(here_, stated, conditions);
    document["training"] = training_there(here_, stated, conditions);
    ordered_json& compute = document["compute"];
    for (const char* key : {"single_gpu_iteration", "anchors", "anchor", "scale"}) compute.erase(key);
    for (const char* key : conditions_of_compute) compute.erase(key);
    copy_members(section_of(stated, "compute", ""), conditions_of_compute, compute);
    copy_members(conditions, conditions_of_compute, compute);
    if (!compute.contains("preset"))
      compute["preset"] = compute_preset_in(stated);
    if (hardware.gpu || hardware.operator_time)
      document["cluster"]["machine"] = machine_there(hardware);
    return document;
  }

  ordered_json machine_there(const StepHardware& hardware) const {
    ordered_json machine = section_of(section_of(here_, "cluster", ""), "machine", base_key);
    if (hardware.gpu)
      machine["gpu"] = *hardware.gpu;
    if (hardware.operator_time)
      machine["host"]["operator_time"] = *hardware.operator_time;
    return machine;
  }

  const ordered_json& here_;
  const ordered_json& stated_;
  StepHardware stated_hardware_;
};

// A problem of the scenario there, said of what the step states: its file comes first.
std::string placed(const std::string& problem, const StatedStep& step, const std::string& file) {
  const std::string of_file = file + ": ";
  if (!problem.starts_with(of_file))
    return fmt::format("with the conditions of {}: {}", step.pointer, problem);
  const std::string rest = problem.substr(of_file.size());
  const auto is_of = [&](std::string_view section, const char* key) {
    return step.conditions.contains(key) && rest.starts_with(fmt::format("{}/{}: ", section, key));
  };
  const auto said_of = [&](std::string_view section) {
    return of_file + step.pointer + rest.substr(section.size());
  };
  for (const char* key : conditions_of_model)
    if (is_of("/model", key))
      return said_of("/model");
  for (const char* key : conditions_of_training)
    if (is_of("/training", key))
      return said_of("/training");
  for (const char* key : conditions_of_compute)
    if (is_of("/compute", key))
      return said_of("/compute");
  return fmt::format("{}{}: under its conditions {}", of_file, step.pointer, rest);
}

LoadedScenario load_there(const ordered_json& document, const StatedStep& step, const LoadOptions& options) {
  try {
    return load_value(document, {.store = options.store,
                                 .file_name = options.file_name,
                                 .folder = options.folder,
                                 .fold = options.fold,
                                 .accepts_any_size = options.accepts_any_size,
                                 .writes_resolved = false});
  } catch (const ConfigError& error) {
    std::vector<std::string> problems;
    for (const std::string& problem : error.problems)
      problems.push_back(placed(problem, step, options.file_name));
    throw ConfigError(problems);
  }
}

// ---- what it was measured under ----

// Without how a GPU uses it: a name where that is all there is.
ordered_json model_alone(const LoadedScenario& scenario) {
  ordered_json model = section_of(scenario.given, "model", "name");
  for (const char* key : {"batch_per_gpu", "sequence_length", "precision", "summary"}) model.erase(key);
  return model.size() == 1 && model.contains("name") ? model["name"] : model;
}

ordered_json conditions_of(const LoadedScenario& scenario) {
  const ModelUse& use = scenario.model;
  ordered_json conditions{
      {"model", model_alone(scenario)},
      {"batch_per_gpu", use.batch_per_gpu},
      {"precision", name_of(use.precision, precision_spellings)},
      {"gpu", write_gpu(scenario.cluster.gpu)},
      {"operator_time", exact_text(operator_time(scenario.cluster.machine.host))},
      {"optimizer", name_of(scenario.training.optimizer, optimizer_spellings)},
      {"recompute", text_of(scenario.training.recompute)},
      {"kernels", name_of(scenario.compute.kernels, kernel_style_spellings)},
      {"optimizer_kernels", name_of(scenario.compute.optimizer_kernels, optimizer_kernels_spellings)},
      {"memory_format", name_of(scenario.compute.memory_format, memory_format_spellings)},
      {"modules", name_of(scenario.compute.modules, module_style_spellings)},
      {"cuda_graph_scope", name_of(scenario.compute.cuda_graph_scope, cuda_graph_scope_spellings)},
      {"attention_backend", name_of(scenario.compute.attention_backend, attention_backend_spellings)},
      {"fp8_recipe", name_of(scenario.compute.fp8_recipe, fp8_recipe_spellings)},
      {"rotary_embedding", name_of(scenario.compute.rotary_embedding, rotary_embedding_spellings)},
      {"autocast", scenario.compute.autocast},
      {"cross_entropy_loss_fusion", scenario.compute.cross_entropy_loss_fusion},
      {"gradient_accumulation_fusion", scenario.compute.gradient_accumulation_fusion},
      {"gradient_accumulation", scenario.training.gradient_accumulation},
      {"cuda_launch_blocking", scenario.training.host_waits.for_kernels}};
  if (use.model.transformer)
    conditions["vocabulary_multiple"] = scenario.training.layout.degrees.vocabulary_multiple;
  if (use.model.tokens_per_sample > 0)
    conditions["sequence_length"] = use.model.tokens_per_sample;
  return conditions;
}

// Those of `conditions` that are not also `others`.
ordered_json differing(const ordered_json& conditions, const ordered_json& others) {
  ordered_json found = ordered_json::object();
  for (const auto& [key, value] : conditions.items())
    if (!others.contains(key) || others[key] != value)
      found[key] = value;
  return found;
}

std::string name_in(const ordered_json& value) {
  if (value.is_string())
    return value.get<std::string>();
  const ordered_json* name = member_of(value, "name");
  return name != nullptr && name->is_string() ? name->get<std::string>() : "of another definition";
}

std::string described(const std::string& key, const ordered_json& value) {
  if (key == "batch_per_gpu")
    return fmt::format("batch {}", value.dump());
  if (key == "sequence_length")
    return fmt::format("sequence length {}", value.dump());
  if (key == "gradient_accumulation")
    return fmt::format("gradient accumulation {}", value.dump());
  if (key == "vocabulary_multiple")
    return fmt::format("words in multiples of {}", value.dump());
  return fmt::format("{} {}", key, value.is_boolean() ? value.dump() : name_in(value));
}

// "batch 256, precision fp32": what `conditions` has for the keys of `keys`.
std::string described(const ordered_json& conditions, const ordered_json& keys) {
  std::string text;
  for (const auto& [key, value] : keys.items())
    if (const ordered_json* found = member_of(conditions, key))
      text += (text.empty() ? "" : ", ") + described(key, *found);
  return text;
}

// ---- what it says ----

// One measured step, or the mean of several under the same conditions.
struct Measured {
  StepSample sample;
  std::string family;  // of its model
  std::int64_t micro_batches = 1;
  ordered_json conditions;  // that differ from here
  std::string pointer;
};

bool has_attention(const Scenario& scenario) {
  const auto& layers = scenario.model.model.layers;
  return std::any_of(layers.begin(), layers.end(),
                     [](const Layer& layer) { return layer.kind == LayerKind::attention; });
}

bool states_times(const Scenario& scenario) {
  const auto& stated = scenario.model.stated;
  return scenario.model.measured ||
         std::any_of(stated.begin(), stated.end(), [](const auto& times) { return times.has_value(); });
}

std::string model_name(const Scenario& scenario) {
  return scenario.model.name.empty() ? "a model without a name" : scenario.model.name;
}

std::string kind_of(const Scenario& scenario) {
  if (states_times(scenario))
    return "states its times";
  return has_attention(scenario) ? "is built on attention" : "has no attention";
}

[[noreturn]] void refuse(const LoadedScenario& here, const std::string& pointer, const std::string& problem) {
  throw ConfigError(in_file(here, pointer + ": " + problem));
}

void check_kind(const LoadedScenario& here, const Scenario& there, const std::string& pointer) {
  if (kind_of(there) == kind_of(here))
    return;
  refuse(
      here, pointer,
      fmt::format("found a step of {}, which {} and says nothing of {}, which {}; expected one measured with "
                  "a model of its kind, or none (--set compute.{}=null)",
                  model_name(there), kind_of(there), model_name(here), kind_of(here),
                  here.given["compute"].contains(one_step_key) ? one_step_key : several_steps_key));
}

// The lowest peak of this GPU with which a step that short is possible.
std::string possible_precision(const Scenario& scenario, double utilisation) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  const double own = static_cast<double>(matmul_peak(gpu, scenario.model.precision).count());
  std::string found;
  double lowest = 0;
  for (const auto& [precision, peak] : gpu.peak) {
    const auto rate = static_cast<double>(peak.count());
    if (utilisation * own <= rate && (found.empty() || rate < lowest)) {
      found = name_of(precision, precision_spellings);
      lowest = rate;
    }
  }
  return found.empty() ? "" : fmt::format(", or precision {}", found);
}

// A step as short as no GPU can make it; `what` says which time it is.
void check_utilisation(const LoadedScenario& here, const Scenario& scenario, const std::string& pointer,
                       const std::string& what, const StepSample& sample) {
  if (sample.work.at_peak <= sample.measured)
    return;
  const double utilisation = sample.work.at_peak.in_seconds() / sample.measured.in_seconds();
  const FlopRate peak = matmul_peak(scenario.cluster.gpu, scenario.model.precision);
  throw ImpossibleStep(in_file(
      here, fmt::format(
                "{}: {} {}, an MFU of {:.0f} %: at the {:.4g} TFLOP/s that GPU {} has in {} the FLOPs of {} "
                "with batch {} alone take {}; expected at least that{}",
                pointer, what, format_duration(sample.measured), 100 * utilisation,
                static_cast<double>(peak.count()) / 1e12, scenario.cluster.gpu.name,
                name_of(scenario.model.precision, precision_spellings), model_name(scenario),
                scenario.model.batch_per_gpu, format_duration(sample.work.at_peak),
                possible_precision(scenario, utilisation))));
}

Measured measured_there(const LoadedScenario& here, const StatedStep& step, const Documents& documents,
                        const LoadOptions& options) {
  ordered_json conditions = ordered_json::object();
  std::optional<LoadedScenario> elsewhere;
  if (const ordered_json document = documents.of(step); document != documents.own()) {
    elsewhere = load_there(document, step, options);
    conditions = differing(conditions_of(*elsewhere), conditions_of(here));
  }
  const LoadedScenario& there = elsewhere ? *elsewhere : here;
  Measured measured{.sample = {.measured = step.time, .work = step_work(there)},
                    .family = there.model.model.family,
                    .micro_batches = there.training.gradient_accumulation,
                    .conditions = std::move(conditions),
                    .pointer = step.pointer};
  check_kind(here, there, step.pointer);
  check_utilisation(here, there, step.pointer, "found", measured.sample);
  return measured;
}

[[noreturn]] void refuse_contradiction(const LoadedScenario& here, const Measured& one,
                                       const Measured& other) {
  refuse(here, other.pointer,
         fmt::format(
             "found {}, where {} has {} under the same conditions; expected times within {:.0f} % of each "
             "other, or the condition that was not the same",
             format_duration(other.sample.measured), one.pointer, format_duration(one.sample.measured),
             100 * most_spread));
}

// Steps under the same conditions become their mean.
std::vector<Measured> merge_alike(const LoadedScenario& here, const std::vector<Measured>& all) {
  std::vector<Measured> merged;
  std::vector<bool> is_merged(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_merged[i])
      continue;
    Duration sum;
    std::int64_t count = 0;
    for (std::size_t j = i; j < all.size(); ++j) {
      if (all[j].conditions != all[i].conditions)
        continue;
      const auto [shorter, longer] = std::minmax(all[i].sample.measured, all[j].sample.measured);
      if (longer.in_seconds() > shorter.in_seconds() * (1 + most_spread))
        refuse_contradiction(here, all[i], all[j]);
      is_merged[j] = true;
      sum += all[j].sample.measured;
      ++count;
    }
    merged.push_back(all[i]);
    merged.back().sample.measured = Duration::picoseconds(sum.picoseconds() / count);
  }
  return merged;
}

void check_residuals(const LoadedScenario& here, const std::vector<Measured>& steps,
                     const WorkFactors& factors) {
  for (const Measured& step : steps) {
    const double missed = residual(step.sample, factors);
    if (std::abs(missed) <= most_residual)
      continue;
    refuse(here, step.pointer,
           fmt::format(
               "found {}, which contradicts the other measured steps: with them it would be {} ({:+.0f} "
               "%); expected steps that some speed of matrix work, of memory and of launches explains "
               "within {:.0f} %",
               format_duration(step.sample.measured), format_duration(transferred(step.sample.work, factors)),
               100 * missed, 100 * most_residual));
  }
}

std::int64_t other_kernels(const Measured& step, const Scenario& here) {
  std::int64_t count = 0;
  for (const char* key : {"model", "precision", "gpu", "kernels", "memory_format"})
    count += step.conditions.contains(key) ? 1 : 0;
  return count + (step.family == here.model.model.family ? 0 : 1);
}

Ratio distance_to(const Measured& step, const LoadedScenario& here, const StepWork& work) {
  const Ratio doublings =
      doublings_between({step.sample.work.modelled, step.micro_batches},
                        {work.modelled, here.training.gradient_accumulation}, other_kernels(step, here));
  return std::max(doublings, Ratio::smallest());
}

struct Nearest {
  const Measured* step = nullptr;
  Ratio distance = {};
};

Nearest nearest_of(const std::vector<Measured>& steps, const LoadedScenario& here, const StepWork& work) {
  Nearest nearest;
  for (const Measured& step : steps) {
    const Ratio distance = distance_to(step, here, work);
    if (nearest.step == nullptr || distance < nearest.distance)
      nearest = {&step, distance};
  }
  return nearest;
}

std::string transfer_warning(const LoadedScenario& here, const Measured& nearest, bool is_one_of_many,
                             Duration time) {
  const ordered_json own = conditions_of(here);
  return fmt::format("{}compute.{} was measured at {}; transferred to {} by the model of computing: x{:.3g}",
                     is_one_of_many ? "the nearest of " : "",
                     is_one_of_many ? several_steps_key : one_step_key,
                     described(nearest.conditions, nearest.conditions), described(own, nearest.conditions),
                     time.in_seconds() / nearest.sample.measured.in_seconds());
}

}  // namespace

void transfer_measured_steps(LoadedScenario& scenario, const StatedSteps& stated,
                             std::vector<std::string>& warnings) {
  const ordered_json given = scenario.given;
  const Documents documents(given, stated);
  std::vector<Measured> all;
  for (const StatedStep& step : stated.steps) {
    all.push_back(measured_there(scenario, step, documents, stated.options));
    scenario.measured_steps.push_back({step.time, all.back().conditions});
  }
  const std::vector<Measured> steps = merge_alike(scenario, all);
  std::vector<StepSample> samples;
  for (const Measured& step : steps) samples.push_back(step.sample);
  ComputeSpec& compute = scenario.compute;
  compute.factors = fit_factors(samples);
  check_residuals(scenario, steps, compute.factors);
  const auto is_here = [](const Measured& step) { return step.conditions.empty(); };
  if (const auto here = std::find_if(steps.begin(), steps.end(), is_here); here != steps.end()) {
    compute.single_gpu_iteration = here->sample.measured;
  } else {
    const StepWork work = step_work(scenario);
    const Nearest nearest = nearest_of(steps, scenario, work);
    const Duration time = std::max(transferred(work, compute.factors), Duration::picoseconds(1));
    check_utilisation(scenario, scenario, nearest.step->pointer,
                      "measured under other conditions, it comes here to", {time, work});
    compute.single_gpu_iteration = time;
    compute.transfer = nearest.distance;
    warnings.push_back(transfer_warning(scenario, *nearest.step, steps.size() > 1, time));
  }
  write_measured_steps(scenario, scenario.given["compute"]);
}

void write_measured_steps(const LoadedScenario& scenario, ordered_json& compute) {
  ordered_json steps = ordered_json::array();
  for (const MeasuredStep& step : scenario.measured_steps) {
    ordered_json written{{"time", exact_text(step.time)}};
    written.update(step.conditions);
    steps.push_back(step.conditions.empty() ? written["time"] : written);
  }
  const ordered_json* given = member_of(scenario.given, "compute");
  if (steps.empty())
    return;
  if (given != nullptr && member_of(*given, several_steps_key) != nullptr)
    compute[std::string(several_steps_key)] = std::move(steps);
  else
    compute[std::string(one_step_key)] = steps.front();
}

}  // namespace lockstep
