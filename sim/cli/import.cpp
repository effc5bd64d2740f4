// lockstep import KIND FILE: another tool's file as a file of ours, checked by those who will read it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/base/json_reader.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/cli/outputs.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/import/import_file.h"
#include "sim/load/load.h"
#include "sim/load/read_model.h"
#include "sim/load/reading/store_shelf.h"
#include "sim/report/report_text.h"
#include "sim/study/answers/observed_collectives.h"
#include "sim/study/bench/logged_choices.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

struct ImportArguments {
  std::string kind;
  std::string file;
  std::string output;
  std::vector<std::string> changes;
  bool wants_explanation = false;
  bool wants_json = false;

  Overrides overrides() const {
    Overrides parsed;
    for (const std::string& change : changes) parsed.push_back(parse_change(change, "--set"));
    return parsed;
  }
};

std::string_view name_of(KeyFate fate) {
  constexpr std::array<std::string_view, 3> names{"used", "left aside", "refused"};
  return names[static_cast<std::size_t>(fate)];
}

ordered_json document_of(const Overrides& overrides) {
  JsonDocument document = JsonDocument::from_value(ordered_json::object(), "--set");
  apply_overrides(document, overrides);
  return document.value();
}

// Without those that the importer has used up.
Overrides unanswered(const Overrides& overrides, const std::vector<std::string>& answered) {
  Overrides left;
  for (const auto& change : overrides)
    if (std::find(answered.begin(), answered.end(), change.first.substr(0, change.first.find('.'))) ==
        answered.end())
      left.push_back(change);
  return left;
}

ordered_json with_changes(const ordered_json& made, ImportedThing thing, const Overrides& overrides,
                          const std::string& file) {
  JsonDocument document = JsonDocument::from_value(made, file);
  if (thing == ImportedThing::scenario)
    apply_overrides(document, overrides);
  else
    for (const auto& [path, value] : overrides) document.set(path, value);
  return document.value();
}

// What its readers made of it.
struct Checked {
  std::string summary;
  std::vector<std::string> warnings;
};

// As the other verbs will read it.
template <class Read>
Checked check_alone(const ordered_json& made, const std::string& file, const ProfileStore& store, Read read) {
  JsonDocument document = JsonDocument::from_value(made, file);
  LoadContext context{.store = store, .folder = std::filesystem::path(file).parent_path().string()};
  std::string summary = read(document.root(), Place{context, ""});
  context.add_problems(document.problems());
  if (!context.problems.empty())
    throw ConfigError(context.problems);
  return {std::move(summary), std::move(context.warnings)};
}

std::string summary_of_model(const JsonReader& json, const Place& place) {
  const Model model = read_model(json, place, false).model;
  return fmt::format("{}: {} parameters in {} tensors", model.name, parameter_count(model),
                     model.parameters.size());
}

std::string summary_of_machine(const JsonReader& json, const Place& place) {
  const MachineReading reading = read_machine(json, place);
  return fmt::format("{}: {} x {}", reading.machine.name, reading.machine.gpus, reading.gpu.name);
}

Checked check(const ordered_json& made, ImportedThing thing, const std::string& file,
              const ProfileStore& store, const CommandContext& context) {
  if (thing == ImportedThing::model)
    return check_alone(made, file, store, summary_of_model);
  if (thing == ImportedThing::machine)
    return check_alone(made, file, store, summary_of_machine);
  if (thing == ImportedThing::plan || thing == ImportedThing::log)
    return {};
  const LoadedScenario scenario =
      load_value(made, {.store = store,
                        .file_name = file,
                        .folder = std::filesystem::path(file).parent_path().string(),
                        .accepts_any_size = context.accepts_any_size});
  return {fmt::format("{}: {}", scenario.name, summary_of(scenario)), scenario.warnings};
}

ImportedThing thing_of(const NamedImporter& importer, const Imported& imported) {
  return imported.makes.value_or(importer.second.makes);
}

// A run that was traced, predicted as it is: do its collectives take as long?
std::string compared_with_prediction(const Imported& imported, const std::string& file,
                                     const ProfileStore& store, const CommandContext& context) {
  const LoadedScenario run =
      load_value(imported.document, {.store = store,
                                     .file_name = file,
                                     .folder = std::filesystem::path(file).parent_path().string(),
                                     .accepts_any_size = context.accepts_any_size});
  return describe_collectives(compare_collectives(run, imported.collectives));
}

std::string table_of(const std::vector<KeyUse>& keys) {
  std::size_t width = 3;
  for (const KeyUse& use : keys) width = std::max(width, use.key.size());
  std::string text = fmt::format("{:<{}}  {:<10}  {}\n", "key", width, "fate", "as what, or why");
  for (const KeyUse& use : keys)
    text += fmt::format("{:<{}}  {:<10}  {}\n", use.key, width, name_of(use.fate), use.said);
  return text;
}

ordered_json json_of(const std::vector<KeyUse>& keys) {
  ordered_json list = ordered_json::array();
  for (const KeyUse& use : keys)
    list.push_back({{"key", use.key}, {"fate", name_of(use.fate)}, {"said", use.said}});
  return list;
}

// What the importer cannot read is told beside what was expected.
Imported read_as(const NamedImporter& importer, const ImportRequest& request) try {
  return importer.second.import(request);
} catch (const ConfigError& error) {
  throw as_read(error, importer, request.file_name);
}

Imported import_with(const NamedImporter& importer, const ImportArguments& arguments,
                     const ProfileStore& store) {
  const Overrides overrides = arguments.overrides();
  std::ifstream opened;
  const bool is_piped = arguments.file == "-";
  const StoreShelf shelf(store);
  if (!is_piped)
    opened = open_import_file(arguments.file);
  const ImportRequest request{.file_name = is_piped ? "standard input" : arguments.file,
                              .file = is_piped ? std::cin : static_cast<std::istream&>(opened),
                              .stated = document_of(overrides),
                              .profiles = &shelf};
  Imported imported = read_as(importer, request);
  if (arguments.wants_explanation && !arguments.wants_json)
    print(table_of(imported.keys));
  require_complete(imported, request);
  add_source(imported, importer, request.file_name);
  imported.document =
      with_changes(imported.document, thing_of(importer, imported), unanswered(overrides, imported.answered),
                   request.file_name + " as imported");
  return imported;
}

// What Lockstep would have chosen where the log was made, if its user says on which machine that was.
void compare_log(const ImportArguments& arguments, const ProfileStore& store, Imported& imported) {
  const ordered_json stated = document_of(arguments.overrides());
  const ordered_json machine = stated.value("machine", ordered_json());
  if (machine.is_null())
    return;
  const ordered_json nodes = stated.value("nodes", ordered_json());
  const LoggedSetting setting{.machine = machine.is_string() ? machine.get<std::string>() : machine.dump(),
                              .nodes = nodes.is_number_integer() ? nodes.get<std::int64_t>() : 0};
  const ComparedChoices compared = compare_logged_choices(imported.document, setting, store);
  imported.warnings.insert(imported.warnings.end(), compared.warnings.begin(), compared.warnings.end());
  imported.report += to_text(compared);
  imported.document["compared"] = to_json(compared);
}

void print_answer(const ImportArguments& arguments, const NamedImporter& importer, const Imported& imported,
                  const std::string& summary) {
  if (arguments.wants_json) {
    ordered_json answer{
        {"schema", "lockstep.import/1"}, {"kind", importer.first},       {"file", arguments.file},
        {"output", arguments.output},    {"summary", summary},           {"keys", json_of(imported.keys)},
        {"warnings", imported.warnings}, {"document", imported.document}};
    if (!imported.report.empty())
      answer["report"] = imported.report;
    print_json(answer);
  } else if (!arguments.output.empty()) {
    print(fmt::format("{}{}{}wrote {} to {}\n", imported.report, summary, summary.empty() ? "" : "\n",
                      noun_of(thing_of(importer, imported)), arguments.output));
  } else if (importer.second.makes == ImportedThing::log) {
    print(imported.report);
  } else {
    print_diagnostic(imported.report);
    if (!arguments.wants_explanation)
      print_json(imported.document);
  }
}

int run_import(ImportArguments arguments, const CommandContext& context) {
  const NamedImporter& importer = importer_named(arguments.kind);
  if (importer.second.first_file != nullptr)
    arguments.file = importer.second.first_file(arguments.file);
  require_files_of_their_own({json_output(arguments.wants_json), {"--output", arguments.output}},
                             {arguments.file});
  if (!arguments.output.empty())
    static_cast<void>(AtomicFile(arguments.output));
  const ProfileStore store(context.data_directory);
  Imported imported = import_with(importer, arguments, store);
  if (importer.second.makes == ImportedThing::log)
    compare_log(arguments, store, imported);
  const std::string file = arguments.file + " as imported";
  const Checked checked = check(imported.document, thing_of(importer, imported), file, store, context);
  if (!imported.collectives.empty() && thing_of(importer, imported) == ImportedThing::scenario)
    imported.report += compared_with_prediction(imported, file, store, context);
  imported.warnings.insert(imported.warnings.end(), checked.warnings.begin(), checked.warnings.end());
  for (const std::string& warning : imported.warnings)
    print_diagnostic(fmt::format("lockstep: warning: {}\n", warning));
  if (!arguments.output.empty())
    write_json(arguments.output, imported.document);
  print_answer(arguments, importer, imported, checked.summary);
  return exit_done;
}

std::string describe_kinds() {
  std::string text = "what kind of file: ";
  for (const auto& [name, importer] : Registry<Importer>::all())
    text += fmt::format("{}{} ({})", text.ends_with(": ") ? "" : "; ", name, importer.description);
  return text;
}

}  // namespace

void add_import_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("import", "another tool's file into a model, a machine or a scenario");
  const auto arguments = std::make_shared<ImportArguments>();
  command->add_option("kind", arguments->kind, describe_kinds())
      ->type_name(fmt::format("{}", fmt::join(Registry<Importer>::names(), "|")))
      ->required();
  command->add_option("file", arguments->file, "the file; - is standard input")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", arguments->output, "what it becomes; left out: it is printed")
      ->type_name("OUT.json");
  command
      ->add_option(
          "--set", arguments->changes,
          "say what the file does not, or change what it says, e.g. gpu=h100_sxm_80gb; may be repeated")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--explain", arguments->wants_explanation,
                    "print every key of the file: used as what, or left aside or refused and why");
  command->add_flag("--json", arguments->wants_json, "print one JSON document (lockstep.import/1)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_import(*arguments, context); };
  });
}

}  // namespace lockstep
