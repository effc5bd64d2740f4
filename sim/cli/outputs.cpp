#include "sim/cli/outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "sim/base/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* standard_output = "/dev/stdout";

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

// As the system knows them: also pipes and devices, of which std::filesystem::equivalent says nothing.
bool are_one_inode(const std::string& first, const std::string& second) {
  struct stat of_first = {}, of_second = {};
  return ::stat(first.c_str(), &of_first) == 0 && ::stat(second.c_str(), &of_second) == 0 &&
         of_first.st_dev == of_second.st_dev && of_first.st_ino == of_second.st_ino;
}

bool are_one_file(const std::string& first, const std::string& second) {
  return are_one_inode(first, second) || future_path(first) == future_path(second);
}

// Two that are written to one place, where somebody would miss either.
bool collide(const std::string& first, const std::string& second) {
  if (first.empty() || second.empty() || !are_one_file(first, second))
    return false;
  const bool takes_document = first == standard_output || second == standard_output;
  return holds_something(first) || (takes_document && !are_one_inode(first, "/dev/null"));
}

using Problems = std::vector<std::string>;

void find_read(const OutputFile& output, const std::vector<std::string>& inputs, Problems& problems) {
  if (output.path.empty() || !holds_something(output.path))
    return;
  for (const std::string& input : inputs)
    if (are_one_file(output.path, input)) {
      problems.push_back(fmt::format("{}: found {}, which is to be read{}, expected a file of its own",
                                     output.option, output.path,
                                     input == output.path ? "" : fmt::format(" as {}", input)));
      return;
    }
}

}  // namespace

OutputFile json_output(bool is_wanted) {
  return {"--json", is_wanted ? standard_output : ""};
}

void require_files_of_their_own(const std::vector<OutputFile>& outputs,
                                const std::vector<std::string>& inputs) {
  Problems problems;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (path == "-")
      problems.push_back(fmt::format("{}: found -, expected a file, such as /dev/stdout or ./-", option));
    find_read(outputs[i], inputs, problems);
    for (std::size_t other = 0; other < i; ++other)
      if (collide(path, outputs[other].path))
        problems.push_back(fmt::format("{}: found {}, which {} writes too, expected a file of its own", option,
                                       path, outputs[other].option));
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

}  // namespace lockstep
