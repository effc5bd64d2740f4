#include "sim/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/json_record.h"
#include "sim/base/json_text.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/load/compatibility.h"
#include "sim/load/error_model_json.h"
#include "sim/load/hardware/find_calibration.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/import/import_file.h"
#include "sim/load/limits.h"
#include "sim/load/measured_steps.h"
#include "sim/load/read_comparison.h"
#include "sim/load/read_disturbance.h"
#include "sim/load/read_faults.h"
#include "sim/load/read_input.h"
#include "sim/load/read_measured_steps.h"
#include "sim/load/read_model.h"
#include "sim/load/read_program.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/load_context.h"
#include "sim/load/resolved.h"
#include "sim/load/training/host_waits.h"
#include "sim/load/training/read_training.h"
#include "sim/load/unused_keys.h"
#include "sim/run/stage_balance.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t most_nodes = 1'000'000;
constexpr std::int64_t most_ranks = 1'000'000;

// Sections that may be left out are there and empty from here on.
void add_empty_sections(JsonDocument& document, JsonRecord* record) {
  for (const char* section : {"training", "communication", "compute", "simulation"}) {
    if (record != nullptr)
      record->note_key("", section, false);
    const ordered_json& value = document.value();
    if (value.is_object() && (!value.contains(section) || value[section].is_null())) {
      document.set(section, "{}");
    }
  }
}

void read_node_counts(const JsonReader& json, const Place& place, ClusterSpec& cluster) {
  cluster.nodes = integer_or(json, "nodes", 1, {1, most_nodes});
  const auto gpus = json.optional("gpus_per_node");
  cluster.gpus_per_node = gpus ? gpus->integer(1, most_gpus_per_machine) : cluster.machine.gpus;
  if (!gpus) {
    (place / "gpus_per_node").note("default (all of the machine's)");
  }
  if (cluster.machine.name.empty()) {
    return;  // nothing is known about the machine: one mistake is one line
  }
  if (gpus && cluster.gpus_per_node > cluster.machine.gpus) {
    gpus->problem(fmt::format("found {}, but machine {} has {} GPUs", cluster.gpus_per_node,
                              cluster.machine.name, cluster.machine.gpus));
  }
  if (cluster.nodes > 1 && cluster.machine.nics.empty()) {
    json.required("nodes").problem(
        fmt::format("found {}, but machine {} has no NICs and cannot span nodes; valid: 1", cluster.nodes,
                    cluster.machine.name));
  }
  if (cluster.ranks() > most_ranks) {
    json.required("nodes").problem(fmt::format("found {} nodes of {} GPUs = {} ranks, expected at most {}",
                                               cluster.nodes, cluster.gpus_per_node, cluster.ranks(),
                                               most_ranks));
  }
}

// Without a kind of its own it changes the machine's.
FabricSpec read_stated_fabric(const JsonReader& json, const Place& place, const std::string& of_machine) {
  const bool is_whole = !json.is_object() || json.value().contains("kind") || json.value().contains(base_key);
  if (is_whole || of_machine.empty()) {
    return read_named(json, place, ProfileKind::fabric, read_fabric);
  }
  ordered_json based = json.value();
  based[std::string(base_key)] = of_machine;
  JsonDocument document = JsonDocument::from_value(based, json.file_name(), json.pointer());
  FabricSpec fabric = read_named(document.root(), place, ProfileKind::fabric, read_fabric);
  place.context.add_problems(document.problems());
  return fabric;
}

struct MachineFabric {
  std::optional<FabricSpec> fabric = {};
  std::string name = {};
};

void read_fabric_of(const JsonReader& json, const Place& place, MachineFabric of_machine,
                    ClusterSpec& cluster) {
  const Place fabric_place = place / "fabric";
  if (const auto fabric = json.optional("fabric")) {
    std::erase_if(place.context.origins,
                  [&](const auto& entry) { return entry.first.starts_with(fabric_place.pointer); });
    cluster.fabric = read_stated_fabric(*fabric, fabric_place, of_machine.name);
  } else if (of_machine.fabric) {
    cluster.fabric = *std::move(of_machine.fabric);
  } else {
    fabric_place.note("default (one switch that adds nothing)");
  }
}

ClusterSpec read_cluster(const JsonReader& json, const Place& place,
                         std::optional<Calibration>& calibration) {
  ClusterSpec cluster;
  const JsonReader machine = json.required("machine");
  if (!machine.is_missing()) {
    MachineReading reading = read_named(machine, place / "machine", ProfileKind::machine, read_machine);
    cluster.machine = std::move(reading.machine);
    cluster.gpu = std::move(reading.gpu);
    calibration = std::move(reading.calibration);
    read_fabric_of(json, place, {std::move(reading.fabric), reading.fabric_name}, cluster);
  } else {
    read_fabric_of(json, place, {}, cluster);
  }
  read_node_counts(json, place, cluster);
  read_disturbances(json, cluster);
  if (const auto faults = json.optional("faults")) {
    cluster.faults = read_faults(*faults, place / "faults", cluster.nodes);
  }
  json.finish();
  return cluster;
}

std::optional<bool> stated_flag(const JsonReader& json, std::string_view section, std::string_view key) {
  const auto reader = json.optional(section);
  const auto flag = reader && reader->is_object() ? reader->optional(key) : std::nullopt;
  return flag && flag->is_bool() ? std::optional(flag->boolean()) : std::nullopt;
}

// Whether gradients are reduced beside backward, which decides how some frameworks group them, before the sections that
// say so are read. Who gathers weights beside forward does both.
std::optional<bool> stated_overlap(const JsonReader& json) {
  const std::optional<bool> all = stated_flag(json, "communication", "overlap");
  const std::optional<bool> reduces = stated_flag(json, "training", "overlap_comm");
  if (all == false || reduces)
    return all.value_or(true) && reduces.value_or(true);
  return stated_flag(json, "training", "overlap_param_gather") == true ? true : all;
}

CommunicationDefaults communication_defaults(const JsonReader& json, const Scenario& scenario) {
  CommunicationDefaults defaults{.library = scenario.cluster.machine.library};
  const FrameworkPreset* preset = find_preset(scenario.training.framework);
  if (preset != nullptr && !preset->reduces_late.empty() && !stated_overlap(json).value_or(false)) {
    defaults.overlap = false;
    defaults.why_overlap = preset->reduces_late;
  }
  if (scenario.training.host_waits.for_kernels) {
    defaults.overlap = false;
    defaults.why_overlap = waits_for_messages_too;
    defaults.has_no_overlap = true;
  }
  return defaults;
}

// Whether a change of this should change how long a model computes, but not what it states itself.
bool leaves_stated_times(std::string_view path) {
  constexpr std::array times{"name",    "layers",   "measured",  "forward_time",  "backward_time",
                             "forward", "backward", "optimizer", "gradient_ready"};
  const std::string_view last = path.substr(path.rfind('.') + 1);
  const bool is_of_gpu =
      path == "cluster.machine" || path == "cluster.machine.gpu" || path.starts_with("cluster.machine.gpu.");
  const bool is_of_kernels = path == "compute.kernels";
  const bool is_of_model =
      path.starts_with("model.") && std::find(times.begin(), times.end(), last) == times.end();
  return is_of_gpu || is_of_kernels || is_of_model;
}

bool has_block(const ModelUse& use, std::optional<LayerKind> kind) {
  return std::any_of(use.model.layers.begin(), use.model.layers.end(),
                     [&](const Layer& layer) { return layer.block >= 0 && (!kind || layer.kind == *kind); });
}

bool has_matrix(const ModelUse& use) {
  return std::any_of(use.model.parameters.begin(), use.model.parameters.end(),
                     [](const ParameterTensor& tensor) { return tensor.shape.size() > 1; });
}

// As the model's reader has it; a mistake there is not told again.
std::optional<std::int64_t> stated_batch(const JsonReader& json, const ModelUse& use) {
  const JsonReader model = json.required("model");
  const auto batch = model.is_object() ? model.optional("batch_per_gpu") : std::nullopt;
  return batch && batch->value() == use.batch_per_gpu ? std::optional(use.batch_per_gpu) : std::nullopt;
}

// `training` says how many samples a copy of the model has at a time, or leads there.
bool states_micro_batch(const JsonReader& json) {
  const JsonReader training = json.required("training");
  const auto states = [&](const char* key) {
    return training.value().contains(key) && !training.value()[key].is_null();
  };
  return training.is_object() && (states("micro_batch") || states("global_batch"));
}

TrainingFacts training_facts(const JsonReader& json, const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const bool is_known = !cluster.machine.name.empty() && cluster.ranks() <= most_ranks;
  const ModelUse& use = scenario.model;
  const bool is_model_known = !use.model.layers.empty() || use.measured;
  return {.nodes = cluster.nodes,
          .gpus_per_node = cluster.gpus_per_node,
          .stated_batch = stated_batch(json, use),
          .model = is_model_known && !use.model.layers.empty() ? &use.model : nullptr,
          .precision = use.precision,
          .sockets = cluster.machine.host.sockets,
          .has_nics = !cluster.machine.nics.empty(),
          .has_blocks = !is_model_known || has_block(use, std::nullopt),
          .has_attention = !is_model_known || has_block(use, LayerKind::attention),
          .has_matrices = !is_model_known || has_matrix(use),
          .is_cluster_known = is_known,
          .overlap = stated_overlap(json)};
}

ComputeFacts compute_facts(const Scenario& scenario) {
  const auto& layers = scenario.model.model.layers;
  const auto is_convolution = [](const Layer& layer) { return layer.is_convolution(); };
  return {.training = scenario.training,
          .precision = scenario.model.precision,
          .has_convolutions = std::any_of(layers.begin(), layers.end(), is_convolution),
          .compute_capability = scenario.cluster.gpu.compute_capability};
}

void note_derived(const Place& root) {
  for (const char* key : {"data_parallel", "global_batch"}) {
    (root / "training" / key).note("derived from cluster, batch_per_gpu and gradient_accumulation");
  }
}

// A note is about what was left out: what the user wrote is "given".
void drop_notes_about_given(const ordered_json& given, LoadContext& context) {
  std::erase_if(context.origins, [&](const auto& entry) {
    const ordered_json::json_pointer pointer(entry.first);
    const bool is_stated = given.contains(pointer) && !given[pointer].is_null();
    return is_stated && given[pointer].is_primitive() && !entry.second.starts_with("profile");
  });
}

// A calibration belongs to the machine as its file states it.
void warn_of_borrowing(const ChangedProfile* machine, const Calibration& calibration, LoadContext& context) {
  constexpr std::array fitted_keys{"gpu", "gpus", "gpu_links", "host", "nics"};
  const auto is_changed = [&](const char* key) { return machine->changes_key(key); };
  if (machine != nullptr && std::any_of(fitted_keys.begin(), fitted_keys.end(), is_changed)) {
    context.warnings.push_back(fmt::format(
        "calibration {} is borrowed: it holds for {} without these changes, and nothing was measured "
        "with them",
        calibration.name, machine->name));
  }
}

// Calibrations are named for their machines, or for something else, of which nothing is known here.
void warn_of_another_machine(const ChangedProfile& machine, const Calibration& calibration,
                             LoadContext& context) {
  if (calibration.name != machine.name && context.store.has(ProfileKind::machine, calibration.name))
    context.warnings.push_back(
        fmt::format("calibration {0} was fitted to the machine {0}: nothing says that it holds for {1}, on "
                    "which it was put",
                    calibration.name, machine.name));
}

// What a GPU's profile states for those whose kernels nobody timed.
void warn_of_unused(const GpuSpec& gpu, LoadContext& context) {
  struct Unused {
    std::string_view key;
    std::string_view why;
  };
  constexpr std::array keys{
      Unused{"kernel_launch",
             "how long its kernels take to start is among the constants of its architecture"},
      Unused{"l2", "a step finds nothing in its cache that the step before it left there"}};
  const ChangedProfile* changes = context.changes_at("/cluster/machine/gpu");
  for (const Unused& unused : keys)
    if (changes != nullptr && gpu.kernels && changes->changes_key(unused.key))
      context.warnings.push_back(
          fmt::format("cluster.machine.gpu.{} changes nothing: {}", unused.key, unused.why));
}

// Publications' first code stored the scores, and today's trainers fuse them: half of the step, or twice, is at stake.
void warn_of_unsaid_attention(const Scenario& scenario, LoadContext& context) {
  const std::optional<TransformerSizes>& sizes = scenario.model.model.transformer;
  if (!sizes || sizes->fused_attention || sizes->says_attention || scenario.model.measured ||
      scenario.compute.single_gpu_iteration)
    return;
  context.warnings.emplace_back(
      "model.attention is not said: unfused is predicted, its style's first code, which stores every score; "
      "trainers since 2023 run it fused: model.attention says which");
}

// A graph of all passes has the sizes that it was captured with.
void warn_of_uncounted_tokens(const Scenario& scenario, LoadContext& context) {
  const std::optional<TransformerSizes>& sizes = scenario.model.model.transformer;
  const bool takes_what_comes = sizes && sizes->mixture.experts > 0 && sizes->mixture.capacity_percent == 0;
  if (takes_what_comes && scenario.compute.cuda_graph_scope == CudaGraphScope::full_iteration)
    context.warnings.emplace_back(
        "compute.cuda_graph_scope full_iteration: experts take as many tokens as come, which no host may "
        "then ask for; "
        "predicted as if their buffers held the most, without what padding costs (model.capacity_factor "
        "pads)");
}

// What the machine's profile names holds for the machine's own library; what the user names, for any.
Calibration choose_calibration(const Place& root, std::optional<Calibration> stated,
                               const Scenario& scenario) {
  const MachineSpec& machine = scenario.cluster.machine;
  const LibraryKind library = scenario.communication.library;
  const ChangedProfile* changes = root.context.changes_at("/cluster/machine");
  const bool is_asked_for = changes != nullptr && changes->changes_key("calibration");
  if (stated && (machine.library == library || is_asked_for)) {
    if (is_asked_for)
      warn_of_another_machine(*changes, *stated, root.context);
    else
      warn_of_borrowing(changes, *stated, root.context);
    return *std::move(stated);
  }
  Calibration found = find_calibration(
      {.machine = machine, .compute_capability = scenario.cluster.gpu.compute_capability, .library = library},
      root / "cluster" / "machine" / "calibration");
  warn_of_borrowing(changes, found, root.context);
  return found;
}

// What stands beside a scenario until all of it is read.
struct ReadLater {
  std::vector<StatedStep> measured;
  std::optional<StageBalance> balance;
};

bool has_copies_in_stages(const Layout& layout) {
  return layout.pipeline > 1 && pipeline_schedule_named(layout.schedule).copies > 1;
}

// What follows from a model and how it is trained: all of it, or `plan` in its place.
void read_work(const JsonReader& json, const Place& root, Scenario& scenario, ReadLater& later) {
  if (const JsonReader model = json.required("model"); !model.is_missing()) {
    scenario.model = read_model(model, root / "model", !states_micro_batch(json));
  }
  if (const auto input = json.optional("input")) {
    scenario.input = read_input(
        *input, root / "input",
        {.machine = scenario.cluster.machine, .sequence_length = scenario.model.model.tokens_per_sample});
  }
  note_derived(root);
  TrainingReading reading =
      read_training(json.required("training"), root / "training", training_facts(json, scenario));
  scenario.training = std::move(reading.training);
  scenario.model.batch_per_gpu = reading.micro_batch;
  later.balance = reading.balance;
  if (scenario.input && has_copies_in_stages(scenario.training.layout))
    json.required("input").problem(fmt::format(
        "found beside {}, whose micro-batches enter at both ends of the pipeline: loaders of the last stage "
        "are not modelled; expected no input, or another training.pipeline_schedule",
        scenario.training.layout.schedule));
}

void read_plan(const JsonReader& json, const JsonReader& plan, const Place& root, Scenario& scenario) {
  read_program(plan, root / "plan", scenario);
  scenario.training.strategy = one_gpu_strategy();
  for (const char* key : {"model", "training", "compute", "input", "compare"}) {
    const auto found = json.optional(key);
    if (found && !(found->is_object() && found->value().empty())) {
      found->problem("found this beside plan, which says itself what every rank does; expected one of them");
    }
  }
}

void read_sections(const JsonReader& json, const Place& root, Scenario& scenario, ReadLater& later) {
  scenario.name = text_or(json, "name", "scenario");
  text_or(json, "description", "");
  text_or(json, "source", "");
  std::optional<Calibration> calibration;
  if (const JsonReader cluster = json.required("cluster"); !cluster.is_missing()) {
    scenario.cluster = read_cluster(cluster, root / "cluster", calibration);
  }
  const auto plan = json.optional("plan");
  if (plan) {
    read_plan(json, *plan, root, scenario);
  } else {
    read_work(json, root, scenario, later);
  }
  scenario.communication = read_communication(json.required("communication"), root / "communication",
                                              communication_defaults(json, scenario));
  if (!plan) {
    later.measured = read_measured_steps(json.required("compute"), root / "compute");
    scenario.compute = read_compute(json.required("compute"), root / "compute", compute_facts(scenario));
    scenario.training.layout.degrees.is_compiled = scenario.compute.kernels == KernelStyle::compiled;
    if (const auto compare = json.optional("compare")) {
      scenario.comparison = read_comparison(*compare, root / "compare");
    }
  }
  scenario.simulation = read_simulation(json.required("simulation"));
  json.finish();
  warn_of_unused(scenario.cluster.gpu, root.context);
  scenario.cluster.calibration = choose_calibration(root, std::move(calibration), scenario);
  // The release that a machine was measured with, unless it did not know the chip: nobody would choose that again.
  const std::int64_t measured = scenario.cluster.calibration.library_version;
  if (scenario.communication.library_version == 0 &&
      knows_chip(measured, scenario.cluster.gpu.compute_capability)) {
    scenario.communication.library_version = measured;
  }
}

// A model that states its times does not answer to what they depend on.
void warn_of_unchanged_times(const Overrides& overrides, const Scenario& scenario, LoadContext& context) {
  const auto is_stated = [](const auto& times) { return times.has_value(); };
  const auto& stated = scenario.model.stated;
  if (!scenario.model.measured && std::none_of(stated.begin(), stated.end(), is_stated)) {
    return;
  }
  for (const auto& [path, value] : overrides) {
    if (leaves_stated_times(path)) {
      context.warnings.push_back(fmt::format(
          "{} is changed, but the times that model {} states stay as they are", path, scenario.model.name));
    }
  }
}

void throw_if_any(std::vector<std::string> problems, const std::vector<std::string>& others) {
  problems.insert(problems.end(), others.begin(), others.end());
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
}

void throw_if_any_of(const Scenario& scenario, std::vector<std::string> problems) {
  for (std::string& problem : problems) problem = in_file(scenario, problem);
  throw_if_any(std::move(problems), {});
}

void check_possible(const Scenario& scenario) {
  std::vector<std::string> problems = find_conflicts(scenario);
  for (std::string& problem : find_size_problems(scenario)) problems.push_back(std::move(problem));
  throw_if_any_of(scenario, std::move(problems));
}

bool is_at_or_in(std::string_view path, std::string_view place) {
  return path == place || (path.starts_with(place) && path[place.size()] == '.');
}

bool states_measured_step(const Overrides& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const auto& entry) {
    return entry.first == "compute" || is_at_or_in(entry.first, "compute.single_gpu_iteration") ||
           is_at_or_in(entry.first, "compute.anchors");
  });
}

// A measured step belongs to the scenario as it stood when the step was stated: the file, or with all that was
// stated beside it.
ordered_json document_of_measured(const ordered_json& file, const LoadOptions& options,
                                  const LoadedScenario& scenario) {
  if (states_measured_step(options.variation))
    return scenario.given;
  if (!states_measured_step(options.overrides))
    return file;
  JsonDocument document = JsonDocument::from_value(file, options.file_name);
  apply_overrides(document, options.overrides);
  return document.value();
}

// Prices are known only now.
void balance_stages(Scenario& scenario, StageBalance by) {
  scenario.training.layout.stage_blocks = balanced_blocks(scenario, by);
}

// The anchor's own scenario must load as well, or solving it would fail later.
void load_anchor(LoadedScenario& scenario, const LoadOptions& options, std::vector<std::string>& warnings) {
  if (!scenario.compute.anchor) {
    return;
  }
  LoadOptions anchored{.store = options.store,
                       .file_name = options.file_name,
                       .folder = options.folder,
                       .fold = options.fold,
                       .fidelity = options.fidelity,
                       .accepts_any_size = options.accepts_any_size,
                       .writes_resolved = false};
  anchored.variation = scenario.compute.anchor->set;
  anchored.variation.emplace_back("compute.anchor", "null");
  try {
    LoadedScenario there = load_value(scenario.given, anchored);
    add_new_warnings("with the changes of compute.anchor.set: ", there, warnings);
    scenario.compute.anchor->there = {std::move(there)};
  } catch (const ConfigError& error) {
    std::vector<std::string> problems;
    for (const std::string& problem : error.problems) {
      problems.push_back("with the changes of /compute/anchor/set: " + problem);
    }
    throw ConfigError(problems);
  }
}

}  // namespace

void add_new_warnings(const std::string& where, const LoadedScenario& variant,
                      std::vector<std::string>& warnings) {
  const auto known = warnings;
  for (const std::string& warning : variant.warnings)
    if (std::find(known.begin(), known.end(), warning) == known.end())
      warnings.push_back(where + warning);
}

namespace {

// Its model and training are a scenario's, and it is asked of another verb.
void refuse_plan_request(const ordered_json& value, const std::string& file_name) {
  if (value.is_object() && value.contains("candidates") && value.contains("goal") &&
      !value.contains("cluster"))
    throw ConfigError(
        fmt::format("{}: found a request for a plan, expected a scenario; lockstep plan {} answers it",
                    file_name, file_name));
}

// config.json, a trace, a topology: they say a part of a scenario.
void refuse_other_tools_file(const ordered_json& value, const std::string& file_name) {
  if (value.is_object() && value.contains("cluster"))
    return;
  if (const NamedImporter* importer = importer_of_file(file_name))
    throw ConfigError(fmt::format("{}: found {}, expected a scenario; lockstep import {} {} reads it",
                                  file_name, importer->second.description, importer->first, file_name));
}

}  // namespace

LoadedScenario load_value(const ordered_json& value, const LoadOptions& options) {
  JsonDocument document = JsonDocument::from_value(value, options.file_name);
  Overrides changes = options.overrides;
  changes.insert(changes.end(), options.variation.begin(), options.variation.end());
  apply_overrides(document, changes);
  LoadedScenario scenario;
  scenario.given = document.value();
  refuse_plan_request(scenario.given, options.file_name);
  refuse_other_tools_file(scenario.given, options.file_name);
  add_empty_sections(document, options.record);
  if (options.record != nullptr)
    document.record_into(*options.record);
  LoadContext context{.store = options.store, .folder = options.folder};
  ReadLater later;
  if (const JsonReader json = document.root(); json.is_object()) {
    read_sections(json, {context, ""}, scenario, later);
  } else {
    json.expected("a scenario: an object with cluster, and model or plan");
  }
  throw_if_any(document.problems(), context.problems);
  scenario.simulation.fold = options.fold;
  scenario.simulation.accepts_any_size = options.accepts_any_size;
  scenario.simulation.fidelity = options.fidelity.value_or(scenario.simulation.fidelity);
  scenario.file_name = options.file_name;
  scenario.errors = find_error_model(options.store);
  check_possible(scenario);
  warn_of_unchanged_times(changes, scenario, context);
  warn_of_unsaid_attention(scenario, context);
  warn_of_uncounted_tokens(scenario, context);
  if (!later.measured.empty())
    transfer_measured_steps(scenario,
                            {later.measured, document_of_measured(value, options, scenario), options},
                            context.warnings);
  if (later.balance)
    balance_stages(scenario, *later.balance);
  throw_if_any_of(scenario, find_time_problems(scenario));
  load_anchor(scenario, options, context.warnings);
  load_compared(scenario, options, context.warnings);
  context.add_warnings(find_unused_keys(scenario, scenario.given, compute_facts(scenario)));
  scenario.warnings = std::move(context.warnings);
  scenario.changes = std::move(context.changes);
  if (!options.writes_resolved)
    return scenario;
  scenario.resolved = resolved_scenario(scenario);
  drop_notes_about_given(scenario.given, context);
  scenario.provenance = provenance_of(scenario, context.origins);
  return scenario;
}

std::string file_name_of(const LoadRequest& request) {
  return request.path.empty() ? "scenario" : request.path;
}

LoadRequest with_text(LoadRequest request) {
  if (!request.text)
    request.text = read_json_file(file_name_of(request));
  return request;
}

ordered_json read_document(const LoadRequest& request) {
  const std::string name = file_name_of(request);
  try {
    return request.text ? JsonDocument::from_text(*request.text, name).value()
                        : JsonDocument::from_file(name).value();
  } catch (const ConfigError&) {
    refuse_other_tools_file({}, name);  // which need not be JSON
    throw;
  }
}

LoadOptions options_of(const LoadRequest& request, const ProfileStore& store) {
  return {.store = store,
          .file_name = file_name_of(request),
          .folder = std::filesystem::path(request.path).parent_path().string(),
          .overrides = request.overrides,
          .fold = request.fold,
          .fidelity = request.fidelity,
          .accepts_any_size = request.accepts_any_size};
}

std::vector<std::string> files_read(const LoadRequest& request, const ProfileStore& store) {
  std::vector<std::string> files;
  for (const ReadFile& read : store.files_read()) files.push_back(read.file);
  if (!request.path.empty())
    files.push_back(request.path);
  return files;
}

LoadedScenario load(const LoadRequest& request) {
  const ProfileStore store(request.data_directory);
  LoadedScenario scenario = load_value(read_document(request), options_of(request, store));
  scenario.files = files_read(request, store);
  return scenario;
}

}  // namespace lockstep
