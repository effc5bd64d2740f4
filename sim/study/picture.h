#pragma once

// A result drawn by a Python script of plots/.
//
// Problem:   pictures want matplotlib, which a simulator must not need.
// Idea:      the script is a program of its own: it reads the result on its standard input and writes the
//            picture. It is looked for where profiles are; the interpreter is the first of python3 on the
//            path and the system's that has matplotlib.
// Invariant: the picture appears whole or not at all; a missing interpreter, library or script is an
//            EnvironmentError, after everything else of the answer is complete.

#include <string>
#include <vector>

namespace lockstep {

struct Picture {
  std::string script;    // "sweep": plots/sweep.py
  std::string document;  // what it reads: CSV or JSON text
  std::string output;    // FILE.svg or FILE.png
  std::vector<std::string> arguments = {};
  std::string data_directory = {};  // --data
};

// Throws ConfigError, before anything is computed, for what is neither .svg nor .png or cannot be written.
void check_picture_file(const std::string& output);

void draw(const Picture& picture);

}  // namespace lockstep
