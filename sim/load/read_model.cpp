#include "sim/load/read_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/plan/model_family.h"
#include "sim/plan/precision.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t most_elements = 1'000'000'000'000;
constexpr std::int64_t most_parameters = 100'000'000'000'000;  // keeps every sum of bytes within 64 bits
constexpr std::int64_t most_samples_of_a_batch = 1'000'000;
constexpr std::int64_t longest_sequence = 100'000'000;

// The model itself, apart from how much of it a GPU runs at once.
struct Definition {
  Model model;
  std::optional<MeasuredModel> measured;
  std::vector<std::optional<StatedTimes>> stated;
};

// What the reading of layers and parameters needs to know about their use.
struct Use {
  Precision precision;
  std::optional<std::int64_t> sequence_length;
};

std::uint32_t add_parameter(Model& model, std::string name, std::int64_t elements) {
  model.parameters.push_back({.name = std::move(name), .shape = {elements}, .elements = elements});
  return static_cast<std::uint32_t>(model.parameters.size() - 1);
}

void read_layer_parameters(const JsonReader& json, Model& model, Layer& layer) {
  const auto parameters = json.optional("parameters");
  if (!parameters) {
    return;
  }
  for (const JsonReader& element : parameters->elements()) {
    const std::int64_t elements = element.integer(1, most_elements);
    layer.parameters.push_back(
        add_parameter(model, fmt::format("{}.{}", layer.name, layer.parameters.size()), elements));
    layer.weight_elements += elements;
  }
  layer.gradient_elements = layer.weight_elements;
  std::reverse(layer.parameters.begin(), layer.parameters.end());
}

std::int64_t elements_in(Bytes bytes, Precision precision) {
  const std::int64_t size = activation_bytes(precision);
  return bytes.count() / size + (bytes.count() % size == 0 ? 0 : 1);
}

std::int64_t backward_default(std::int64_t forward, const JsonReader& json) {
  if (forward > most_parameters * 10'000) {
    json.problem("too much work for one layer and sample: expected at most 1 EFLOP or 1 EB");
    return 0;
  }
  return 2 * forward;
}

// Backward does the work of forward twice, once for the inputs and once for the weights, unless it is stated.
void read_work(const JsonReader& json, Precision precision, Layer& layer) {
  const auto flops = json.optional("forward_flops");
  const auto bytes = json.optional("forward_bytes");
  layer.forward_flops = flops ? flops->flops().count() : 0;
  layer.forward_elements = bytes ? elements_in(bytes->bytes(), precision) : 0;
  const auto backward_flops = json.optional("backward_flops");
  const auto backward_bytes = json.optional("backward_bytes");
  const std::int64_t backward =
      backward_flops ? backward_flops->flops().count() : backward_default(layer.forward_flops, json);
  layer.backward_weight_flops = layer.parameters.empty() ? 0 : backward / 2;
  layer.backward_input_flops = backward - layer.backward_weight_flops;
  layer.backward_elements = backward_bytes ? elements_in(backward_bytes->bytes(), precision)
                                           : backward_default(layer.forward_elements, json);
  layer.kind = layer.forward_flops > 0 ? LayerKind::matmul : LayerKind::vector;
}

std::optional<StatedTimes> read_stated_times(const JsonReader& json) {
  const auto forward = json.optional("forward_time");
  const auto backward = json.optional("backward_time");
  if (!forward && !backward) {
    return std::nullopt;
  }
  return StatedTimes{.forward = json.required("forward_time").duration(),
                     .backward = json.required("backward_time").duration()};
}

bool states_work(const JsonReader& json) {
  constexpr std::array keys{"forward_flops", "forward_bytes", "backward_flops", "backward_bytes"};
  return std::any_of(keys.begin(), keys.end(),
                     [&](const char* key) { return json.optional(key).has_value(); });
}

void read_layer(const JsonReader& json, const Use& use, Definition& definition) {
  Layer layer;
  layer.name = text_or(json, "name", fmt::format("layer{}", definition.model.layers.size()));
  read_layer_parameters(json, definition.model, layer);
  if (const auto saved = json.optional("saved_bytes")) {
    layer.saved_bytes = saved->bytes().count();
  }
  const auto times = read_stated_times(json);
  const bool has_work = states_work(json);
  if (has_work) {
    read_work(json, use.precision, layer);
  }
  if (json.is_object() && times.has_value() == has_work) {
    json.problem("expected either forward_time and backward_time, or forward_flops and forward_bytes");
  }
  json.finish();
  definition.stated.push_back(times);
  definition.model.layers.push_back(std::move(layer));
}

Definition read_layers(const JsonReader& json, const Use& use) {
  Definition definition;
  for (const JsonReader& element : json.elements()) {
    read_layer(element, use, definition);
  }
  if (definition.model.layers.empty()) {
    json.expected("at least one layer");
  }
  const auto is_stated = [](const auto& times) { return times.has_value(); };
  if (std::none_of(definition.stated.begin(), definition.stated.end(), is_stated)) {
    definition.stated.clear();
  }
  return definition;
}

std::int64_t read_element_bytes(const JsonReader& json) {
  constexpr auto sizes =
      std::to_array<Spelling<std::int64_t>>({{"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"fp64", 8}});
  return spelled_or(json, "dtype", std::int64_t{4}, sizes);
}

MeasuredParameter read_measured_parameter(const JsonReader& json, Duration backward, std::size_t index) {
  MeasuredParameter parameter;
  parameter.name = text_or(json, "name", fmt::format("parameter{}", index));
  parameter.elements = json.required("elements").integer(1, most_elements);
  parameter.element_bytes = read_element_bytes(json);
  const JsonReader ready = json.required("gradient_ready");
  parameter.gradient_ready = ready.is_missing() ? Duration::zero() : ready.duration();
  if (parameter.gradient_ready > backward) {
    ready.expected("a time within backward");
  }
  json.finish();
  return parameter;
}

Definition read_measured(const JsonReader& json) {
  MeasuredModel measured;
  measured.forward = json.required("forward").duration();
  measured.backward = json.required("backward").duration();
  measured.optimizer = duration_or(json, "optimizer", Duration::zero());
  const JsonReader parameters = json.required("parameters");
  Definition definition;
  for (const JsonReader& element :
       parameters.is_missing() ? std::vector<JsonReader>{} : parameters.elements()) {
    measured.parameters.push_back(
        read_measured_parameter(element, measured.backward, measured.parameters.size()));
    add_parameter(definition.model, measured.parameters.back().name, measured.parameters.back().elements);
  }
  if (measured.parameters.empty()) {
    parameters.expected("at least one parameter");
  }
  json.finish();
  definition.measured = std::move(measured);
  return definition;
}

bool is_family(const JsonReader& json) {
  return json.optional("family").has_value();
}

// An object that says what the model is: in the scenario itself, or the whole of a model file.
Definition read_definition(const JsonReader& json, const Use& use) {
  if (is_family(json)) {
    JsonReader root = json;
    Definition definition;
    definition.model = build_model(root, {.sequence_length = use.sequence_length});
    return definition;
  }
  const auto layers = json.optional("layers");
  const auto measured = json.optional("measured");
  if (layers.has_value() == measured.has_value()) {
    json.problem("expected exactly one of name, family, layers, measured");
    return {};
  }
  Definition definition = layers ? read_layers(*layers, use) : read_measured(*measured);
  definition.model.name = text_or(json, "name", layers ? "layers" : "measured");
  definition.model.source = text_or(json, "source", "");
  definition.model.family = definition.model.name;
  definition.model.tokens_per_sample = use.sequence_length.value_or(0);
  json.finish();
  return definition;
}

// A model by name is a file of its own; `stated` is what stands beside the name.
Definition read_named_definition(const JsonReader& name, const Place& place, const Use& use,
                                 const ordered_json& stated) {
  if (!name.is_string()) {
    name.expected("the name of a model or a path");
    return {};
  }
  std::optional<JsonDocument> document = open_profile(name, place, ProfileKind::model, stated);
  if (!document) {
    return {};
  }
  Definition definition = read_definition(document->root(), use);
  place.context.add_problems(document->problems());
  return definition;
}

constexpr std::array use_keys{"name", "batch_per_gpu", "precision", "sequence_length", "summary"};

// What an object with a name says besides how the model is used.
ordered_json changes_of_model(const JsonReader& json) {
  ordered_json changes = json.is_object() ? json.value() : ordered_json::object();
  for (const char* key : use_keys) {
    changes.erase(key);
  }
  return changes;
}

// The model by that name with these changes. What is said of its use is as well known here as its own keys.
Definition read_changed_definition(const JsonReader& json, const Place& place, const Use& use,
                                   const ordered_json& changes) {
  const JsonReader name = json.required("name");
  if (!name.is_string()) {
    return read_named_definition(name, place, use, json.value());
  }
  std::optional<JsonDocument> profile =
      open_profile(name, place / "summary", ProfileKind::model, json.value());
  if (!profile) {
    return {};
  }
  std::optional<JsonDocument> document = change_profile(
      json,
      {.kind = ProfileKind::model, .name = name.text(), .profile = profile->value(), .changes = changes},
      place);
  if (!document) {
    return {};
  }
  const JsonReader root = document->root();
  for (const char* key : use_keys) {
    root.optional(key);
  }
  Definition definition = read_definition(root, use);
  place.context.add_problems(document->problems());
  return definition;
}

bool has_definition(const JsonReader& json) {
  const bool is_stated =
      is_family(json) || json.optional("layers").has_value() || json.optional("measured").has_value();
  return is_stated && defines_model(json.value());
}

std::int64_t read_batch(const JsonReader& json) {
  const auto batch = json.optional("batch_per_gpu");
  return batch ? batch->integer(1, most_samples_of_a_batch) : 1;
}

bool states_all_times(const Definition& definition) {
  const auto is_stated = [](const auto& times) { return times.has_value(); };
  return definition.measured || (!definition.stated.empty() &&
                                 std::all_of(definition.stated.begin(), definition.stated.end(), is_stated));
}

std::int64_t parameters_of(const Model& model) {
  std::int64_t count = 0;
  for (const ParameterTensor& parameter : model.parameters) {
    count = std::min(count + parameter.elements, most_parameters + 1);
  }
  return count;
}

// What can only be said once the model is known.
void check_use(const JsonReader& json, const Definition& definition, const Use& use, bool needs_batch) {
  const bool is_read = !definition.model.parameters.empty();
  if (needs_batch && is_read && !states_all_times(definition) && !json.optional("batch_per_gpu")) {
    json.problem("found no \"batch_per_gpu\", which is required");
  }
  if (is_read && use.sequence_length && definition.model.tokens_per_sample == 0) {
    json.required("sequence_length").problem("this model reads no sequences: take this key out");
  }
  if (parameters_of(definition.model) > most_parameters) {
    json.problem("too many parameters: expected at most 10^14 in all");
  }
}

Use read_use(const JsonReader& json) {
  Use use{.precision = spelled_or(json, "precision", Precision::fp32, precision_spellings),
          .sequence_length = std::nullopt};
  if (const auto length = json.optional("sequence_length")) {
    use.sequence_length = length->integer(1, longest_sequence);
  }
  return use;
}

}  // namespace

bool defines_model(const ordered_json& model) {
  const auto stated = [&](const char* key) { return model.contains(key) && !model[key].is_null(); };
  if (!stated("name") || stated("family")) {
    return stated("family") || stated("layers") || stated("measured");
  }
  return (stated("layers") && model["layers"].is_array()) ||
         (stated("measured") && model["measured"].is_object() && model["measured"].contains("parameters"));
}

ModelUse read_model(const JsonReader& json, const Place& place, bool needs_batch) {
  ModelUse use;
  const Use reading = read_use(json);
  use.precision = reading.precision;
  use.batch_per_gpu = read_batch(json);
  json.optional("summary");  // what a resolved scenario says for people
  Definition definition;
  if (has_definition(json)) {
    definition = read_definition(json, reading);
  } else if (const ordered_json changes = changes_of_model(json);
             json.value().contains("name") && !changes.empty()) {
    definition = read_changed_definition(json, place, reading, changes);
  } else {
    const JsonReader name = json.required("name");
    if (!name.is_missing()) {
      definition = read_named_definition(name, place / "summary", reading, json.value());
    }
    json.finish();
  }
  check_use(json, definition, reading, needs_batch);
  (place / "sequence_length").note("default (the model's)");
  use.name = definition.model.name;
  use.model = std::move(definition.model);
  use.measured = std::move(definition.measured);
  use.stated = std::move(definition.stated);
  return use;
}

}  // namespace lockstep
