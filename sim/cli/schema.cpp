// lockstep schema KIND: JSON Schema of the files that are read, found out by asking their readers, and of results,
// found out from what their writer writes. --reference: the schema as tables that people read.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/base/json_examples.h"
#include "sim/base/json_exploration.h"
#include "sim/base/json_reader.h"
#include "sim/base/json_schema.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/commands.h"
#include "sim/cli/key_reference.h"
#include "sim/cli/output.h"
#include "sim/load/hardware/read_calibration.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/key_meanings.h"
#include "sim/load/load.h"
#include "sim/plan/model_family.h"
#include "sim/study/answers/result_examples.h"
#include "sim/study/capacity/plan_request.h"
#include "sim/study/validation/stated_case.h"
#include "sim/study/validation/validation.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

using Ask = void (*)(const ordered_json& document, JsonRecord& record, const ProfileStore& store);

// Of a dotted path.
using MeaningOf = std::string_view (*)(std::string_view path);

// A part that another kind's reader reads.
struct BorrowedPart {
  std::string place;  // a pointer within the schema
  std::string kind;
  std::string place_there;
};

struct SchemaKind {
  std::string name;
  Ask ask = nullptr;                     // of a kind that is read
  std::vector<std::string> seeds = {};   // documents from which all that may stand in one can be reached
  std::vector<std::string> any_of = {};  // of these outermost keys one is required
  std::vector<BorrowedPart> borrowed = {};
  std::vector<ordered_json> (*examples)() = nullptr;  // of a kind that is written
  MeaningOf meaning = nullptr;                        // null: it has no table of meanings, nor a reference
};

// "model": NAME is short for {"name": NAME}, and opened before anybody reads it.
void ask_scenario(const ordered_json& document, JsonRecord& record, const ProfileStore& store) {
  record.note_kind("/model", "string");
  load_value(document, {.store = store, .writes_resolved = false, .record = &record});
}

template <class T, T (*read)(const JsonReader&, const Place&)>
void ask_profile(const ordered_json& document, JsonRecord& record, const ProfileStore& store) {
  JsonDocument asked = JsonDocument::from_value(document, "profile");
  asked.record_into(record);
  LoadContext context{.store = store, .folder = ""};
  read(asked.root(), {context, ""});
}

void ask_model(const ordered_json& document, JsonRecord& record, const ProfileStore&) {
  JsonDocument asked = JsonDocument::from_value(document, "model");
  asked.record_into(record);
  JsonReader reader = asked.root();
  build_model(reader, {});
}

void ask_measurements(const ordered_json& document, JsonRecord& record, const ProfileStore&) {
  JsonDocument asked = JsonDocument::from_value(document, "measurements");
  asked.record_into(record);
  read_measurements(asked);
}

void ask_request(const ordered_json& document, JsonRecord& record, const ProfileStore&) {
  JsonDocument asked = JsonDocument::from_value(document, "request");
  asked.record_into(record);
  read_plan_request(asked);
}

// What a request has of a scenario is read as a scenario once it is one.
std::vector<BorrowedPart> parts_of_request() {
  std::vector<BorrowedPart> parts;
  for (const char* section : {"model", "training", "communication", "compute", "input", "simulation"}) {
    const std::string place = fmt::format("/properties/{}", section);
    parts.push_back({place, "scenario", place});
  }
  const std::string cluster = "/properties/cluster/properties/";
  parts.push_back({"/properties/faults", "scenario", cluster + "faults"});
  parts.push_back({"/properties/candidates/items/properties/machine", "scenario", cluster + "machine"});
  return parts;
}

// What is asked only beside other keys, or otherwise by each kind of model.
constexpr std::string_view mixture_seed =
    R"({"family": "transformer", "layers": 1, "hidden": 64, "heads": 1, "vocabulary": 64, "sequence_length": 64,
        "style": "llama", "experts": 2, "experts_per_token": 1, "shared_experts": 1, "shared_expert_gate": true})";
constexpr std::string_view small_image_seed = R"({"family": "resnet", "image_size": 32})";

std::vector<std::string> model_seeds() {
  return {"{}", std::string(mixture_seed), std::string(small_image_seed)};
}

std::string scenario_of(std::string_view model, std::string_view training = "{}") {
  return fmt::format(
      R"({{"cluster": {{"machine": "dgx_a100_80gb", "nodes": 2}}, "model": {}, "training": {}}})", model,
      training);
}

// Of the first strategy that has servers, where pieces have a size.
std::string partitioned_servers() {
  const std::vector<std::string> names = strategies_in_order();
  const auto has_servers = [](const std::string& name) { return strategy_named(name).servers != nullptr; };
  return fmt::format(
      R"({{"strategy": "{}", "servers": {{"placement": "partitioned", "partition_bytes": "4 MB"}}}})",
      *std::find_if(names.begin(), names.end(), has_servers));
}

// Of every kind of model one, since a model's own keys decide who reads it; one cut along every dimension; and options
// that are asked for only beside others.
const std::vector<std::string>& scenario_seeds() {
  constexpr std::string_view layers = R"({"name": "llama2_7b", "layers": 2})";
  constexpr std::string_view convolutions = R"({"name": "alexnet", "batch_per_gpu": 32})";
  static const std::vector<std::string> seeds{
      scenario_of(convolutions),
      scenario_of(layers, R"({"tensor_parallel": 2, "pipeline_parallel": 2, "context_parallel": 2,
                              "batch_p2p_sync": true, "stage_layers": [1, 1]})"),
      scenario_of(layers, R"({"pipeline_parallel": 2, "stage_layers": "even"})"),
      scenario_of(convolutions, R"({"compression": "powersgd_2", "powersgd_start_iteration": 1})"),
      scenario_of(convolutions, partitioned_servers()),
      scenario_of(mixture_seed),
      scenario_of(small_image_seed),
      scenario_of(R"({"layers": [{}]})"),
      scenario_of(R"({"measured": {"parameters": [{}]}})"),
      scenario_of(R"({"family": "transformer"})"),
      R"({"cluster": {"machine": "dgx_a100_80gb"}, "plan": {}})"};
  return seeds;
}

const std::vector<SchemaKind>& schema_kinds() {
  static const std::vector<SchemaKind> kinds{
      {.name = "scenario",
       .ask = ask_scenario,
       .seeds = scenario_seeds(),
       .any_of = {"model", "plan"},
       .meaning = meaning_of},
      {.name = "result", .borrowed = {{"/properties/scenario", "scenario", ""}}, .examples = result_examples},
      {.name = "request",
       .ask = ask_request,
       .seeds = {R"({"goal": {}, "candidates": [{}]})"},
       .borrowed = parts_of_request()},
      {.name = "machine", .ask = ask_profile<MachineReading, read_machine>, .seeds = {"{}"}},
      {.name = "gpu", .ask = ask_profile<GpuSpec, read_gpu>, .seeds = {"{}"}},
      {.name = "model", .ask = ask_model, .seeds = model_seeds()},
      {.name = "calibration", .ask = ask_profile<Calibration, read_calibration>, .seeds = {"{}"}},
      {.name = "measurements",
       .ask = ask_measurements,
       .seeds = {R"({"schema": "lockstep.measurements/1", "cases": [{"measured": {}}]})"}}};
  return kinds;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const SchemaKind& kind : schema_kinds()) names.push_back(kind.name);
  return names;
}

const SchemaKind& schema_named(const std::string& name) {
  for (const SchemaKind& kind : schema_kinds())
    if (kind.name == name)
      return kind;
  throw ConfigError(fmt::format("{}: no such schema; {}", name, describe_choices(name, kind_names())));
}

JsonRecord explored(const SchemaKind& kind, const ProfileStore& store) {
  std::vector<ordered_json> seeds;
  for (const std::string& seed : kind.seeds) seeds.push_back(ordered_json::parse(seed));
  return explore([&](const ordered_json& document, JsonRecord& into) { kind.ask(document, into, store); },
                 seeds);
}

// Every result says of which version it is.
JsonRecord exemplified(const SchemaKind& kind) {
  const std::vector<ordered_json> examples = kind.examples();
  JsonRecord record = record_of_examples(examples);
  record.note_choices("/schema", {examples.front()["schema"].get<std::string>()});
  return record;
}

// To every key below `path` what it means.
void describe(const std::string& path, MeaningOf meaning, ordered_json& schema) {
  if (is_profile(path))
    return;
  if (schema.contains("items"))
    describe(path + "[]", meaning, schema["items"]);
  if (!schema.contains("properties"))
    return;
  for (const auto& [key, below] : schema["properties"].items()) {
    const std::string there = path.empty() ? key : path + "." + key;
    if (const std::string_view text = meaning(there); !text.empty())
      below["description"] = text;
    describe(there, meaning, below);
  }
}

ordered_json schema_of(const SchemaKind& kind, const ProfileStore& store) {
  const std::string title = "Lockstep: " + kind.name;
  ordered_json schema = kind.examples != nullptr ? json_schema_of(exemplified(kind), title, SchemaOf::written)
                                                 : json_schema_of(explored(kind, store), title);
  for (const std::string& key : kind.any_of) schema["anyOf"].push_back({{"required", {key}}});
  std::map<std::string, ordered_json> lenders;
  for (const BorrowedPart& part : kind.borrowed) {
    const auto [lender, is_new] = lenders.try_emplace(part.kind);
    if (is_new)
      lender->second = schema_of(schema_named(part.kind), store);
    ordered_json& borrowed = schema[ordered_json::json_pointer(part.place)];
    borrowed = lender->second[ordered_json::json_pointer(part.place_there)];
    for (const char* of_whole : {"$schema", "title"}) borrowed.erase(of_whole);
  }
  if (kind.meaning != nullptr)
    describe("", kind.meaning, schema);
  return schema;
}

void check_has_reference(const SchemaKind& kind) {
  if (kind.meaning != nullptr)
    return;
  std::vector<std::string> names;
  for (const SchemaKind& other : schema_kinds())
    if (other.meaning != nullptr)
      names.push_back(other.name);
  throw ConfigError(
      fmt::format("--reference: there is none of {}; valid with it: {}", kind.name, fmt::join(names, ", ")));
}

struct SchemaArguments {
  std::string kind = {};
  bool wants_reference = false;
};

int run_schema(const SchemaArguments& arguments, const CommandContext& context) {
  const SchemaKind& kind = schema_named(arguments.kind);
  if (arguments.wants_reference)
    check_has_reference(kind);
  const ProfileStore store(context.data_directory);
  const ordered_json schema = schema_of(kind, store);
  if (arguments.wants_reference)
    print(key_reference(schema, store));
  else
    print_json(schema);
  return exit_done;
}

}  // namespace

void add_schema_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "schema", "JSON Schema of a file that is read, or of a result, for editors and scripts");
  const auto arguments = std::make_shared<SchemaArguments>();
  command->add_option("format", arguments->kind, "of which kind of document")
      ->type_name(fmt::format("{}", fmt::join(kind_names(), "|")))
      ->required();
  command->add_flag("--reference", arguments->wants_reference,
                    "of a scenario: every key with its values, default and meaning, in Markdown");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_schema(*arguments, context); };
  });
}

}  // namespace lockstep
