#include "sim/cli/outputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "sim/base/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool holds_something(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return !fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status);
}

// Of a file that is not there yet: the folder it would be in, as the system knows it, and its name.
fs::path future_path(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(fs::absolute(path), error);
  return error ? fs::path(path) : canonical;
}

bool are_one_file(const std::string& first, const std::string& second) {
  std::error_code error;
  if (fs::equivalent(first, second, error))
    return true;
  return future_path(first) == future_path(second);
}

}  // namespace

void require_files_of_their_own(const std::vector<OutputFile>& outputs,
                                const std::vector<std::string>& inputs) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (path.empty() || !holds_something(path))
      continue;
    for (const std::string& input : inputs)
      if (are_one_file(path, input)) {
        problems.push_back(fmt::format("{}: found {}, which is to be read{}, expected a file of its own", option,
                                       path, input == path ? "" : fmt::format(" as {}", input)));
        break;
      }
    for (std::size_t other = 0; other < i; ++other)
      if (!outputs[other].path.empty() && are_one_file(path, outputs[other].path))
        problems.push_back(fmt::format("{}: found {}, which {} writes too, expected a file of its own", option,
                                       path, outputs[other].option));
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

}  // namespace lockstep
