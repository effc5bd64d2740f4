#pragma once

// The arguments every verb about one scenario shares: the file, --set, whose library, how fine to simulate.
//
// Idea: declared once, so that predict, explain, check and sweep spell and describe them alike.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/commands.h"
#include "sim/load/load.h"

namespace lockstep {

struct ScenarioArguments {
  std::string path = {};
  std::vector<std::string> changes = {};  // "PATH=VALUE"
  std::string fidelity = {};
  bool is_unfolded = false;
  LibraryChoice library = {};

  void add_to(CLI::App& command);
  // --fidelity and --no-fold, for verbs that simulate.
  void add_simulation_options(CLI::App& command);

  // --calibration and --library-version, for the same.
  void add_library_options(CLI::App& command);

  // Reads the file, once and for all. Throws ConfigError where that fails, and where two options say the same value.
  // `text`: what the file says, where it was read already.
  LoadRequest request(const CommandContext& context, std::optional<std::string> text = {}) const;
};

// As every verb that asks a library spells them.
void add_library_options(CLI::App& command, LibraryChoice& choice);

// --jobs, for verbs that run on several threads; 0: one a core.
void add_jobs_option(CLI::App& command, int& jobs);

// Throws ConfigError when a change of `path` by `option` is one that `choice` makes as well.
void refuse_said_twice(const LibraryChoice& choice, std::string_view path, std::string_view option);

// "cluster.nodes=4" to path and value; `option` names the flag in the ConfigError when there is no '='.
std::pair<std::string, std::string> parse_change(const std::string& text, const std::string& option);

// Empty text is no wish; throws ConfigError when there is no such fidelity.
std::optional<Fidelity> parse_fidelity(const std::string& text);

}  // namespace lockstep
