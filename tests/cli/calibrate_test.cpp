// lockstep calibrate as a user runs it: what it prints, what it writes, what it refuses.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/benchmark_log.h"
#include "tests/support/harness_run_file.h"
#include "tests/support/nccl_run_file.h"
#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep::calibrate_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::check_says;
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

TEST_CASE("a profile that is calibrated again goes on naming its schema") {
  const LogFolder logs;
  logs.write("mine.json", R"({"$schema": "../calibration.schema.json", "name": "an earlier one"})");
  REQUIRE(run_program(logs.arguments()).exit_code == 0);
  const json profile = json::parse(text_of(logs.path("mine.json")));
  CHECK(profile["$schema"] == "../calibration.schema.json");
  CHECK(profile["name"] == "dgx1_v100");
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

// All-reduces of 16 ranks on two nodes: 60 us, and every byte at `gigabytes` a second of bus bandwidth.
std::string rows_at(double gigabytes) {
  std::string rows = "size_bytes,time_us\n";
  for (double size = 8; size <= 8e9; size *= 4)
    rows += fmt::format("{:.0f},{:.2f}\n", size, 60 + 2 * 15.0 / 16 * size / (gigabytes * 1e3));
  return rows;
}

TEST_CASE("a network that carries a fortieth of what its wires could is fitted, by whatever algorithm") {
  const LogFolder logs;
  for (const char* machine : {"dgx_h100", "dgx_a100_80gb", "mi300x_8gpu"})
    for (const double gigabytes : {10.0, 100.0}) {
      CAPTURE(machine);
      CAPTURE(gigabytes);
      const std::string slow = logs.write("slow.csv", rows_at(gigabytes));
      const Answer answer =
          run_program(fmt::format("calibrate --machine {} --collective all_reduce --nodes 2 --gpus-per-node 8 {} "
                                  "-o {} --json --quiet",
                                  machine, slow, logs.path("slow.json")));
      REQUIRE(answer.exit_code == 0);
      for (const json& point : json::parse(answer.out)["points"])
        if (point["size_bytes"] > 256'000'000)
          CHECK_MESSAGE(std::abs(point["error"].get<double>()) < 0.2, point.dump());
    }
}

TEST_CASE("a log that no constants explain is told with how far they miss it") {
  const LogFolder logs;
  std::string rows = "size_bytes,time_us\n";
  for (int i = 0; i < 12; ++i) rows += fmt::format("{},{}\n", 8 << (2 * i), i % 2 == 0 ? 50 : 5000);
  const Answer answer =
      run_program("calibrate --machine dgx_h100 --collective all_reduce --nodes 2 --gpus-per-node 8 " +
                  logs.write("wild.csv", rows) + " -o " + logs.path("wild.json"));
  CHECK(answer.exit_code == 0);
  check_says(answer.diagnostics, {"sizes of", "wild.csv are missed by more than 30 %"});
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

// An all_reduce's busbw is 2 x 7/8 of its algbw on 8 ranks, a broadcast's is its algbw.
TEST_CASE("a log may come from standard input, once") {
  const LogFolder logs;
  const std::string from = " < " + logs.path("run.log");
  const std::string command = "calibrate --machine dgx1_v100 -o " + logs.path("mine.json");
  check_refused(command + " --collective broadcast -" + from,
                {"standard input", "--collective", "broadcast"});
  check_refused(command + " - -" + from, {"-: is given twice"});
  check_refused(command + " - < /dev/null", {"standard input: found an empty file"});
  CHECK(text_of(logs.path("mine.json")).empty());
}

TEST_CASE("a log that is still being written is read from its pipe, whatever pieces it comes in") {
  const LogFolder logs;
  REQUIRE(run_program(logs.arguments("--json --quiet")).exit_code == 0);
  const auto figures = [&] {  // without who they are from
    json profile = json::parse(text_of(logs.path("mine.json")));
    profile.erase("source");
    profile.erase("sources");
    return profile;
  };
  const json from_file = figures();
  const std::string run = logs.path("run.log");
  const std::string calibrate =
      std::string(LOCKSTEP_BINARY) + " calibrate --machine dgx1_v100 - -o " + logs.path("mine.json");
  for (const std::string& writer :
       {"dd bs=13 status=none if=" + run, "while IFS= read -r line; do echo \"$line\"; done < " + run}) {
    const Answer answer =
        testing::run_command("{ " + writer + "; echo '# Avg bus bandwidth : 1'; } | " + calibrate);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 0);
    CHECK(figures() == from_file);
    CHECK_FALSE(contains(answer.diagnostics, "pipe ended"));
  }
}

TEST_CASE("a pipe whose writer dies is calibrated to what it has written whole, and told") {
  const LogFolder logs;
  const std::string run = logs.path("run.log");
  const std::string whole = text_of(run);
  const std::string calibrate =
      std::string(LOCKSTEP_BINARY) + " calibrate --json --machine dgx1_v100 - -o " + logs.path("mine.json");
  const auto points_of = [&](std::size_t bytes) {
    const Answer answer = testing::run_command(fmt::format("head -c {} {} | {}", bytes, run, calibrate));
    CAPTURE(answer.diagnostics);
    REQUIRE(answer.exit_code == 0);
    CHECK(contains(answer.diagnostics, "the pipe ended before the benchmark did"));
    CHECK(contains(answer.diagnostics, "the pipe ended within it") == (whole[bytes - 1] != '\n'));
    return json::parse(answer.out)["points"].size();
  };
  CHECK(points_of(whole.size()) == 26);
  // Of the last row, without its line end, nobody knows whether its numbers are whole.
  CHECK(points_of(whole.size() - 1) == 25);
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
  run["harness"]["communication"] = "NCCL 2.18.3";
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

// One GPU: no collectives, but products, and copies beside computing.
json run_of_one_gpu() {
  json run = testing::harness_run({.name = "alone"});
  run["harness"]["backend"] = "cuda";
  run["harness"]["communication"] = "none";
  run["ranks"] = 1;
  run["nodes"] = 1;
  run["collective_curve"] = json::array();
  run["interference"] = json::array();
  run["matmuls"] = {
      {{"rows", 1000}, {"columns", 1000}, {"inner", 1000}, {"precision", "fp32"}, {"time_s", 0.2e-3}}};
  return run;
}

TEST_CASE("a run of one GPU calibrates computing alone and says so") {
  const RunFolder runs;
  runs.write("run.json", run_of_one_gpu());
  const std::string command = "calibrate --machine dgx1_v100 " + runs.path("run.json");
  const Answer answer = run_program(command + " --gpu-output " + runs.path("gpu.json"));
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  CHECK(contains(answer.diagnostics, "computing alone is calibrated"));
  // 2 GFLOP in 0.2 ms are 10 of 15.7 TFLOP/s.
  const json gpu = json::parse(text_of(runs.path("gpu.json")));
  CHECK(gpu["matmul_efficiency"]["fp32"][0]["efficiency"].get<double>() ==
        doctest::Approx(10 / 15.7).epsilon(0.01));
  check_refused(command + " -o " + runs.path("mine.json"), {"--output", "--gpu-output"});
}

TEST_CASE("a run whose ranks shared a GPU calibrates nothing") {
  const RunFolder runs;
  json run = run_of_one_gpu();
  run["machine"]["gpus_shared"] = true;
  runs.write("run.json", run);
  check_refused(
      "calibrate --machine dgx1_v100 " + runs.path("run.json") + " --gpu-output " + runs.path("gpu.json"),
      {"run.json: /machine/gpus_shared: found true"});
  CHECK(text_of(runs.path("gpu.json")).empty());
}

// A folder of tables of one GPU, whose products reach 60 % of its peak, and of another's.
class KernelFolder {
 public:
  KernelFolder() {
    std::string gemm = "gpu,precision,batch,m,n,k,direction,time_us,source\n";
    for (std::int64_t side = 1024; side <= 8192; side += 256) {
      const double flops = 2.0 * static_cast<double>(side * side * side);
      gemm +=
          fmt::format("Tesla V100-SXM2-32GB,fp16,1,{0},{0},{0},fwd,{1},ours\n", side, flops / 75e12 * 1e6);
    }
    folder_.write("gemm.csv", gemm + "l40s,bf16,1,64,64,64,fwd,5,ours\n");
    folder_.write("launches.csv", "gpu,what,kernels,time_us,host_us\nv100_sxm2_32gb,null_kernel,1,2.5,3.5\n");
  }
  std::string path(const std::string& name = "") const { return folder_.path() + "/" + name; }
  std::string command(const std::string& more) const {
    return "calibrate --machine dgx1_v100 " + folder_.path() + " " + more;
  }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }

 private:
  Folder folder_;
};

TEST_CASE("calibrate fits a machine's GPU to a folder of kernel tables, the same bytes every time") {
  const KernelFolder kernels;
  const Answer answer = run_program(kernels.command("-o " + kernels.path("gpu.json")));
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"kernel_launch", "2.5", "tensor.efficiency", "held out", "Residuals",
                          "wrote the processor v100_sxm2_32gb_measured to"});
  check_says(answer.diagnostics,
             {"passed over 1 rows of other GPUs than v100_sxm2_32gb: l40s",
              "the constants of volta stay as they are", "computing alone is calibrated"});
  const std::string profile = text_of(kernels.path("gpu.json"));
  CHECK(json::parse(profile)["kernel_launch"] == "2.5 us");
  CHECK(json::parse(profile)["compute"]["name"] == "v100_sxm2_32gb");
  CHECK(contains(json::parse(profile)["compute"]["source"].get<std::string>(), "tensor fitted to"));
  const Answer again = run_program(kernels.command("--json --gpu-output " + kernels.path("gpu2.json")));
  CHECK(text_of(kernels.path("gpu2.json")) == profile);
  const json document = json::parse(again.out);
  CHECK(document["profile"] == json::parse(profile));
  CHECK(document["groups"].size() == 2);  // fitted and held out
}

TEST_CASE("a folder that a GPU benchmark wrote fits communication and computing at once") {
  const KernelFolder kernels;
  kernels.write("run.json", testing::nccl_run().dump());
  check_refused(kernels.command("-o " + kernels.path("mine.json")), {"--gpu-output"});
  const Answer answer = run_program(kernels.command("--json --quick -o " + kernels.path("mine.json") +
                                                    " --gpu-output " + kernels.path("gpu.json")));
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  CHECK(json::parse(text_of(kernels.path("mine.json")))["fitted"]["most_ranks"] == 8);
  CHECK(json::parse(text_of(kernels.path("gpu.json")))["kernel_launch"] == "2.5 us");
  const json document = json::parse(answer.out);
  CHECK(document["output"] == kernels.path("mine.json"));
  CHECK(document["kernels"]["output"] == kernels.path("gpu.json"));
}

TEST_CASE("calibrate fits an architecture to tables of its GPUs, the same bytes every time") {
  const KernelFolder kernels;
  const std::string command =
      "calibrate --architecture volta " + kernels.path("gemm.csv") + " -o " + kernels.path("volta.json");
  const Answer answer = run_program(command);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"volta: fitted to timed kernels: ours of v100_sxm2_32gb", "tensor", "fitted",
                          "kept aside", "wrote the architecture volta to"});
  const std::string profile = text_of(kernels.path("volta.json"));
  CHECK(json::parse(profile)["name"] == "volta");
  const json document = json::parse(run_program(command + " --json").out);
  CHECK(document["architecture"] == "volta");
  CHECK(document["profile"] == json::parse(profile));
  CHECK(text_of(kernels.path("volta.json")) == profile);
}

TEST_CASE("an architecture that calibrate wrote serves a GPU by its path") {
  const KernelFolder kernels;
  const std::string output = kernels.path("volta.json");
  REQUIRE(
      run_program("calibrate --architecture volta " + kernels.path("gemm.csv") + " -o " + output).exit_code ==
      0);
  nlohmann::ordered_json profile = *shipped_profiles().open(ProfileKind::gpu, "v100_sxm2_32gb")->value;
  const GpuSpec before = load_gpu(profile, shipped_profiles());
  profile["compute"] = output;
  const GpuSpec gpu = load_gpu(profile, shipped_profiles());
  const double efficiency = json::parse(text_of(output))["tensor"]["efficiency"];
  CHECK(gpu.kernels.value().tensor.efficiency.in_real() == doctest::Approx(efficiency));
  CHECK(gpu.kernels->tensor != before.kernels.value().tensor);
  CHECK(gpu.kernels->attention == before.kernels->attention);
}

TEST_CASE("calibrate refuses architectures that it cannot fit and writes nothing") {
  const KernelFolder kernels;
  const std::string table = kernels.path("gemm.csv");
  const std::string output = " -o " + kernels.path("none.json");
  check_refused("calibrate --architecture vulta " + table + output, {"--architecture", "vulta", "volta"});
  check_refused("calibrate --architecture hopper " + table + output, {"hopper", "no row of the tables"});
  for (const char* gpu : {"\"Tesla V100-SXM2-32GB\"", "v100_sxm2_32gb"})
    check_refused(std::string("calibrate --architecture volta --without ") + gpu + " " + table + output,
                  {"volta", "no row of the tables"});
  check_refused("calibrate --architecture volta --without t4 " + table + output, {"--without", "t4"});
  check_refused("calibrate --machine dgx1_v100 --without t4 " + table + output,
                {"--without", "--architecture"});
  check_refused("calibrate --architecture volta " + table + " --gpu-output " + kernels.path("none.json"),
                {"--gpu-output", "--architecture"});
  check_refused("calibrate --architecture volta --machine dgx1_v100 " + table + output,
                {"--architecture", "--machine"});
  const LogFolder logs;
  check_refused("calibrate --architecture volta " + logs.path("run.log") + output,
                {"--architecture", "tables of timed kernels"});
  check_refused("calibrate --architecture volta " + table + " -o " + table, {"--output", "gemm.csv"});
  check_refused("calibrate --architecture volta " + table, {"--output"});
  check_refused("calibrate " + table + output, {"--machine", "--architecture"});
  CHECK(text_of(kernels.path("none.json")).empty());
}

TEST_CASE("calibrate refuses kernel tables of other GPUs, with logs, and broken ones") {
  const KernelFolder kernels;
  const std::string output = "-o " + kernels.path("gpu.json");
  check_refused("calibrate --machine dgx_h100 " + kernels.path("gemm.csv") + " " + output,
                {"gemm.csv: found rows of Tesla V100-SXM2-32GB, l40s", "dgx_h100", "h100_sxm_80gb"});
  const LogFolder logs;
  check_refused(kernels.command(logs.path("run.log") + " " + output), {"gemm.csv", "run.log", "apart"});
  check_refused(kernels.command("--nodes 2 " + output), {"--nodes", "tables of kernels"});
  check_refused(kernels.command("-o " + kernels.path("gemm.csv")), {"--output", "gemm.csv"});
  kernels.write("gemm.csv", "gpu,precision,batch,m,n,k,direction,time_us\nv100,fp16,1,8,8,8,fwd,-1\n");
  check_refused(kernels.command(output), {"gemm.csv:2:23: time_us"});
  const Folder empty;
  check_refused("calibrate --machine dgx1_v100 " + empty.path() + " " + output, {"no tables of kernels"});
  CHECK(text_of(kernels.path("gpu.json")).empty());
}

TEST_CASE(
    "what belongs to one machine is refused where all parts are fitted, and so is an index of nothing") {
  const Folder folder;
  const std::string index =
      folder.write("index.json", R"({"schema": "lockstep.collective_tables/1", "tables": []})");
  const std::string command = "calibrate --parts " + index + " -o " + folder.path() + " ";
  testing::check_refused(command + "--machine dgx_h100 --profile x --nodes 2 --json",
                         {"--parts: ", "expected no --nodes, --machine, --profile, --json"});
  testing::check_refused("calibrate --parts " + index, {"--output: is required"});
  testing::check_refused(command, {"index"});
}

}  // namespace lockstep::calibrate_test
