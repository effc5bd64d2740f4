#pragma once

// Errors that are not bugs.
//
// The user's mistakes are gathered, not thrown one at a time: a ConfigError carries every problem of a file,
// one human line each (file, JSON pointer, what was found, what is valid). An EnvironmentError is the
// machine's fault. Only main turns them into exit codes: ConfigError 2, EnvironmentError 4, anything else 1.

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// `what()` is the problems joined by newlines.
struct ConfigError : std::runtime_error {
  explicit ConfigError(std::vector<std::string> lines)
      : std::runtime_error(joined(lines)), problems(std::move(lines)) {}
  explicit ConfigError(const std::string& line) : ConfigError(std::vector<std::string>{line}) {}

  std::vector<std::string> problems;

 private:
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    return text;
  }
};

// What was measured is shorter than the GPU's peak allows, or than what computes nothing takes: a mistake of who
// measured, of what was stated, or of what is known here.
struct ImpossibleStep : ConfigError {
  using ConfigError::ConfigError;
};

// It could be simulated, but takes more time or memory than anybody asked for: who asks many things leaves this one
// out.
struct TooLarge : ConfigError {
  using ConfigError::ConfigError;
};

struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lockstep
