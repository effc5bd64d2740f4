#pragma once

// The arguments every verb about one scenario shares: the file, --set, and how finely to simulate.
//
// Idea: declared once, so that predict, explain, check and sweep spell and describe them alike.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/commands.h"
#include "sim/scenario/load.h"

namespace lockstep {

struct ScenarioArguments {
  std::string path = {};
  std::vector<std::string> changes = {};  // "PATH=VALUE"
  std::string fidelity = {};
  bool is_unfolded = false;

  void add_to(CLI::App& command);
  // --fidelity and --no-fold, for verbs that simulate.
  void add_simulation_options(CLI::App& command);

  LoadRequest request(const CommandContext& context) const;
};

// "cluster.nodes=4" to path and value; `option` names the flag in the ConfigError when there is no '='.
std::pair<std::string, std::string> parse_change(const std::string& text, const std::string& option);

// Empty text is no wish; throws ConfigError when there is no such fidelity.
std::optional<Fidelity> parse_fidelity(const std::string& text);

}  // namespace lockstep
