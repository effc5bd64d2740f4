// lockstep calibrate as a user runs it: what it prints, what it writes, what it refuses.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/benchmark_log.h"
#include "tests/support/harness_run_file.h"
#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::contains;
using testing::Folder;
using testing::run_program;
using testing::text_of;

// A folder with the log of one sound run on eight V100s.
class LogFolder {
 public:
  LogFolder() {
    const Calibration base =
        load_collective_setting({.machine = "dgx1_v100"}, shipped_profiles()).cluster.calibration;
    folder_.write("run.log", benchmark_log({}, known_calibration(base), shipped_profiles()));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }
  std::string arguments(const std::string& more = "") const {
    return "calibrate --machine dgx1_v100 " + path("run.log") + " -o " + path("mine.json") + " " + more;
  }

 private:
  Folder folder_;
};

TEST_CASE("calibrate prints constants, residuals and errors, and writes a profile") {
  const LogFolder logs;
  const Answer answer = run_program(logs.arguments());
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  for (const char* part : {"Constants", "collective_launch", "us", "Residuals", "measured us", "predicted us",
                           "error %", "ll128", "below 64 KiB", "1 MiB and more", "mine.json"})
    CHECK_MESSAGE(contains(answer.out, part), part);
  CHECK(contains(answer.diagnostics, "warning: every table is of 8 ranks"));
  CHECK(contains(answer.diagnostics, "warning: every table is of all_reduce"));
  const json profile = json::parse(text_of(logs.path("mine.json")));
  CHECK(profile["name"] == "dgx1_v100");
  CHECK(profile["fitted"]["most_ranks"] == 8);
  CHECK(profile["residuals"]["communication"].size() == 3);
}

TEST_CASE("a profile that calibrate wrote serves a machine") {
  const LogFolder logs;
  REQUIRE(run_program(logs.arguments()).exit_code == 0);
  json machine =
      json::parse(text_of(std::string(LOCKSTEP_SOURCE_DIR) + "/hw_profiles/machines/dgx1_v100.json"));
  machine["calibration"] = logs.path("mine.json");
  const std::string file = logs.write("machine.json", machine.dump());
  const Answer answer = run_program("collective all_reduce -b 1M -e 1M --machine " + file);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
}

TEST_CASE("calibrate --json prints one document and the same bytes every time") {
  const LogFolder logs;
  const Answer first = run_program(logs.arguments("--json --quiet"));
  const json document = json::parse(first.out);
  CHECK(document["schema"] == "lockstep.calibration_report/1");
  CHECK(document["output"] == logs.path("mine.json"));
  CHECK(document["points"].size() == 26);  // 2^3 to 2^28
  CHECK(document["warnings"].size() == 3);
  CHECK(document["profile"] == json::parse(text_of(logs.path("mine.json"))));
  CHECK(run_program(logs.arguments("--json --quiet")).out == first.out);
}

TEST_CASE("calibrate refuses what it cannot fit and writes nothing") {
  const LogFolder logs;
  const std::string output = " -o " + logs.path("none.json");
  const std::string broken = logs.write(
      "broken.log", text_of(logs.path("run.log")) + "   536870912    134217728 float sum -1 0 1 1 0\n");
  check_refused("calibrate --machine dgx1_v100 " + broken + output,
                {"broken.log: the run is broken: took 0 us"});
  check_refused("calibrate --machine p100_4gpu_25gbe " + logs.path("run.log") + output,
                {"found 8 GPUs", "p100_4gpu_25gbe has 4"});
  check_refused("calibrate --machine dgx1_v10 " + logs.path("run.log") + output, {"did you mean"});
  const std::string few = logs.write("few.csv", "size_bytes,time_us\n8,10\n16,10\n");
  check_refused(
      "calibrate --machine dgx1_v100 --collective all_reduce --nodes 1 --gpus-per-node 8 " + few + output,
      {"2 rows", "1 MiB"});
  check_refused("calibrate --machine dgx1_v100 " + logs.path("no.log") + output, {"no.log"});
  CHECK(text_of(logs.path("none.json")).empty());
}

TEST_CASE("an output that cannot be written is refused before anything is fitted") {
  const LogFolder logs;
  check_refused("calibrate --machine dgx1_v100 " + logs.path("run.log") + " -o /nonexistent/mine.json",
                {"/nonexistent/mine.json"});
  check_refused("calibrate --machine dgx1_v100 " + logs.path("run.log"), {"--output"});
  check_refused("calibrate " + logs.path("run.log") + " -o x.json", {"--machine"});
}

TEST_CASE("a log is never overwritten by its own calibration") {
  const LogFolder logs;
  const std::string before = text_of(logs.path("run.log"));
  const std::string log = logs.path("run.log");
  check_refused("calibrate --machine dgx1_v100 " + log + " -o " + log, {"--output", "run.log"});
  CHECK(text_of(log) == before);
}

TEST_CASE("skipped lines are told with their place and do not spoil the answer") {
  const LogFolder logs;
  const std::string log = logs.write(
      "noted.log", text_of(logs.path("run.log")) + "   536870912    134217728 float sum -1 oops 1 1 0\n");
  const Answer answer =
      run_program("calibrate --json --machine dgx1_v100 " + log + " -o " + logs.path("mine.json"));
  CHECK(answer.exit_code == 0);
  CHECK(contains(answer.diagnostics, "noted.log:40: "));
  CHECK(json::accept(answer.out));
}

// A folder with the run of a machine whose constants are known.
class RunFolder {
 public:
  RunFolder() { write("run.json", testing::harness_run()); }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const json& run) const { folder_.write(name, run.dump()); }
  std::string arguments(const std::string& machine, const std::string& more = "") const {
    return "calibrate --machine " + machine + " " + path("run.json") + " -o " + path("mine.json") + " " +
           more;
  }

 private:
  Folder folder_;
};

// A step of 150 us, of which cpu_gloo's link states 100.
TEST_CASE("calibrate fits a machine of CPU processes to harness runs, the same bytes every time") {
  const RunFolder runs;
  const Answer answer = run_program(runs.arguments("cpu_gloo", "--json"));
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  const json document = json::parse(answer.out);
  CHECK(document["schema"] == "lockstep.calibration_report/1");
  CHECK(document["machine"] == "cpu_gloo");
  const std::string profile = text_of(runs.path("mine.json"));
  CHECK(document["profile"] == json::parse(profile));
  CHECK(json::parse(profile)["protocols"][0]["step"]["network"] == "50 us");
  CHECK(run_program(runs.arguments("cpu_gloo", "--json")).out == answer.out);
  CHECK(text_of(runs.path("mine.json")) == profile);
  const Answer text = run_program(runs.arguments("cpu_gloo"));
  for (const char* part : {"Constants", "unhidden_per_byte", "Residuals", "bucket copy", "compute beside"})
    CHECK_MESSAGE(contains(text.out, part), part);
}

TEST_CASE("calibrate fits a machine of GPUs to harness runs, and writes the GPU beside it") {
  const RunFolder runs;
  json run = testing::harness_run({.goodput = 50e9, .step_s = 5e-6});
  run["harness"]["backend"] = "cuda";
  run["nodes"] = 1;
  run["collective_curve"] = json::array();
  for (std::int64_t bytes = 8; bytes <= 256 << 20; bytes *= 2)  // 20 us, and 100 GB/s
    run["collective_curve"].push_back(
        {{"bytes", bytes}, {"time_s", testing::statistics(20e-6 + static_cast<double>(bytes) / 100e9)}});
  run["matmuls"] = {
      {{"rows", 1000}, {"columns", 1000}, {"inner", 1000}, {"precision", "fp32"}, {"time_s", 0.2e-3}}};
  runs.write("run.json", run);
  const Answer answer = run_program(runs.arguments("dgx1_v100", "--gpu-output " + runs.path("gpu.json")));
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  const json profile = json::parse(text_of(runs.path("mine.json")));
  // Computing takes 1 / (1 - 3 ns / 0.22 ns a byte, at most half of it) of its time beside all-reduces.
  CHECK(profile["compute_slowdown"].get<double>() == doctest::Approx(2).epsilon(0.01));
  CHECK(profile["gradient_copy"]["bandwidth"] == "10 GB/s");
  CHECK(profile["fitted"]["most_ranks"] == 2);
  CHECK(json::parse(text_of(runs.path("gpu.json")))["name"] == "v100_sxm2_32gb_measured");
}

TEST_CASE("calibrate refuses runs with logs, of other machines, and with what is said of logs") {
  const RunFolder runs;
  const LogFolder logs;
  check_refused(runs.arguments("cpu_gloo", logs.path("run.log")), {"run.json", "run.log", "apart"});
  check_refused(runs.arguments("dgx1_v100"), {"/harness/backend", "dgx1_v100", "GPUs (NCCL)"});
  check_refused(runs.arguments("cpu_gloo", "--nodes 2"), {"--nodes", "harness runs say all of it"});
  check_refused(runs.arguments("cpu_gloo", "--gpu-output " + runs.path("run.json")),
                {"--gpu-output", "run.json"});
  check_refused(runs.arguments("cpu_gloo", "--gpu-output " + runs.path("gpu.json")), {"matmuls"});
  check_refused(logs.arguments("--gpu-output " + runs.path("gpu.json")), {"--gpu-output", "lockstep.run/1"});
  CHECK(text_of(runs.path("mine.json")).empty());
}

}  // namespace
}  // namespace lockstep
