// The sweep verb as a user runs it: its options, what goes wrong on the way, and what is left then.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

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

TEST_CASE("a goal is a number, said once, and what is varied is not set as well") {
  const Sweeps sweeps;
  check_refused(sweeps.arguments(caps + "--minimize band"),
                {"--minimize: found \"band\"", "did you mean \"band.factor\""});
  check_refused(sweeps.arguments(caps + "--minimize memory_bytes.peak_at"),
                {"did you mean \"memory_bytes.peak_at_s\""});
  check_refused(sweeps.arguments(caps + "--minimize mfu_reason"), {"--minimize"});
  check_refused(sweeps.arguments(caps + "--minimize iteration_time_s --minimize iteration_time_s"),
                {"--minimize: found iteration_time_s, which is a goal already"});
  check_refused(sweeps.arguments(caps + "--set training.bucket_cap_mb=5"),
                {"--set training.bucket_cap_mb=5", "that --vary training.bucket_cap_mb sets in every cell"});
}

TEST_CASE(
    "what holds a path that was said before would wipe it, and is refused; what lies inside comes after it") {
  const Sweeps sweeps;
  const std::string whole = R"(--vary 'training={"strategy":"ddp"},{"strategy":"zero1"}' )";
  check_refused(sweeps.arguments(caps + whole),
                {"--vary training.bucket_cap_mb", "that --vary training sets anew", "expected it first"});
  check_refused(sweeps.arguments(whole + "--set training.optimizer=adam"),
                {"--set training.optimizer=", "that --vary training sets in every cell"});
  CHECK(sweeps.run(whole + caps).exit_code == 0);
  CHECK(sweeps.run("--set cluster.machine.nics.count=1 --vary cluster.machine=dgx_a100_40gb").exit_code == 0);
}

TEST_CASE("a sweep of failures goes by goodput") {
  const Sweeps sweeps;
  const Answer answer =
      sweeps.run(R"(--set 'cluster.faults={"restart":"1 min","checkpoint_bandwidth":"1 GB/s"}' )"
                 "--vary 'cluster.faults.mtbf_per_node=1 year,1 day' --maximize goodput.fraction "
                 "--maximize goodput.samples_per_s");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"largest goodput.fraction", "largest goodput.samples_per_s"});
  CHECK(contains(answer.out, "1 year"));
}

// Of a result with a band each part is a column, as of one without.
TEST_CASE("the columns of a sweep are scalars with dotted keys") {
  const Sweeps sweeps;
  const auto table_of = [&](const std::string& arguments) {
    REQUIRE(run_program(arguments + " -o " + sweeps.file("a.csv")).exit_code == 0);
    return text_of(sweeps.file("a.csv"));
  };
  const std::string with_band = table_of("sweep " + std::string(LOCKSTEP_SOURCE_DIR) +
                                         "/scenarios/resnet50_ddp_2x8_a100.json --vary cluster.nodes=2");
  const std::string without = table_of("sweep " + sweeps.file("lab.json") + " " + caps);
  CHECK_FALSE(contains(with_band, "{"));
  CHECK(with_band.substr(with_band.find(','), with_band.find('\n') - with_band.find(',')) ==
        without.substr(without.find(','), without.find('\n') - without.find(',')));
  check_says(without, {",band.measured_again.low,band.measured_again.high,", ",band.factor,"});
}

TEST_CASE("a scenario is read once, so that it may be a pipe") {
  const Sweeps sweeps;
  const std::string program = std::string("cat ") + sweeps.file("lab.json") + " | " + LOCKSTEP_BINARY;
  const Answer swept = run_command(program + " sweep /dev/stdin " + caps + "--report " +
                                   sweeps.file("a.html") + " -o " + sweeps.file("piped.csv"));
  CAPTURE(swept.diagnostics);
  CHECK(swept.exit_code == 0);
  REQUIRE(sweeps.run(caps).exit_code == 0);
  CHECK(text_of(sweeps.file("piped.csv")) == text_of(sweeps.file("a.csv")));
  CHECK(run_command(program + " compare /dev/stdin --set cluster.nodes=3").exit_code == 0);
  CHECK(run_command(program + " compare /dev/stdin " + sweeps.file("lab.json")).exit_code == 0);
  CHECK(run_command(program + " check /dev/stdin").exit_code == 0);
  CHECK(run_command(program + " layouts /dev/stdin --report " + sweeps.file("b.html")).diagnostics.empty());
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

// Collectives in flight are nothing to strategy single, and are not told to change nothing under ddp.
TEST_CASE("what every cell is warned of is told once, what some are is counted") {
  const Sweeps sweeps;
  const std::string unused = "--set cluster.gpus_per_node=1 --set communication.collectives_in_flight=2 ";
  const Answer all = sweeps.run(caps + "--set cluster.nodes=1 --set training.strategy=single " + unused);
  check_says(all.diagnostics, {"warning: ", "communication.collectives_in_flight"});
  const Answer some =
      sweeps.run("--vary training.strategy=single,ddp --set cluster.nodes=1 " + unused, "b.csv");
  CHECK_FALSE(contains(some.diagnostics, "collectives_in_flight"));
  check_says(some.diagnostics, {"warnings of some cells alone: "});
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
  const Answer done = sweeps.run("--vary cluster.nodes=1,2 --resume", "killed.csv");
  CHECK(done.exit_code == 0);
  check_says(done.diagnostics, {"--resume: found no ", "killed.csv.partial", "all cells are predicted anew"});
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

// ---- measured beside predicted ----

const std::string measurements = std::string(LOCKSTEP_SOURCE_DIR) + "/validate/measurements/";
const std::string measured_run = measurements + "harness/mlp_2_ranks_1gbit.json";

std::string measured_sweep(const std::string& folder, const std::string& options) {
  return "sweep " + measurements + "gloo/mlp_n2_1000_quiet.scenario.json -o " + folder + "/m.csv " + options;
}

TEST_CASE(
    "a harness run beside a sweep of bucket_cap_mb: errors, and what the predicted best takes as measured") {
  const Folder folder;
  const std::string options = "--vary training.bucket_cap_mb=1,5,25,77 --measured " + measured_run;
  const Answer answer =
      run_program(measured_sweep(folder.path(), options + " --json --report " + folder.path() + "/m.html"));
  REQUIRE(answer.exit_code == 0);
  const auto document = nlohmann::json::parse(answer.out);
  const auto& measured = document["measured"];
  double least = 1e9;
  double of_predicted_best = 0;
  int compared = 0;
  for (const auto& point : measured["points"])
    if (point["predicted_s"].is_number()) {
      ++compared;
      const double time = point["measured_s"];
      CHECK(point["error_percent"].get<double>() ==
            doctest::Approx(100 * (point["predicted_s"].get<double>() / time - 1)));
      least = std::min(least, time);
      if (point["training.bucket_cap_mb"] == measured["predicted_best"])
        of_predicted_best = time;
    }
  CHECK(compared >= 2);
  CHECK(measured["predicted_best_costs_percent"].get<double>() ==
        doctest::Approx(100 * (of_predicted_best / least - 1)));
  CHECK(contains(text_of(folder.path() + "/m.html"), "measured: "));
  const Answer told = run_program(measured_sweep(folder.path(), options));
  check_says(told.out, {" longer as measured", "\n  25: "});
  // The run's MLP is another than the scenario's; both are of two ranks.
  check_says(told.diagnostics,
             {"warning: --measured: mlp, 2 ranks, 1 Gbit/s is of 2 ranks", "of 2 and 7346176"});
}

// The columns of the row whose first field is `first`, by their names.
std::map<std::string, std::string> row_of(const std::string& csv, const std::string& first) {
  std::istringstream lines(csv);
  std::string header;
  std::getline(lines, header);
  for (std::string line; std::getline(lines, line);) {
    std::map<std::string, std::string> row;
    std::istringstream names(header);
    std::istringstream fields(line);
    for (std::string name, field; std::getline(names, name, ',');) {
      std::getline(fields, field, ',');
      row[name] = field;
      field.clear();
    }
    if (line.starts_with(first + ","))
      return row;
  }
  return {};
}

const std::string quiet_cases = measurements + "gloo/mlp_n2_1000_quiet.cases.json";

// The file measures caps of 1, 5, 25 and 100 MiB: 0.3273173, 0.3299135, 0.3251586 and 0.3264055 s.
TEST_CASE("cases of a measurement file stand in the columns of the cells that they are of") {
  const Folder folder;
  const std::string options = "--vary training.bucket_cap_mb=77,1,25 --measured " + quiet_cases;
  const Answer answer = run_program(measured_sweep(folder.path(), options + " --json"));
  REQUIRE(answer.exit_code == 0);
  const std::string csv = text_of(folder.path() + "/m.csv");
  CHECK(contains(csv, ",measured.error_percent,error\n"));
  auto row = row_of(csv, "1");
  CHECK(std::stod(row["measured.iteration_time_s"]) == 0.3273173);
  CHECK(std::stod(row["measured.error_percent"]) ==
        doctest::Approx(100 * (std::stod(row["iteration_time_s"]) / 0.3273173 - 1)));
  CHECK(row["measured.iteration_time_p10_s"].empty());
  CHECK(std::stod(row_of(csv, "25")["measured.iteration_time_s"]) == 0.3251586);
  CHECK(row_of(csv, "77")["measured.iteration_time_s"].empty());
  CHECK(row_of(csv, "77")["measured.error_percent"].empty());
  const auto measured = nlohmann::json::parse(answer.out)["measured"];
  CHECK(measured["measurements"] == "mlp_n2_1000_quiet.cases.json");
  CHECK(measured["cases_left_out"] == 2);
  REQUIRE(measured["points"].size() == 2);
  CHECK(measured["points"][0]["training.bucket_cap_mb"] == 1);
  CHECK(measured["measured_best"] == 25);
}

TEST_CASE("a run's times stand in the columns with their spread") {
  const Folder folder;
  REQUIRE(run_program(
              measured_sweep(folder.path(), "--vary training.bucket_cap_mb=1,77 --measured " + measured_run))
              .exit_code == 0);
  auto row = row_of(text_of(folder.path() + "/m.csv"), "1");
  const auto run = nlohmann::json::parse(text_of(measured_run));
  CHECK(std::stod(row["measured.iteration_time_p90_s"]) == run["iterations"][0]["iteration_s"]["p90"]);
}

TEST_CASE("over several axes a case is of the cell that says all it says, however its values are written") {
  const Folder folder;
  const std::string axes =
      "--vary cluster.nodes=3,2 --vary cluster.machine.nics.link.latency='\"100000 ns\",\"7 us\"' --vary "
      "training.bucket_cap_mb=1,25 ";
  const Answer answer = run_program(measured_sweep(folder.path(), axes + "--json --measured " + quiet_cases));
  REQUIRE(answer.exit_code == 0);
  const auto points = nlohmann::json::parse(answer.out)["measured"]["points"];
  REQUIRE(points.size() == 2);
  for (const auto& point : points) {
    CHECK(point["cluster.nodes"] == 2);
    CHECK(point["cluster.machine.nics.link.latency"] == "100000 ns");
  }
  CHECK(nlohmann::json::parse(answer.out)["measured"]["measured_best"]["training.bucket_cap_mb"] == 25);
  // Side by side: of two nodes and 1 MiB, three and 25, the first was measured.
  const Answer zipped = run_program(measured_sweep(
      folder.path(),
      "--zip --vary cluster.nodes=2,3 --vary training.bucket_cap_mb=1,25 --json --measured " + quiet_cases));
  REQUIRE(zipped.exit_code == 0);
  CHECK(nlohmann::json::parse(zipped.out)["measured"]["points"].size() == 1);
}

TEST_CASE("what was measured of a cell several times counts once, by its median") {
  const Folder folder;
  auto document = nlohmann::ordered_json::parse(text_of(quiet_cases));
  document["scenario"] = measurements + "gloo/mlp_n2_1000_quiet.scenario.json";
  auto again = document["cases"][0];
  again["measured"]["iteration_time_s"] = 0.5;
  document["cases"].push_back(again);
  const std::string file = folder.write("again.json", document.dump());
  REQUIRE(run_program(measured_sweep(folder.path(), "--vary training.bucket_cap_mb=1,5 --measured " + file))
              .exit_code == 0);
  auto row = row_of(text_of(folder.path() + "/m.csv"), "1");
  CHECK(std::stod(row["measured.iteration_time_s"]) == doctest::Approx((0.3273173 + 0.5) / 2));
}

TEST_CASE(
    "a measurement file none of whose cases is of the sweep is refused with what the nearest differs in") {
  const Folder folder;
  const std::string over_caps = "--vary training.bucket_cap_mb=1,5 ";
  check_refused(measured_sweep(folder.path(), over_caps + "--set cluster.nodes=4 --measured " + quiet_cases),
                {"none of its 4 cases", "/cluster/nodes"});
  check_refused(measured_sweep(folder.path(), "--vary training.bucket_cap_mb=7,8 --measured " + quiet_cases),
                {"differs in what --vary varies"});
  const std::string memory = folder.write(
      "memory.json",
      R"({"schema": "lockstep.measurements/1", "source": "x", "split": "heldout", "scenario": ")" +
          measurements + R"(gloo/mlp_n2_1000_quiet.scenario.json", "cases": [{"name": "a", "group": "b",
              "measured": {"memory_bytes": 5, "counted": "device"}}]})");
  check_refused(measured_sweep(folder.path(), over_caps + "--measured " + memory),
                {"none of its 1 cases is of an iteration"});
  const std::string broken = folder.write(
      "broken.json", R"({"schema": "lockstep.measurements/1", "source": "x", "split": "held", "cases": 3})");
  check_refused(measured_sweep(folder.path(), over_caps + "--measured " + broken),
                {"/split", "heldout", "/cases"});
  CHECK_FALSE(fs::exists(folder.path() + "/m.csv"));
}

TEST_CASE("shards of which one has something measured are no one sweep") {
  const Folder folder;
  const std::string caps_of_two = "--vary training.bucket_cap_mb=1,5 ";
  const auto shard = [&](const std::string& index, const std::string& more) {
    return run_program("sweep " + measurements + "gloo/mlp_n2_1000_quiet.scenario.json " + caps_of_two +
                       "--shard " + index + "/2 -o " + folder.path() + "/" + index + ".csv " + more);
  };
  REQUIRE(shard("1", "--measured " + quiet_cases).exit_code == 0);
  REQUIRE(shard("2", "").exit_code == 0);
  const std::string merge = "sweep --merge " + folder.path() + "/1.csv --merge " + folder.path() +
                            "/2.csv -o " + folder.path() + "/all.csv";
  check_refused(merge, {"--measured differs"});
  REQUIRE(shard("2", "--measured " + quiet_cases).exit_code == 0);
  REQUIRE(run_program(merge).exit_code == 0);
  REQUIRE(run_program(measured_sweep(folder.path(), caps_of_two + "--measured " + quiet_cases)).exit_code ==
          0);
  CHECK(text_of(folder.path() + "/all.csv") == text_of(folder.path() + "/m.csv"));
}

TEST_CASE("a measured curve that is none, or beside another axis, is refused before anything runs") {
  const Folder folder;
  const std::string over_caps = "--vary training.bucket_cap_mb=1,5 ";
  check_refused(measured_sweep(folder.path(), over_caps + "--measured /nowhere.json"), {"/nowhere.json"});
  check_refused(measured_sweep(folder.path(), over_caps + "--measured " + folder.write("x.json", "{}")),
                {"lockstep.run/1"});
  check_refused(measured_sweep(folder.path(), "--vary cluster.nodes=1,2 --measured " + measured_run),
                {"training.bucket_cap_mb"});
  check_refused(measured_sweep(folder.path(), over_caps + "--vary cluster.nodes=1,2 --measured " + measured_run),
                {"found training.bucket_cap_mb, cluster.nodes"});
  CHECK_FALSE(fs::exists(folder.path() + "/m.csv"));
}

}  // namespace lockstep::sweep_verb_test
