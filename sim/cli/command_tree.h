#pragma once

// The command line as data: verbs, their options, and what may stand behind each.
//
// Problem:   completions and manual pages that are written by hand forget what was added yesterday.
// Idea:      CLI11 knows every verb and option; what a value may be stands in its placeholder. "flow|step" are
//            choices; an option with the name of something shipped (--machine) takes one of `lockstep list machines`;
//            DIR is a folder; a placeholder with a dot, or the name of what a file holds, is a file.
// Invariant: in the order in which the verbs declare them.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lockstep {

enum class ValueKind { nothing, anything, choice, shipped, file, folder };

struct CommandOption {
  std::vector<std::string> names = {};  // "--output", "-o"; of a positional its name alone
  std::string placeholder = {};         // "FILE.csv"
  std::string description = {};
  ValueKind value = ValueKind::nothing;
  std::vector<std::string> choices = {};
  std::string shipped = {};  // "machines"; "*": the kind that stands before
  bool may_repeat = false;
  bool is_required = false;
};

struct CommandVerb {
  std::string name = {};  // empty: the program itself
  std::string description = {};
  std::string footer = {};
  std::vector<CommandOption> options = {};
  std::vector<CommandOption> positionals = {};
};

struct CommandTree {
  CommandVerb program;
  std::vector<CommandVerb> verbs;
};

CommandTree read_command_tree(const CLI::App& app);

}  // namespace lockstep
