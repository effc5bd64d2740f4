// Where nothing more can be written: every output of every verb, and what stood there before.

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::failing_disk_test {

using testing::Answer;
using testing::Folder;
using testing::lab_text;
using testing::run_command;
using testing::run_program;

const std::string program = LOCKSTEP_BINARY;
const std::string source = LOCKSTEP_SOURCE_DIR;

// What writes FILE, and what else it prints goes nowhere.
std::vector<std::string> writing_commands() {
  const std::string lab = "$folder/s.json";
  return {"predict " + lab + " --report FILE.html",
          "predict " + lab + " --trace FILE.json",
          "sweep " + lab + " --vary cluster.nodes=2:9:+1 -o FILE.csv",
          "sweep " + lab + " --vary cluster.nodes=2,3 --discard -o $folder/a.csv --report FILE.html",
          "sweep " + lab + " --vary cluster.nodes=2,3 --discard -o $folder/a.csv --plot FILE.svg",
          "plan " + source + "/scenarios/plans/resnet50_rented.json --report FILE.html",
          "layouts " + source + "/scenarios/pipeline_four_stages.json --report FILE.html",
          "validate $folder/v.json --report FILE.html",
          "import hf_config $folder/config.json -o FILE.json"};
}

void write_inputs(const Folder& folder) {
  folder.write("s.json", lab_text);
  folder.write("v.json",
               R"({"schema": "lockstep.measurements/1", "source": "ours", "split": "heldout", "cases": [
    {"name": "one", "group": "g", "scenario": "s.json", "measured": {"iteration_time_s": 0.1}}]})");
  folder.write("config.json",
               R"({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 100,
    "n_positions": 64})");
}

bool has_file_systems_of_its_own() {
  const Folder folder;
  return run_command("unshare -rm mount -t tmpfs none " + folder.path()).exit_code == 0;
}

// A file system of its own, 64 KiB large, where "old" stands in each file; what `command` said last, its exit code and
// whether all is as it was. `state` makes the disk what it is.
Answer run_on_disk(const Folder& folder, const std::string& state, std::string command) {
  for (std::size_t at = command.find("FILE"); at != command.npos; at = command.find("FILE"))
    command.replace(at, 4, "disk/f");
  const std::string script = folder.write(
      "script", "folder=" + folder.path() +
                    "\ncd $folder && mkdir -p disk && mount -t tmpfs -o size=64k none disk\n"
                    "for name in html json csv svg; do echo old > disk/f.$name; done\n" +
                    state + "\n" + program + " " + command +
                    " > out\ncode=$?\n"
                    "for name in html json csv svg; do\n"
                    "  test \"$(cat disk/f.$name)\" = old || echo lost $name >&2\n"
                    "done\n"
                    "ls -A disk | grep -vE '^(f[.](html|json|csv|svg|csv[.]partial)|fill)$' >&2\n"
                    "exit $code\n");
  return run_command("unshare -rm sh " + script);
}

void check_one_line(const Answer& answer) {
  std::istringstream lines(answer.diagnostics);
  int told = 0;
  for (std::string line; std::getline(lines, line);) told += line.starts_with("lockstep: warning: ") ? 0 : 1;
  CHECK(told == 1);
  CHECK(answer.diagnostics.find("lockstep: ") != std::string::npos);
}

TEST_CASE("a full disk ends every verb with 4, in a line, and what was there stays") {
  if (!has_file_systems_of_its_own()) {
    MESSAGE("no file system of its own may be mounted here");
    return;
  }
  for (const std::string& command : writing_commands()) {
    const Folder folder;
    write_inputs(folder);
    const Answer answer = run_on_disk(folder, "cat /dev/zero > disk/fill 2> /dev/null", command);
    CAPTURE(command);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 4);
    check_one_line(answer);
  }
}

TEST_CASE("a folder that cannot be written to ends every verb with 2, before anything runs") {
  if (!has_file_systems_of_its_own())
    return;
  for (const std::string& command : writing_commands()) {
    const Folder folder;
    write_inputs(folder);
    const Answer answer = run_on_disk(folder, "mount -o remount,ro disk", command);
    CAPTURE(command);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 2);
    check_one_line(answer);
  }
}

TEST_CASE("a reader that goes away, a full device and a closed stream are failures of the machine") {
  const Folder folder;
  write_inputs(folder);
  const std::vector<std::string> commands{"predict " + folder.path() + "/s.json",
                                          "predict --json " + folder.path() + "/s.json",
                                          "list",
                                          "--help",
                                          "collective all_reduce -e 8 --machine dgx_a100_40gb",
                                          "validate " + folder.path() + "/v.json",
                                          "import hf_config " + folder.path() + "/config.json"};
  for (const std::string& arguments : commands) {
    // The reader is gone before the program begins.
    for (const std::string output : {"> /dev/full", ">&-", "| true"}) {
      const bool is_pipe = output[0] == '|';
      const Answer answer = run_command(is_pipe ? "bash -c '(sleep 0.2; exec " + program + " " + arguments +
                                                      ") | true; exit ${PIPESTATUS[0]}'"
                                                : program + " " + arguments + " " + output);
      CAPTURE(arguments + " " + output);
      CAPTURE(answer.diagnostics);
      CHECK(answer.exit_code == 4);
      check_one_line(answer);
    }
  }
}

// The second begins when the first has its journal, and is refused.
TEST_CASE("of two sweeps into one table the second is refused and the first is whole") {
  const Folder folder;
  folder.write("s.json", lab_text);
  const std::string sweep = program + " sweep " + folder.path() +
                            "/s.json --vary cluster.nodes=2:300:+1 -o " + folder.path() + "/a.csv";
  const Answer answer =
      run_command(sweep + " > /dev/null & first=$!; while ! test -s " + folder.path() +
                  "/a.csv.partial; do :; done; " + sweep + "; second=$?; wait $first; echo $?; exit $second");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 2);
  CHECK(answer.out == "0\n");
  CHECK(testing::contains(answer.diagnostics, "another sweep is writing it now"));
  const std::string table = testing::text_of(folder.path() + "/a.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 300);
}

}  // namespace lockstep::failing_disk_test
