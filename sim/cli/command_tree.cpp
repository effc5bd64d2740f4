#include "sim/cli/command_tree.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/cli/catalogue.h"

namespace lockstep {
namespace {

std::vector<std::string> split_at_bars(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text)
    if (letter == '|')
      parts.emplace_back();
    else
      parts.back() += letter;
  return parts;
}

// Names in capitals stand for something, all others are themselves.
bool are_choices(const std::string& placeholder) {
  return placeholder.find('|') != placeholder.npos &&
         std::none_of(placeholder.begin(), placeholder.end(),
                      [](char letter) { return (letter >= 'A' && letter <= 'Z') || letter == '.'; });
}

bool is_file(const std::string& placeholder) {
  constexpr std::array<std::string_view, 7> held{"FILE", "SCENARIO", "SCENARIO|RESULT", "REQUEST",
                                                 "LOG",  "SUITE",    "PROFILE"};
  return placeholder.find('.') != placeholder.npos ||
         std::find(held.begin(), held.end(), placeholder) != held.end();
}

// "machines" of "--machine".
std::string shipped_kind(const std::string& name) {
  const std::string plural = name.substr(std::min(name.size(), name.find_first_not_of('-'))) + "s";
  const std::vector<std::string>& kinds = catalogue_kinds();
  return std::find(kinds.begin(), kinds.end(), plural) == kinds.end() ? "" : plural;
}

void describe_value(CommandOption& option) {
  option.shipped = option.names.front() == "name" ? "*" : shipped_kind(option.names.front());
  if (are_choices(option.placeholder)) {
    option.value = ValueKind::choice;
    option.choices = split_at_bars(option.placeholder);
  } else if (!option.shipped.empty()) {
    option.value = ValueKind::shipped;
  } else if (option.placeholder == "DIR") {
    option.value = ValueKind::folder;
  } else {
    option.value = is_file(option.placeholder) ? ValueKind::file : ValueKind::anything;
  }
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  if (names.empty())
    names.push_back(option.get_name(true));
  return names;
}

CommandOption read_option(const CLI::Option& option) {
  CommandOption read{.names = names_of(option),
                     .description = option.get_description(),
                     .may_repeat = option.get_items_expected_max() > 1,
                     .is_required = option.get_required()};
  if (option.get_items_expected_max() == 0)
    return read;
  const std::string type = option.get_type_name();
  read.placeholder = type.substr(0, type.find(':'));  // what checks add to it stands behind a colon
  describe_value(read);
  return read;
}

CommandVerb read_verb(const CLI::App& command) {
  CommandVerb verb{
      .name = command.get_name(), .description = command.get_description(), .footer = command.get_footer()};
  for (const CLI::Option* option : command.get_options())
    (option->nonpositional() ? verb.options : verb.positionals).push_back(read_option(*option));
  return verb;
}

}  // namespace

CommandTree read_command_tree(const CLI::App& app) {
  CommandTree tree{.program = read_verb(app), .verbs = {}};
  tree.program.name.clear();
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    tree.verbs.push_back(read_verb(*command));
  return tree;
}

}  // namespace lockstep
