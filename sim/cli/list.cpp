// lockstep list [KIND]: what is shipped, one line each with its source.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "sim/cli/catalogue.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

struct ListArguments {
  std::string kind;
  bool wants_json = false;
};

ordered_json to_json(const std::string& kind, const std::vector<CatalogueEntry>& entries) {
  ordered_json items = ordered_json::array();
  for (const CatalogueEntry& entry : entries) {
    ordered_json item{{"name", entry.name}};
    if (!entry.facts.empty()) {
      item["facts"] = entry.facts;
    }
    if (!entry.status.empty()) {
      item["calibrated"] = entry.status == "calibrated";
    }
    item["source"] = entry.source;
    items.push_back(item);
  }
  return {{"schema", "lockstep.list/1"}, {"kind", kind}, {"entries", items}};
}

// Columns that no entry fills are left out.
std::string to_text(const std::vector<CatalogueEntry>& entries) {
  bool has_facts = false;
  bool has_status = false;
  for (const CatalogueEntry& entry : entries) {
    has_facts = has_facts || !entry.facts.empty();
    has_status = has_status || !entry.status.empty();
  }
  TextTable table({Align::left, Align::left, Align::left, Align::left});
  for (const CatalogueEntry& entry : entries) {
    std::vector<std::string> cells{entry.name};
    if (has_status) {
      cells.push_back(entry.status);
    }
    if (has_facts) {
      cells.push_back(entry.facts);
    }
    cells.push_back(entry.source);
    table.add_row(cells);
  }
  return table.text(0);
}

int list_kind(const ListArguments& arguments, const ProfileStore& store) {
  const std::string kind = parse_catalogue_kind(arguments.kind);
  const std::vector<CatalogueEntry> entries = list_entries(kind, store);
  if (arguments.wants_json) {
    print_json(to_json(kind, entries));
  } else {
    print(to_text(entries));
  }
  return 0;
}

// Every kind with its count, and with its names where they are few.
int list_kinds(bool wants_json, const ProfileStore& store) {
  ordered_json json{{"schema", "lockstep.list/1"}, {"kinds", ordered_json::object()}};
  TextTable table({Align::left, Align::right, Align::left});
  for (const std::string& kind : catalogue_kinds()) {
    const std::vector<std::string> names = entry_names(kind, store);
    json["kinds"][kind] = names.size();
    const std::string example =
        names.size() > 3 ? fmt::format("{}, ...", fmt::join(names.begin(), names.begin() + 3, ", "))
                         : fmt::format("{}", fmt::join(names, ", "));
    table.add_row({kind, std::to_string(names.size()), example});
  }
  if (wants_json) {
    print_json(json);
  } else {
    print(table.text(0) + "\nlockstep list KIND prints one line each, lockstep show KIND NAME all of one.\n");
  }
  return 0;
}

int run_list(const ListArguments& arguments, const CommandContext& context) {
  const ProfileStore store(context.data_directory);
  return arguments.kind.empty() ? list_kinds(arguments.wants_json, store) : list_kind(arguments, store);
}

}  // namespace

void add_list_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("list", "what is shipped, one line each with its source");
  const auto arguments = std::make_shared<ListArguments>();
  command->add_option("kind", arguments->kind, "what of it (a line for each kind)")
      ->type_name(fmt::format("{}", fmt::join(catalogue_kinds(), "|")));
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_list(*arguments, context); };
  });
}

}  // namespace lockstep
