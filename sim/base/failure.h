#pragma once

// How a program of this project ends when something goes wrong.
//
// Problem: scripts rely on exit codes, and every program must mean the same by them.
// Idea: 0 done; 2 the user's input is wrong; 3 a check the user asked for did not hold; 4 the environment
// failed; 130 interrupted; 1 a bug. Exceptions carry the kind (error.h, check.h); only a program's main turns
// them into a code, with describe_failure, and only it exits.
// Invariant: an interrupted program leaves no temporary file.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr int exit_done = 0;
inline constexpr int exit_bug = 1;
inline constexpr int exit_wrong_input = 2;
inline constexpr int exit_check_failed = 3;
inline constexpr int exit_environment = 4;
inline constexpr int exit_interrupted = 130;

struct Failure {
  int exit_code = exit_bug;
  std::vector<std::string> lines;  // for people
};

// Of the exception that is being handled.
Failure describe_failure();

// What SIGINT and SIGTERM say before the program ends, as one line; empty: nothing. Longer texts are cut.
void say_when_interrupted(std::string_view line);

// SIGINT and SIGTERM remove what is unfinished and end the program with 130. A reader that went away ends nothing:
// the write that finds it gone fails, and is told as one.
void end_cleanly_when_interrupted();

}  // namespace lockstep
