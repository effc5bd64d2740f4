// The built program, run as a user runs it.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

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

// `arguments` as a shell reads them, redirections of their own included; both streams go to files, so neither
// is a terminal.
inline Answer run_program(const std::string& arguments) {
  const Folder folder;
  const std::string out = folder.path() + "/out";
  const std::string diagnostics = folder.path() + "/err";
  const std::string command =
      "(" + std::string(LOCKSTEP_BINARY) + " " + arguments + ") > " + out + " 2> " + diagnostics;
  const int status = std::system(command.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = text_of(out),
          .diagnostics = text_of(diagnostics)};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace lockstep::testing
