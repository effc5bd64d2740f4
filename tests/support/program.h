#pragma once

// The built program, run as a user runs it.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scenario/lab.h"

namespace lockstep::testing {

struct Answer {
  int exit_code = 0;
  std::string out;
  std::string diagnostics;
};

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// `command` as a shell reads it; both streams go to files, so neither is a terminal.
inline Answer run_command(const std::string& command) {
  const Folder folder;
  const std::string out = folder.path() + "/out";
  const std::string diagnostics = folder.path() + "/err";
  const int status = std::system(("(" + command + ") > " + out + " 2> " + diagnostics).c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = text_of(out),
          .diagnostics = text_of(diagnostics)};
}

// The simulator; `arguments` may have redirections of their own.
inline Answer run_program(const std::string& arguments) {
  return run_command(std::string(LOCKSTEP_BINARY) + " " + arguments);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void check_says(const std::string& text, const std::vector<std::string>& parts) {
  CAPTURE(text);
  for (const std::string& part : parts) CHECK_MESSAGE(contains(text, part), part);
}

// The user's mistake: exit code 2, nothing answered, and every line of the message begins as ours do.
inline void check_refused(const std::string& arguments, const std::vector<std::string>& says) {
  const Answer answer = run_program(arguments);
  CAPTURE(arguments);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 2);
  CHECK(answer.out.empty());
  CHECK(answer.diagnostics.starts_with("lockstep: "));
  check_says(answer.diagnostics, says);
}

}  // namespace lockstep::testing
