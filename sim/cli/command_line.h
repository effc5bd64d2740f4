#pragma once

// Command-line mistakes as ConfigErrors that name the nearest verb or flag.
//
// Problem:   CLI11 says "arguments were not expected"; it knows the valid names but suggests none.
// Idea:      look the words that begin with a dash, and the verb, up among the names CLI11 was given.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// The words of the command line, without the program's name: the first that is no option.
std::optional<std::string> verb_among(const std::vector<std::string>& words);

// Throws ConfigError for a verb nobody knows.
void check_verb(const CLI::App& app, const std::vector<std::string>& words);

// Of what has been parsed: an option that takes a file has one. Throws ConfigError.
void check_files_are_named(const CLI::App& app);

// What CLI11 refused, said with the nearest valid names. `app` has parsed as far as it could.
[[noreturn]] void throw_config_error(const CLI::App& app, const std::vector<std::string>& words,
                                     const CLI::ParseError& error);

}  // namespace lockstep
