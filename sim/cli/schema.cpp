// lockstep schema KIND: JSON Schema of the files that are read, found out by asking their readers.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/base/json_exploration.h"
#include "sim/base/json_reader.h"
#include "sim/base/json_schema.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/load/hardware/read_calibration.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/load.h"
#include "sim/plan/model_family.h"
#include "sim/study/validation/stated_case.h"
#include "sim/study/validation/validation.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// What all readings have in common.
struct Library {
  const ProfileStore& store;
  Lenders& lenders;
};

using Ask = void (*)(const ordered_json& document, JsonRecord& record, const Library& library);

struct SchemaKind {
  std::string name;
  Ask ask;
  std::vector<std::string> seeds;        // documents from which all that may stand in one can be reached
  std::vector<std::string> any_of = {};  // of these outermost keys one is required
};

// "model": NAME is short for {"name": NAME}, and opened before anybody reads it.
void ask_scenario(const ordered_json& document, JsonRecord& record, const Library& library) {
  record.note_kind("/model", "string");
  load_value(
      document,
      {.store = library.store, .lenders = &library.lenders, .writes_resolved = false, .record = &record});
}

template <class T, T (*read)(const JsonReader&, const Place&)>
void ask_profile(const ordered_json& document, JsonRecord& record, const Library& library) {
  JsonDocument asked = JsonDocument::from_value(document, "profile");
  asked.record_into(record);
  LoadContext context{.store = library.store, .folder = "", .lenders = &library.lenders};
  read(asked.root(), {context, ""});
}

void ask_model(const ordered_json& document, JsonRecord& record, const Library&) {
  JsonDocument asked = JsonDocument::from_value(document, "model");
  asked.record_into(record);
  JsonReader reader = asked.root();
  build_model(reader, {});
}

void ask_measurements(const ordered_json& document, JsonRecord& record, const Library&) {
  JsonDocument asked = JsonDocument::from_value(document, "measurements");
  asked.record_into(record);
  read_measurements(asked);
}

// Of every kind of model one, since a model's own keys decide who reads it; and one cut along every dimension.
const std::vector<std::string>& scenario_seeds() {
  static const std::vector<std::string> seeds{
      R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 2}, "model": {"name": "resnet50", "batch_per_gpu": 32}})",
      R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 2}, "model": {"name": "llama2_7b"},
          "training": {"tensor_parallel": 2, "pipeline_parallel": 2, "context_parallel": 2}})",
      R"({"cluster": {"machine": "dgx_a100_80gb"}, "model": {"layers": [{}]}})",
      R"({"cluster": {"machine": "dgx_a100_80gb"}, "model": {"measured": {"parameters": [{}]}}})",
      R"({"cluster": {"machine": "dgx_a100_80gb"}, "model": {"family": "transformer"}})",
      R"({"cluster": {"machine": "dgx_a100_80gb"}, "plan": {}})"};
  return seeds;
}

const std::vector<SchemaKind>& schema_kinds() {
  static const std::vector<SchemaKind> kinds{
      {"scenario", ask_scenario, scenario_seeds(), {"model", "plan"}},
      {"machine", ask_profile<MachineReading, read_machine>, {"{}"}},
      {"gpu", ask_profile<GpuSpec, read_gpu>, {"{}"}},
      {"model", ask_model, {"{}"}},
      {"calibration", ask_profile<Calibration, read_calibration>, {"{}"}},
      {"measurements",
       ask_measurements,
       {R"({"schema": "lockstep.measurements/1", "cases": [{"measured": {}}]})"}}};
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

int run_schema(const std::string& name, const CommandContext& context) {
  const SchemaKind& kind = schema_named(name);
  const ProfileStore store(context.data_directory);
  Lenders lenders;
  const Library library{store, lenders};
  std::vector<ordered_json> seeds;
  for (const std::string& seed : kind.seeds) seeds.push_back(ordered_json::parse(seed));
  const JsonRecord record = explore(
      [&](const ordered_json& document, JsonRecord& into) { kind.ask(document, into, library); }, seeds);
  ordered_json schema = json_schema_of(record, "Lockstep: " + name);
  for (const std::string& key : kind.any_of) schema["anyOf"].push_back({{"required", {key}}});
  print_json(schema);
  return exit_done;
}

}  // namespace

void add_schema_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("schema", "JSON Schema of a file that is read, for editors and scripts");
  const auto kind = std::make_shared<std::string>();
  command->add_option("format", *kind, "of which kind of file")
      ->type_name(fmt::format("{}", fmt::join(kind_names(), "|")))
      ->required();
  command->callback(
      [kind, &context] { context.run = [kind, &context] { return run_schema(*kind, context); }; });
}

}  // namespace lockstep
