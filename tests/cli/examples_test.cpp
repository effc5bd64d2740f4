// The examples under each --help run as they are printed, and the manual's pages say what the help says.

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::examples_test {

using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::run_command;
using testing::run_program;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first words of the lines between "Subcommands:" and the empty line behind.
std::vector<std::string> verbs() {
  std::vector<std::string> found;
  bool is_inside = false;
  for (const std::string& line : lines_of(run_program("--help").out)) {
    if (is_inside && line.starts_with("  ") && line[2] != ' ')
      found.push_back(line.substr(2, line.find(' ', 2) - 2));
    is_inside = line == "Subcommands:" || (is_inside && !line.empty());
  }
  return found;
}

// The repository without what is built: examples read from it and write beside it.
void link_sources(const Folder& folder) {
  namespace fs = std::filesystem;
  for (const char* name : {"scenarios", "validate", "models", "hw_profiles", "plots"})
    fs::create_directory_symlink(fs::path(LOCKSTEP_SOURCE_DIR) / name, fs::path(folder.path()) / name);
}

TEST_CASE("every verb ends its help with examples, and each runs as it is printed") {
  const Folder folder;
  link_sources(folder);
  const std::vector<std::string> all = verbs();
  REQUIRE(all.size() > 10);
  for (const std::string& verb : all) {
    CAPTURE(verb);
    const std::string help = run_program(verb + " --help").out;
    REQUIRE(contains(help, "\nExample"));
    std::size_t examples = 0;
    for (const std::string& line : lines_of(help.substr(help.find("\nExample") + 1))) {
      if (!contains(line, "lockstep " + verb))
        continue;
      ++examples;
      if (contains(line, "all_reduce_perf"))  // wants GPUs
        continue;
      CAPTURE(line);
      const std::string script = folder.write("example", line + "\n");
      const Answer answer = run_command("cd " + folder.path() +
                                        " && PATH=$(dirname " LOCKSTEP_BINARY "):$PATH bash -e " + script);
      CAPTURE(answer.diagnostics);
      CHECK(answer.exit_code == 0);
    }
    CHECK(examples > 0);
  }
}

TEST_CASE("the program alone says what to try") {
  check_says(run_program("").out, {"Start with:  lockstep list", "lockstep COMMAND --help"});
}

TEST_CASE("the manual has a page of the program and one of each verb, with its options and examples") {
  const std::string program = run_program("manual").out;
  check_says(program, {".TH lockstep 1", ".SH NAME", ".SH SYNOPSIS", ".SH COMMANDS"});
  for (const std::string& verb : verbs()) {
    CAPTURE(verb);
    CHECK(contains(program, "\\fB" + verb + "\\fR"));
    check_says(run_program("manual " + verb).out, {".TH lockstep-" + verb + " 1", ".SH EXAMPLES"});
  }
  check_says(run_program("manual predict").out, {"\\fB\\-\\-set\\fR", "\\fIPATH=VALUE\\fR"});
  check_refused("manual predic", {"did you mean \"predict\""});
}

}  // namespace lockstep::examples_test
