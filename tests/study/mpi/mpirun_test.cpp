// Several processes of the built program, started by mpirun: one answer, also where one of them is killed.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/program.h"

namespace lockstep::mpirun_test {

using testing::Answer;
using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::run_command;
using testing::text_of;

namespace fs = std::filesystem;

const std::string program = LOCKSTEP_BINARY;
const std::string scenarios = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios";

// Tests may run as root, and on fewer cores than processes.
std::string mpirun(int processes, const std::string& more = "") {
  return fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 300 {} --oversubscribe {} -n {} ",
      LOCKSTEP_MPIRUN, more, processes);
}

std::size_t lines_that_begin(const std::string& text, const std::string& opening) {
  std::size_t lines = 0;
  for (std::size_t at = text.find(opening); at != text.npos; at = text.find(opening, at + 1))
    lines += at == 0 || text[at - 1] == '\n' ? 1 : 0;
  return lines;
}

TEST_CASE("one, two and four processes with threads of their own answer what one answers") {
  const Folder folder;
  const std::string table = folder.path() + "/a.csv";
  const std::vector<std::string> questions{
      "sweep " + scenarios +
          "/resnet50_ddp_2x8_a100.json --vary cluster.nodes=1,2,4,8 --vary training.bucket_cap_mb=1,-1,25 "
          "--json -o " +
          table,
      "layouts " + scenarios + "/pipeline_four_stages.json --json",
      "plan " + scenarios + "/plans/resnet50_rented.json --json"};
  for (const std::string& question : questions) {
    CAPTURE(question);
    const Answer alone = run_command(program + " " + question + " --jobs 1");
    const std::string rows = text_of(table);
    for (const int processes : {1, 2, 4}) {
      CAPTURE(processes);
      fs::remove(table);
      const Answer together = run_command(mpirun(processes) + program + " " + question + " --jobs 2");
      CAPTURE(together.diagnostics);
      CHECK(together.exit_code == alone.exit_code);
      CHECK(together.out == alone.out);
      CHECK(lines_that_begin(together.diagnostics, "lockstep: warning: ") ==
            lines_that_begin(alone.diagnostics, "lockstep: warning: "));
      CHECK(text_of(table) == (question.starts_with("sweep") ? rows : ""));
    }
    fs::remove(table);
  }
}

TEST_CASE("a layout that a plan searches is searched by all processes") {
  const Folder folder;
  const std::string request = folder.write("request.json", R"({
    "model": {"name": "gpt2", "batch_per_gpu": 4, "precision": "amp_bf16"},
    "training": {"strategy": "ddp"},
    "goal": {"tokens": 1e9, "deadline": "30 days"},
    "candidates": [{"machine": "dgx_a100_40gb", "nodes": "1:2:x2", "layouts": "search"}]})");
  const std::string question = " plan " + request + " --json";
  const Answer alone = run_command(program + question);
  REQUIRE(alone.exit_code == 0);
  CHECK(run_command(mpirun(3) + program + question).out == alone.out);
}

TEST_CASE("a mistake is told once") {
  const Folder folder;
  const Answer answer =
      run_command(mpirun(3) + program + " sweep nothing.json --vary a=1 -o " + folder.path() + "/a.csv");
  CHECK(answer.exit_code == 2);
  CHECK(lines_that_begin(answer.diagnostics, "lockstep: ") == 1);
  check_says(answer.diagnostics, {"lockstep: nothing.json: found no such file"});
}

TEST_CASE("processes that were asked different things give no answer") {
  const Folder folder;
  const std::string question = program + " sweep " + scenarios + "/resnet50_ddp_2x8_a100.json -o " +
                               folder.path() + "/a.csv --vary cluster.nodes=";
  const Answer answer = run_command(mpirun(1) + question + "1,2 : -n 1 " + question + "1,4");
  CHECK(answer.exit_code == 2);
  check_says(answer.diagnostics, {"rank 1 on ", "was asked something else"});
  CHECK_FALSE(fs::exists(folder.path() + "/a.csv"));
}

// A sweep of some seconds, one of whose three processes is killed while it is under way.
class LosingSweep {
 public:
  explicit LosingSweep(int rank) {
    folder_.write("losing.sh", fmt::format(R"sh(
[ "$OMPI_COMM_WORLD_RANK" = {} ] || exec {}
{} &
while kill -0 $! && ! [ "$(grep -cs '' {}.partial)" -gt 20 ]; do sleep 0.02; done 2> /dev/null
kill -9 $!
kill -9 $$
)sh",
                                           rank, command(table()), command(table()), table()));
  }

  std::string table() const { return folder_.path() + "/a.csv"; }
  Answer run(const std::string& options) const {
    return run_command(mpirun(3, options) + "sh " + folder_.path() + "/losing.sh");
  }
  Answer resume() const { return run_command(mpirun(2) + command(table()) + " --resume"); }

  static const std::string& whole() {
    static const std::string table = [] {
      const Folder folder;
      run_command(command(folder.path() + "/a.csv"));
      return text_of(folder.path() + "/a.csv");
    }();
    return table;
  }

 private:
  static std::string command(const std::string& table) {
    return fmt::format(
        "{} sweep {}/gpt2_ddp_4x8_h100.json --vary cluster.nodes=1:32:+1 --vary "
        "training.bucket_cap_mb=1:16:+1 "
        "--jobs 1 -o {}",
        program, scenarios, table);
  }

  Folder folder_;
};

TEST_CASE("where mpirun lets the rest live, a worker that is killed costs the cells that it held") {
  const LosingSweep sweep(1);
  const Answer answer = sweep.run("--enable-recovery");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  check_says(answer.diagnostics, {"lockstep: warning: rank 1 on ", "it has given no sign for 10 s"});
  CHECK_FALSE(fs::exists(sweep.table() + ".partial"));
  CHECK(text_of(sweep.table()) == LosingSweep::whole());
}

TEST_CASE("where mpirun ends all, or the manager is killed, the finished cells stay and a message says so") {
  for (const auto& [rank, options] :
       {std::pair(1, ""), std::pair(0, ""), std::pair(0, "--enable-recovery")}) {
    CAPTURE(rank);
    CAPTURE(options);
    const LosingSweep sweep(rank);
    const Answer answer = sweep.run(options);
    check_says(answer.diagnostics, {"finished cells are in ", "--resume goes on"});
    CHECK_FALSE(fs::exists(sweep.table()));
    CHECK(fs::exists(sweep.table() + ".partial"));
    CHECK(sweep.resume().exit_code == 0);
    CHECK(text_of(sweep.table()) == LosingSweep::whole());
  }
}

}  // namespace lockstep::mpirun_test
