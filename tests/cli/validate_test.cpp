// lockstep validate on collective tables as a user runs it: the picture, and what is refused.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/harness_run_file.h"
#include "tests/support/program.h"

namespace lockstep::validate_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::run_program;
using testing::text_of;

json table_entry(const std::string& id, const std::string& collective) {
  return {{"id", id},       {"file", "rows.csv"},     {"source", "here"},
          {"group", "own"}, {"machine", "dgx1_v100"}, {"collective", collective},
          {"nodes", 1},     {"gpus_per_node", 8}};
}

// Two tables of one machine whose profile is shipped.
class TableFolder {
 public:
  TableFolder() {
    write_index({table_entry("a", "all_reduce"), table_entry("b", "broadcast")});
    folder_.write("rows.csv", "size_bytes,time_us\n1024,20\n1048576,60\n67108864,900\n");
  }
  void write_index(const std::vector<json>& tables) const {
    folder_.write("index.json", json{{"schema", "lockstep.collective_tables/1"}, {"tables", tables}}.dump());
  }
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string command(const std::string& more = "") const {
    return "validate " + folder_.path() + " " + more;
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path(name)); }

 private:
  Folder folder_;
};

TEST_CASE("validate tells the error of every measured point of an index and its bandwidths") {
  const TableFolder tables;
  const json document = json::parse(run_program(tables.command("--json")).out);
  CHECK(document["schema"] == "lockstep.collective_validation/1");
  CHECK(document["tables"].size() == 2);
  REQUIRE(document["points"].size() == 6);
  // 8 ranks: 67108864 B in 900 us are an algbw of 74.565 GB/s, times 2 (8 - 1) / 8 for all_reduce, times 1
  // for broadcast.
  const double algbw = 67108864 / 900e-6 / 1e9;
  CHECK(document["points"][2]["collective"] == "all_reduce");
  CHECK(document["points"][2]["measured_busbw_gbs"].get<double>() == doctest::Approx(algbw * 14 / 8));
  CHECK(document["points"][5]["collective"] == "broadcast");
  CHECK(document["points"][5]["measured_busbw_gbs"].get<double>() == doctest::Approx(algbw));
  // Nothing was left out: there is no other predictor.
  for (const json& line : document["summary"]) {
    CHECK(line["nccl_model"]["median"].is_null());
    CHECK((line["points"] > 0 || line["band_holds"].is_null()));
    CHECK(line["lockstep"]["median"].is_null() == (line["points"] == 0));
  }
}

// A table that was forced to ring and Simple, and whose source says so of its smallest size and otherwise of its largest.
TEST_CASE("what tables say that ran is set against what is chosen here") {
  const TableFolder tables;
  json table = table_entry("a", "all_reduce");
  table.update({{"algorithm", "ring"}, {"protocol", "simple"}});
  table["chosen"] = {{{"from", "1 KiB"}, {"to", "1 KiB"}, {"algorithm", "ring"}, {"protocol", "simple"}},
                     {{"from", "2 MiB"}, {"to", "1 GiB"}, {"algorithm", "tree"}}};
  tables.write_index({table});
  const json choices = json::parse(run_program(tables.command("--json")).out)["choices"];
  CHECK(choices["stated"] == 2);
  CHECK(choices["alike"] == 1);
  CHECK(choices["tables"] == 1);
  REQUIRE(choices["different"].size() == 1);
  CHECK(choices["different"][0]["size_bytes"] == 67108864);
  check_says(run_program(tables.command()).out,
             {"of 2 sizes in 1 tables that say what ran, 1 are chosen alike"});
}

// The first bytes of every PNG (RFC 2083, 3.1). Without matplotlib nothing may appear.
TEST_CASE("validate --plot draws collectives as a PNG, beside its whole answer") {
  const TableFolder tables;
  const Answer answer = run_program(tables.command("--plot " + tables.path("out.png")));
  CAPTURE(answer.diagnostics);
  CHECK(answer.out == run_program(tables.command()).out);
  if (answer.exit_code == 4) {
    check_says(answer.diagnostics, {"needs python3 with matplotlib"});
    CHECK_FALSE(tables.has("out.png"));
  } else {
    CHECK(answer.exit_code == 0);
    CHECK(text_of(tables.path("out.png")).starts_with("\x89PNG\r\n\x1a\n"));
  }
}

TEST_CASE("without matplotlib the answer is whole, the exit code 4 and no picture there") {
  const TableFolder tables;
  std::filesystem::create_directory(tables.path("plots"));
  tables.write("plots/collectives.py", "import sys\nsys.exit(69)\n");
  const Answer answer =
      run_program(tables.command("--data " + tables.path("") + " --plot " + tables.path("out.png")));
  CHECK(answer.exit_code == 4);
  CHECK(answer.out == run_program(tables.command()).out);
  check_says(answer.diagnostics, {"--plot", "needs python3 with matplotlib", "the answer is complete"});
  CHECK_FALSE(tables.has("out.png"));
}

TEST_CASE("a picture that cannot be written is refused before anything is predicted") {
  const TableFolder tables;
  check_refused(tables.command("--plot " + tables.path("none/out.png")), {"none/out.png"});
  check_refused(tables.command("--plot " + tables.path("out.pdf")), {"out.pdf", ".svg or .png"});
  CHECK_FALSE(tables.has("out.pdf"));
}

TEST_CASE("a profile without tables is refused with the nearest that has some") {
  const TableFolder tables;
  check_refused(tables.command("--profile dgx1_v10"), {"--profile", "did you mean \"dgx1_v100\""});
  check_refused("validate --profile dgx1_v10 " + tables.path("index.json"), {"did you mean \"dgx1_v100\""});
  check_refused(tables.command("--leave-out cel"), {"--leave-out", "did you mean \"cell\""});
}

TEST_CASE("a table that its machine cannot run is refused with index, table and what would do") {
  const TableFolder tables;
  json entry = table_entry("a", "all_reduce");
  entry["machine"] = "dgx1_v10";
  tables.write_index({entry});
  check_refused(tables.command(),
                {"index.json: a: found no machine \"dgx1_v10\"", "did you mean \"dgx1_v100\""});
  entry = table_entry("a", "all_reduce");
  entry["gpus_per_node"] = 16;
  tables.write_index({entry});
  check_refused(tables.command(), {"index.json: a: found 16 GPUs", "a dgx1_v100 has 8"});
}

TEST_CASE("an answer about nothing is refused with the reason") {
  const TableFolder tables;
  json entry = table_entry("a", "all_reduce");
  tables.write_index({entry});
  check_refused(tables.command("--leave-out cell"), {"no point to predict", "dgx1_v100: one cell only"});
  entry["profile"] = "none_shipped";
  tables.write_index({entry});
  check_refused(tables.command(), {"none_shipped: no calibration of this name"});
  entry["healthy"] = false;
  tables.write_index({entry});
  check_refused(tables.command(), {"no healthy table"});
}

TEST_CASE("rows that are cut are told with their place") {
  const TableFolder tables;
  tables.write("rows.csv", "size_bytes,time_us\n1024,20\n1048576\n");
  const Answer answer = run_program(tables.command());
  CHECK(answer.exit_code == 0);
  check_says(answer.diagnostics, {"rows.csv:3: skipped a row: it has 1 fields"});
}

TEST_CASE("a benchmark's log is no suite, and what reads it is named") {
  const TableFolder tables;
  check_refused("validate " + tables.path("rows.csv"), {"rows.csv:1:1", "lockstep calibrate"});
}

// A folder of two harness runs; a folder stands for all runs below it.
class RunFolder {
 public:
  RunFolder() {
    json first = testing::harness_run({.name = "first"});
    first["iterations"] = {testing::iteration_of(1, 0.080), testing::iteration_of(25, 0.081)};
    folder_.write("first.json", first.dump());
    folder_.write("second.json", testing::harness_run({.name = "second"}).dump());
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string command(const std::string& more = "") const {
    return "validate " + folder_.path() + " " + more;
  }

 private:
  Folder folder_;
};

TEST_CASE("validate predicts every iteration of the runs in a folder, the same bytes every time") {
  const RunFolder runs;
  const Answer answer = run_program(runs.command("--json"));
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  const json document = json::parse(answer.out);
  CHECK(document["cases"].size() == 3 + 2);  // and a step from its layers each
  CHECK(document["groups"].size() == 2 + 2);
  CHECK(document["best_caps"].size() == 1);
  CHECK(run_program(runs.command("--json")).out == answer.out);
  CHECK(contains(run_program(runs.command("--markdown")).out, "| first (held out) | 2 |"));
  CHECK(run_program(runs.command("--max-mape 0.0001")).exit_code == 3);
}

TEST_CASE("validate --plot draws iteration time against bucket cap for runs") {
  const RunFolder runs;
  const Answer answer = run_program(runs.command("--plot " + runs.path("caps.png")));
  CAPTURE(answer.diagnostics);
  if (answer.exit_code != 4) {
    CHECK(answer.exit_code == 0);
    CHECK(text_of(runs.path("caps.png")).starts_with("\x89PNG\r\n\x1a\n"));
  }
}

TEST_CASE("what is said of runs is refused where there are none, and so is a profile that is none") {
  const TableFolder tables;
  check_refused(tables.command("--calibration cpu_gloo"), {"--calibration", "found no harness runs"});
  const RunFolder runs;
  check_refused(runs.command("--calibration cpu_glo"), {"did you mean \"cpu_gloo\""});
}

const std::string kernel_samples = LOCKSTEP_SOURCE_DIR "/tests/study/kernels";

TEST_CASE("validate predicts a folder of kernel tables, group by group, the same bytes every time") {
  const Answer answer = run_program("validate " + kernel_samples + " --json");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  const json document = json::parse(answer.out);
  CHECK(document["schema"] == "lockstep.validation/1");
  std::size_t cases = 0;
  for (const json& group : document["groups"]) cases += group["n"].get<std::size_t>();
  CHECK(cases == document["cases"].size());
  CHECK(run_program("validate " + kernel_samples + " --json").out == answer.out);
  check_says(run_program("validate " + kernel_samples).out,
             {"gemm, h100_sxm_80gb, bf16, fwd", "not asked",
              "step_against_batch, t4: 2 rows, no shipped model has this name"});
  CHECK(run_program("validate --max-mape 0.0001 " + kernel_samples).exit_code == 3);
}

TEST_CASE("a product tells what it has to do, and is drawn under its GPU's roof") {
  const TableFolder tables;
  const std::string table =
      tables.write("gemm.csv",
                   "gpu,precision,batch,m,n,k,layout,direction,time_us,source\n"
                   "a100_sxm_80gb,bf16,1,4096,4096,1024,,fwd,150,here\n");
  const json document = json::parse(run_program("validate --json " + table).out);
  const json& figures = document["cases"].at(0)["figures"];
  CHECK(figures["flops"] == 2.0 * 4096 * 4096 * 1024);
  CHECK(figures["bytes"] == 2.0 * (4096 * 1024 * 2 + 4096 * 4096));
  CHECK(figures["peak_flops_per_s"] == 312e12);
  CHECK(figures["peak_bytes_per_s"] == 2039e9);
  const Answer drawn = run_program("validate " + table + " --plot " + tables.path("roof.png"));
  CAPTURE(drawn.diagnostics);
  if (drawn.exit_code == 4)
    check_says(drawn.diagnostics, {"needs python3 with matplotlib"});
  else
    CHECK(text_of(tables.path("roof.png")).starts_with("\x89PNG\r\n\x1a\n"));
}

TEST_CASE("kernels that only move bytes have no roof, and are drawn as any other cases") {
  const TableFolder tables;
  const Answer drawn =
      run_program("validate " + kernel_samples + "/memory_bound.csv --plot " + tables.path("moved.png"));
  CAPTURE(drawn.diagnostics);
  if (drawn.exit_code == 4)
    check_says(drawn.diagnostics, {"needs python3 with matplotlib"});
  else
    CHECK(text_of(tables.path("moved.png")).starts_with("\x89PNG\r\n\x1a\n"));
}

TEST_CASE("one table of kernels is a suite, beside others, and a folder may hold both kinds of CSV") {
  const Answer one = run_program("validate --json " + kernel_samples + "/gemm.csv");
  CHECK(one.exit_code == 0);
  const RunFolder runs;
  const json both = json::parse(run_program(runs.command("--json " + kernel_samples + "/gemm.csv")).out);
  CHECK(both["cases"].size() == json::parse(one.out)["cases"].size() + 3 + 2);
}

TEST_CASE("a bad table of kernels is refused with file, line and column") {
  const TableFolder tables;
  tables.write("gemm.csv", "gpu,precision,batch,m,n,k,direction,time_us\nl40s,bf16,1,8,8,8,fwd,-1\n");
  check_refused("validate " + tables.path("gemm.csv"), {"gemm.csv:2:23: time_us: found \"-1\""});
  tables.write("gemm.csv", "gpu,precision,batch,m,n,k,direction,time\nl40s,bf16,1,8,8,8,fwd,1\n");
  check_refused("validate " + tables.path("gemm.csv"),
                {"gemm.csv:1:1: found no column \"time_us\"", "unknown column \"time\""});
}

}  // namespace lockstep::validate_test
