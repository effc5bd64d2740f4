#include "sim/cli/scenario_arguments.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/scenario/spelling.h"

namespace lockstep {

void ScenarioArguments::add_to(CLI::App& command) {
  command.add_option("scenario", path, "a scenario file (JSON; comments allowed)")
      ->type_name("SCENARIO")
      ->required();
  command.add_option("--set", changes, "change one value, e.g. cluster.nodes=4; may be repeated")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

void ScenarioArguments::add_simulation_options(CLI::App& command) {
  command
      .add_option("--fidelity", fidelity,
                  "flow: a collective is one transfer; step: every step of every ring is one")
      ->type_name("flow|step");
  command.add_flag("--no-fold", is_unfolded, "simulate every rank, not one of each kind; changes no result");
}

LoadRequest ScenarioArguments::request(const CommandContext& context) const {
  LoadRequest request{.path = path,
                      .data_directory = context.data_directory,
                      .fold = !is_unfolded,
                      .accepts_any_size = context.accepts_any_size};
  for (const std::string& change : changes) {
    request.overrides.push_back(parse_change(change, "--set"));
  }
  request.fidelity = parse_fidelity(fidelity);
  return request;
}

std::pair<std::string, std::string> parse_change(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(
        fmt::format("{}: found \"{}\", expected PATH=VALUE, for example cluster.nodes=4", option, text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::optional<Fidelity> parse_fidelity(const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  for (const auto& spelling : fidelity_spellings) {
    if (spelling.name == text) {
      return spelling.value;
    }
  }
  throw ConfigError(fmt::format("--fidelity: found \"{}\", {}", text,
                                describe_choices(text, names_of(fidelity_spellings))));
}

}  // namespace lockstep
