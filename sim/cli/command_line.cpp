#include "sim/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"

namespace lockstep {
namespace {

// "-1" is a number.
bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

std::string without_value(const std::string& word) {
  return word.substr(0, word.find('='));
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

void add_flags_of(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      flags.push_back("-" + name);
    }
  }
}

const CLI::App* chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? nullptr : chosen.front();
}

std::vector<std::string> valid_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  if (const CLI::App* command = chosen_command(app)) {
    add_flags_of(*command, flags);
  }
  add_flags_of(app, flags);
  std::sort(flags.begin(), flags.end());
  flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
  return flags;
}

// "-b8" is -b and its value.
bool is_known(const std::string& word, const std::vector<std::string>& flags) {
  const std::string flag = word.starts_with("--") ? without_value(word) : word.substr(0, 2);
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

std::vector<std::string> unknown_flags(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> flags = valid_flags(app);
  std::vector<std::string> problems;
  for (const std::string& word : words) {
    if (word == "--") {
      break;
    }
    if (is_flag(word) && !is_known(word, flags)) {
      const std::string flag = without_value(word);
      problems.push_back(fmt::format("{}: no such option; {}", flag, describe_choices(flag, flags)));
    }
  }
  return problems;
}

std::string see_help(const CLI::App& app) {
  const CLI::App* command = chosen_command(app);
  return fmt::format("see lockstep {}--help", command == nullptr ? "" : command->get_name() + " ");
}

// "Could not convert: --nodes = two" in our words; empty for another error. What is a number all the same is
// not a whole one.
std::string describe_conversion(const std::string& message) {
  constexpr std::string_view opening = "Could not convert: ";
  constexpr std::string_view between = " = ";
  const std::size_t place = message.find(between);
  if (!message.starts_with(opening) || place == message.npos) {
    return "";
  }
  const std::string value = message.substr(place + between.size());
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = error == std::errc{} && end == value.data() + value.size();
  return fmt::format("{}: found \"{}\", expected {}", message.substr(opening.size(), place - opening.size()),
                     value, is_number ? "an integer" : "a number");
}

}  // namespace

std::optional<std::string> verb_among(const std::vector<std::string>& words) {
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (!is_flag(words[index]))
      return words[index];
    index += words[index] == "--data" ? 1 : 0;
  }
  return std::nullopt;
}

void check_verb(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> verbs = verbs_of(app);
  const auto verb = verb_among(words);
  if (verb && std::find(verbs.begin(), verbs.end(), *verb) == verbs.end())
    throw ConfigError(fmt::format("{}: no such command; {}", *verb, describe_choices(*verb, verbs)));
}

// A shell variable that nobody has set is an empty word.
void check_files_are_named(const CLI::App& app) {
  std::vector<std::string> problems;
  const CLI::App* command = chosen_command(app);
  for (const CLI::Option* option : command->get_options()) {
    const std::vector<std::string>& words = option->results();
    const bool is_file =
        option->get_type_name().starts_with("FILE") || option->get_type_name().ends_with(".json");
    if (is_file && std::find(words.begin(), words.end(), "") != words.end())
      problems.push_back(option->get_name() + ": found an empty name, expected a file's");
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

void throw_config_error(const CLI::App& app, const std::vector<std::string>& words,
                        const CLI::ParseError& error) {
  std::vector<std::string> problems = unknown_flags(app, words);
  if (problems.empty()) {
    const std::string conversion = describe_conversion(error.what());
    problems.push_back(fmt::format("{}; {}", conversion.empty() ? error.what() : conversion, see_help(app)));
  }
  throw ConfigError(problems);
}

}  // namespace lockstep
