#include "sim/study/picture.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/installed_data.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int no_matplotlib = 69;  // EX_UNAVAILABLE of sysexits.h, as plots/style.py exits
constexpr int cannot_write = 74;   // EX_IOERR, likewise
constexpr std::array interpreters{"python3", "/usr/bin/python3"};

std::string find_script(const Picture& picture) {
  const char* environment = std::getenv("LOCKSTEP_DATA");
  for (const std::string& root :
       {picture.data_directory, std::string(environment == nullptr ? "" : environment),
        installed_data_directory(), std::string(LOCKSTEP_INSTALL_DATA_DIR),
        std::string(LOCKSTEP_SOURCE_DIR)}) {
    const fs::path file = fs::path(root) / "plots" / (picture.script + ".py");
    std::error_code ignored;
    if (!root.empty() && fs::is_regular_file(file, ignored)) {
      return file.string();
    }
  }
  throw EnvironmentError(
      fmt::format("--plot: found no plots/{}.py in --data, LOCKSTEP_DATA, the install prefix "
                  "or the source tree; the rest of the answer is complete",
                  picture.script));
}

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Without a name, so that nothing is left behind: not even after a kill.
TemporaryFile temporary_with(const std::string& text) {
  TemporaryFile file(std::tmpfile(), std::fclose);
  const bool is_written = file != nullptr &&
                          std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                          std::fflush(file.get()) == 0;
  if (!is_written) {
    throw EnvironmentError("--plot: no temporary file could be written: " +
                           std::generic_category().message(errno));
  }
  return file;
}

// The exit status, or nothing where there is no such program.
std::optional<int> run(std::vector<std::string> words, std::FILE* input) {
  std::rewind(input);
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(input), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // stdout is the answer's
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) < 0) {
    return std::nullopt;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

void check_picture_file(const std::string& output) {
  if (!output.ends_with(".svg") && !output.ends_with(".png")) {
    throw ConfigError(fmt::format("--plot: found \"{}\", expected a name that ends in .svg or .png", output));
  }
  static_cast<void>(AtomicFile(output));
}

void draw(const Picture& picture) {
  const TemporaryFile input = temporary_with(picture.document);
  // A name that begins like an option would be read as one.
  const std::string output = (picture.output.starts_with('-') ? "./" : "") + picture.output;
  std::vector<std::string> words{"", find_script(picture), "-", output};
  words.insert(words.end(), picture.arguments.begin(), picture.arguments.end());
  for (const char* interpreter : interpreters) {
    words.front() = interpreter;
    const std::optional<int> status = run(words, input.get());
    if (status == 0) {
      return;
    }
    if (status == cannot_write)
      throw EnvironmentError(
          fmt::format("--plot: {}: writing failed; the rest of the answer is complete", picture.output));
    if (status && status != no_matplotlib && status != 127) {
      throw EnvironmentError(fmt::format("--plot: {} failed ({}); the rest of the answer is complete",
                                         words[1], *status < 0 ? "killed" : fmt::format("exit {}", *status)));
    }
  }
  throw EnvironmentError(
      fmt::format("--plot: {} needs python3 with matplotlib (Debian: python3-matplotlib), which "
                  "was not found; the rest of the answer is complete",
                  words[1]));
}

}  // namespace lockstep
