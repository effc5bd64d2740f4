#include "sim/cli/scenario_arguments.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

// An empty one would be as good as none: what a script forgot to fill in.
CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? std::string("found an empty text") : ""; }, ""};
}

}  // namespace

void ScenarioArguments::add_to(CLI::App& command) {
  command.add_option("scenario", path, "a scenario file (JSON; comments allowed)")
      ->type_name("SCENARIO")
      ->required();
  command
      .add_option("--set", changes,
                  "change one value, also inside what is named, e.g. cluster.nodes=4 or "
                  "cluster.machine.nics.count=4; "
                  "may be repeated")
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

void ScenarioArguments::add_library_options(CLI::App& command) {
  lockstep::add_library_options(command, library);
}

LoadRequest ScenarioArguments::request(const CommandContext& context, std::optional<std::string> text) const {
  LoadRequest request{.path = path,
                      .text = std::move(text),
                      .data_directory = context.data_directory,
                      .fold = !is_unfolded,
                      .accepts_any_size = context.accepts_any_size};
  for (const std::string& change : changes) {
    request.overrides.push_back(parse_change(change, "--set"));
    refuse_said_twice(library, request.overrides.back().first, "--set");
  }
  const Overrides chosen = overrides_of(library);
  request.overrides.insert(request.overrides.end(), chosen.begin(), chosen.end());
  request.fidelity = parse_fidelity(fidelity);
  return with_text(std::move(request));
}

void add_library_options(CLI::App& command, LibraryChoice& choice) {
  command
      .add_option("--calibration", choice.calibration, "a fitted profile's name or file (the machine's own)")
      ->type_name("NAME")
      ->check(not_empty());
  command.add_option("--library-version", choice.library_version, "choose as this release does, e.g. 2.18.3")
      ->type_name("V")
      ->check(not_empty());
}

void add_jobs_option(CLI::App& command, int& jobs) {
  constexpr int most_threads = 4096;
  command.add_option("--jobs", jobs, "threads (one a core)")
      ->type_name("J")
      ->check(CLI::Range(1, most_threads));
}

void refuse_said_twice(const LibraryChoice& choice, std::string_view path, std::string_view option) {
  const auto refuse = [&](const std::string& given, std::string_view flag, std::string_view its_path) {
    const bool is_same =
        path.starts_with(its_path) && (path.size() == its_path.size() || path[its_path.size()] == '.');
    if (!given.empty() && is_same)
      throw ConfigError(fmt::format("{}: is given beside {} {}; expected one of them", flag, option, path));
  };
  refuse(choice.calibration, "--calibration", calibration_path);
  refuse(choice.library_version, "--library-version", library_version_path);
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
