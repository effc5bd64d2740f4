// The sweep verb as a user runs it: its options, what goes wrong on the way, and what is left then.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace lockstep::sweep_verb_test {

using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::lab_text;
using testing::run_command;
using testing::run_program;
using testing::text_of;

namespace fs = std::filesystem;

// A lab, and sweeps of it whose tables lie beside it.
class Sweeps {
 public:
  Sweeps() { folder_.write("lab.json", lab_text); }

  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string arguments(const std::string& options, const std::string& output = "a.csv") const {
    return "sweep " + file("lab.json") + " " + options + " -o " + file(output);
  }
  Answer run(const std::string& options, const std::string& output = "a.csv") const {
    return run_program(arguments(options, output));
  }

 private:
  Folder folder_;
};

const std::string caps = "--vary training.bucket_cap_mb=1,25 ";
const std::string with_mistake = "--vary training.bucket_cap_mb=1,-1,25 ";

TEST_CASE("zipped lists are of one length") {
  const Sweeps sweeps;
  CHECK(sweeps.run("--zip --vary cluster.nodes=2,3 " + caps).exit_code == 0);
  check_refused(sweeps.arguments("--zip --vary cluster.nodes=2,3,4 " + caps),
                {"--zip", "3 values of cluster.nodes", "2 of training.bucket_cap_mb"});
}

TEST_CASE(
    "a condition keeps a row from being the best, in text and document, and an unknown key is refused") {
  const Sweeps sweeps;
  const std::string options = "--vary cluster.nodes=2,4 --where 'communication.bytes_per_gpu>8000' --json";
  const Answer answer = sweeps.run(options);
  REQUIRE(answer.exit_code == 0);
  // A ring of n sends 2 (n - 1) / n of the 1,510 fp32 parameters: 6,040 bytes on two hosts, 9,060 on four.
  CHECK(nlohmann::json::parse(answer.out)["best"]["cluster.nodes"] == 4);
  check_refused(sweeps.arguments(caps + "--where memory_bytes.fit"),
                {"--where", "did you mean \"memory_bytes.fits\""});
}

TEST_CASE("several goals are answered by the rows that none beats") {
  const Sweeps sweeps;
  const Answer answer =
      sweeps.run("--vary cluster.nodes=2,4 --minimize iteration_time_s --maximize samples_per_s");
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"smallest iteration_time_s", "largest samples_per_s", "Pareto: "});
}

TEST_CASE("a mistake in one cell is told on stderr, and fails the command only where that is asked for") {
  const Sweeps sweeps;
  const Answer answer = sweeps.run(with_mistake);
  CHECK(answer.exit_code == 0);
  check_says(answer.diagnostics, {"lockstep: warning: 1 of 3 cells", "training.bucket_cap_mb=-1"});
  const std::string table = text_of(sweeps.file("a.csv"));
  const Answer strict = sweeps.run(with_mistake + "--strict");
  CHECK(strict.exit_code == 2);
  check_says(strict.diagnostics, {"lockstep: 1 of 3 cells"});
  CHECK(text_of(sweeps.file("a.csv")) == table);
  CHECK(sweeps.run(caps + "--strict").exit_code == 0);
}

TEST_CASE("a thousand million cells are counted, not tried") {
  const Sweeps sweeps;
  const std::string grid =
      "--vary training.bucket_cap_mb=1:1000:+1 --vary simulation.seed=1:1000:+1 --vary "
      "cluster.nodes=2:1001:+1 ";
  check_refused(sweeps.arguments(grid), {"1000000000 cells, which take about", "--yes"});
  check_refused(sweeps.arguments(grid + "--yes"), {"1000000000 cells", "--shard"});
  CHECK_FALSE(fs::exists(sweeps.file("a.csv.partial")));
}

TEST_CASE("an empty range is refused") {
  const Sweeps sweeps;
  check_refused(sweeps.arguments("--vary cluster.nodes="), {"--vary cluster.nodes", "empty value"});
  check_refused(sweeps.arguments("--vary cluster.nodes=8:2:+2"), {"--vary cluster.nodes", "8:2:+2"});
}

TEST_CASE("shards are joined into the bytes of the whole, whatever is refused on the way") {
  const Sweeps sweeps;
  const std::string grid = with_mistake + "--vary cluster.nodes=2,3,4,5 ";
  sweeps.run(grid, "whole.csv");
  for (const char* index : {"1", "2", "3"})
    CHECK(sweeps.run(grid + "--shard " + index + "/3", std::string(index) + ".csv").exit_code == 0);
  const std::string all = " -o " + sweeps.file("all.csv");
  const std::string two = sweeps.file("3.csv") + " " + sweeps.file("1.csv");
  check_refused("sweep --merge " + two + all, {"1 of 3 shards missing: 2/3"});
  check_refused("sweep --merge " + two + " " + sweeps.file("whole.csv") + all, {"whole.csv: is no shard"});
  check_refused("sweep --merge " + two + " -o " + sweeps.file("1.csv"), {"1.csv, which is to be read"});
  check_refused("sweep --merge " + two + all + " --vary cluster.nodes=2", {"--merge", "expected only"});
  CHECK_FALSE(fs::exists(sweeps.file("all.csv")));
  const Answer answer = run_program("sweep --merge " + two + " " + sweeps.file("2.csv") + all);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"12 rows of 3 shards, 4 with an error"});
  CHECK(text_of(sweeps.file("all.csv")) == text_of(sweeps.file("whole.csv")));
}

TEST_CASE("a sweep without a scenario or an axis says what is required") {
  check_refused("sweep -o a.csv --vary cluster.nodes=2", {"scenario is required"});
  const Sweeps sweeps;
  check_refused(sweeps.arguments(""), {"--vary is required"});
}

TEST_CASE("a killed sweep goes on where it was, to the same bytes") {
  const Sweeps sweeps;
  const std::string grid = "--vary training.bucket_cap_mb=1:3000:+1 --jobs 2";
  const std::string partial = sweeps.file("killed.csv.partial");
  const Answer killed =
      run_command(std::string(LOCKSTEP_BINARY) + " " + sweeps.arguments(grid, "killed.csv") +
                  " & program=$!; until [ \"$(grep -c '^\\[' " + partial +
                  ")\" -ge 20 ] 2> /dev/null; do :; done; kill -9 $program; wait $program");
  CHECK(killed.exit_code == 128 + 9);
  CHECK_FALSE(fs::exists(sweeps.file("killed.csv")));
  CHECK(fs::exists(partial));
  CHECK(sweeps.run(grid, "killed.csv").exit_code == 2);  // it holds what was finished
  CHECK(sweeps.run(grid + " --resume", "killed.csv").exit_code == 0);
  CHECK(sweeps.run(grid, "whole.csv").exit_code == 0);
  CHECK(text_of(sweeps.file("killed.csv")) == text_of(sweeps.file("whole.csv")));
  CHECK_FALSE(fs::exists(partial));
}

TEST_CASE("a disk that is full ends the sweep with what was there before, and what is finished is kept") {
  const Sweeps sweeps;
  const std::string grid = "--vary training.bucket_cap_mb=1:20:+1";
  CHECK(run_program("sweep " + sweeps.file("lab.json") + " " + grid + " -o /dev/full").exit_code == 4);
  const std::string program = std::string(LOCKSTEP_BINARY) + " " + sweeps.arguments(grid);
  // No file of more than 8 blocks of 512 bytes: room for a few cells.
  const Answer full =
      run_command("echo before > " + sweeps.file("a.csv") + "; trap '' XFSZ; ulimit -f 8; " + program);
  CHECK(full.exit_code == 4);
  check_says(full.diagnostics, {"a.csv.partial: writing failed", "--resume"});
  CHECK(text_of(sweeps.file("a.csv")) == "before\n");
  CHECK(sweeps.run(grid + " --resume").exit_code == 0);
  CHECK(sweeps.run(grid, "whole.csv").exit_code == 0);
  CHECK(text_of(sweeps.file("a.csv")) == text_of(sweeps.file("whole.csv")));
}

TEST_CASE("a scenario that is none, or whose name is no text, has a page of its cells' errors") {
  const Folder folder;
  for (const char* text : {"[1]", "{\"name\": 5}"}) {
    const std::string file = folder.write("none.json", text);
    const std::string page = folder.path() + "/page.html";
    const Answer answer = run_program("sweep " + file + " --vary cluster.nodes=1,2 --discard -o " +
                                      folder.path() + "/a.csv --report " + page);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 2);
    CHECK(fs::exists(page));
  }
}

}  // namespace lockstep::sweep_verb_test
