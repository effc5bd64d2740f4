#pragma once

// The verbs of the command line: one .cpp each, which declares its arguments and says what running it does.
//
// Idea:      add_NAME_command adds a subcommand whose callback sets `context.run`; main parses the whole line
//            first and then runs what was set, so that nothing happens before every argument is understood.
// Invariant: a verb prints its answer through output.h, throws ConfigError or EnvironmentError, and returns
//            an exit code of its own (0, or 3 when a check did not hold); nobody but main exits.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "sim/study/team/team.h"

namespace lockstep {

struct CommandContext {
  std::string data_directory = {};     // --data
  bool is_quiet = false;               // --quiet: no progress bar
  bool accepts_any_size = false;       // --yes: what takes long or much memory is simulated, too
  Team* team = nullptr;                // processes that were started together; none: this one alone
  std::function<int()> run = nullptr;  // what the chosen verb does; set by its callback

  // Whether another process prints the answer and writes the files.
  bool only_helps() const { return team != nullptr && team->rank() > 0; }
};

void add_predict_command(CLI::App& app, CommandContext& context);
void add_collective_command(CLI::App& app, CommandContext& context);
void add_check_command(CLI::App& app, CommandContext& context);
void add_explain_command(CLI::App& app, CommandContext& context);
void add_sweep_command(CLI::App& app, CommandContext& context);
void add_compare_command(CLI::App& app, CommandContext& context);
void add_layouts_command(CLI::App& app, CommandContext& context);
void add_plan_command(CLI::App& app, CommandContext& context);
void add_validate_command(CLI::App& app, CommandContext& context);
void add_calibrate_command(CLI::App& app, CommandContext& context);
void add_import_command(CLI::App& app, CommandContext& context);
void add_list_command(CLI::App& app, CommandContext& context);
void add_show_command(CLI::App& app, CommandContext& context);
void add_schema_command(CLI::App& app, CommandContext& context);
void add_completion_command(CLI::App& app, CommandContext& context);
void add_manual_command(CLI::App& app, CommandContext& context);

}  // namespace lockstep
