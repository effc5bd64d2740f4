// lockstep show KIND NAME: a profile as its file has it, or what a strategy or a collective does.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/catalogue.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

struct ShowArguments {
  std::string kind;
  std::string name;
  bool wants_json = false;
};

std::string with_newline(std::string text) {
  return text.ends_with('\n') ? text : text + "\n";
}

[[noreturn]] void refuse_name(const std::string& kind, const std::string& name, const ProfileStore& store) {
  throw ConfigError(fmt::format("{}: none of the {} is called that; {}", name, kind,
                                describe_choices(name, entry_names(kind, store))));
}

void show_profile(const ShowArguments& arguments, const std::string& kind, const ProfileStore& store) {
  const auto profile = store.open(*profile_kind_of(kind), arguments.name);
  if (!profile) {
    refuse_name(kind, arguments.name, store);
  }
  if (arguments.wants_json) {
    print_json(*profile->value);
  } else {
    print(with_newline(read_json_file(profile->file)));
  }
}

void show_registered(const ShowArguments& arguments, const std::string& kind, const ProfileStore& store) {
  const std::vector<CatalogueEntry> entries = list_entries(kind, store);
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const CatalogueEntry& entry) { return entry.name == arguments.name; });
  if (found == entries.end()) {
    refuse_name(kind, arguments.name, store);
  }
  if (arguments.wants_json) {
    print_json(ordered_json{{"name", found->name}, {"description", found->source}});
  } else {
    print(fmt::format("{}: {}\n", found->name, found->source));
  }
}

int run_show(const ShowArguments& arguments, const CommandContext& context) {
  const std::string kind = parse_catalogue_kind(arguments.kind);
  const ProfileStore store(context.data_directory);
  if (profile_kind_of(kind)) {
    show_profile(arguments, kind, store);
  } else {
    show_registered(arguments, kind, store);
  }
  return 0;
}

}  // namespace

void add_show_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("show", "print one profile, with its sources");
  const auto arguments = std::make_shared<ShowArguments>();
  command->add_option("kind", arguments->kind, "of what kind; the singular will do")
      ->type_name(fmt::format("{}", fmt::join(catalogue_kinds(), "|")))
      ->required();
  command->add_option("name", arguments->name, "a name that `lockstep list KIND` prints")
      ->type_name("NAME")
      ->required();
  command->add_flag("--json", arguments->wants_json, "print it without comments");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_show(*arguments, context); };
  });
}

}  // namespace lockstep
