// lockstep completion SHELL: what teaches a shell the verbs, their options and what may stand behind them.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/commands.h"
#include "sim/cli/completion_script.h"
#include "sim/cli/output.h"

namespace lockstep {
namespace {

int run_completion(const std::string& shell, const CLI::App& app) {
  const std::vector<std::string>& known = shells();
  if (std::find(known.begin(), known.end(), shell) == known.end())
    throw ConfigError(fmt::format("{}: no such shell; {}", shell, describe_choices(shell, known)));
  print(completion_script(shell, read_command_tree(app)));
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("completion", "what teaches a shell to complete this command line");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "for which shell")->type_name("bash|fish|zsh")->required();
  command->callback(
      [shell, &app, &context] { context.run = [shell, &app] { return run_completion(*shell, app); }; });
}

}  // namespace lockstep
