// The reader of harness runs: what it takes from a file, and each thing it refuses, with its place.

#include "sim/study/harness/harness_run.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"
#include "tests/support/harness_run_file.h"

namespace lockstep::harness_run_test {

using nlohmann::json;
using testing::Folder;
using testing::harness_run;

HarnessRun read(const json& run) {
  const Folder folder;
  return read_harness_run(folder.write("run.json", run.dump()));
}

std::string problems_of(const json& run) {
  try {
    read(run);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST_CASE("a run is read with all its parts") {
  json file = harness_run();
  file["matmuls"] = {{{"rows", 2}, {"columns", 3}, {"inner", 5}, {"precision", "fp32"}, {"time_s", 1e-6}}};
  const HarnessRun run = read(file);
  CHECK(run.ranks == 2);
  CHECK(run.goodput == Bandwidth{100'000'000});
  CHECK(run.model.parameters.at(0).elements == 1'000'000);
  CHECK(run.alone->backward.median == 0.020);
  CHECK(run.layers.at(0).parameters == std::vector<std::uint32_t>{0});
  CHECK(run.curve.size() == 8);  // 4^5 to 4^12
  CHECK(run.iterations.at(0).iteration.p90 == doctest::Approx(1.02 * 0.080));
  CHECK(run.matmuls.at(0).flops() == 2 * 2 * 3 * 5);
  // Two ranks send 2 (2 - 1) / 2 of the buffer each.
  CHECK(run.sent_bytes(Bytes{1000}) == 1000);
  CHECK(run.ring_steps() == 2);
}

TEST_CASE("what a harness could not find out is null, and stays unknown") {
  json file = harness_run();
  file["network"] = {{"kind", "loopback"}, {"goodput_byte_s", nullptr}};
  file["without_communication"] = nullptr;
  file["model"]["parameters"][0]["gradient_ready_s"] = nullptr;
  const HarnessRun run = read(file);
  CHECK_FALSE(run.goodput);
  CHECK_FALSE(run.alone);
}

TEST_CASE("a run says which library reduced it, on whose GPUs, and what failed") {
  json file = harness_run();
  CHECK(read(file).library == RunLibrary::gloo);
  file["harness"]["backend"] = "cuda";
  file["harness"]["communication"] = "NCCL 2.28.9";
  file["machine"]["gpus_shared"] = true;
  file["kernel_choices"] = json::array();
  file["failed"] = {{{"measurement", "interference"}, {"bytes", 1 << 20}, {"reason", "too short"}},
                    {{"measurement", "copies"}, {"bytes", 0}, {"reason", "no second queue"}}};
  file["copy_interference"] = {{"bytes", 1 << 28},        {"copy_alone_s", 1e-3},     {"copy_beside_s", 2e-3},
                               {"compute_alone_s", 5e-3}, {"compute_beside_s", 6e-3}, {"covered", 1.0}};
  const HarnessRun run = read(file);
  CHECK(run.library == RunLibrary::nccl);
  CHECK(run.library_version == "2.28.9");
  CHECK(run.gpus_shared);
  CHECK(run.copy_interference->compute_beside_s == 6e-3);
  CHECK(describe_failures(run) ==
        std::vector<std::string>{"interference of 1.0 MiB failed and is left out: too short",
                                 "copies failed and is left out: no second queue"});
  file["harness"].erase("communication");
  CHECK(read(file).library == RunLibrary::nccl);
  file["harness"]["communication"] = "none";
  CHECK(read(file).library == RunLibrary::none);
  file["harness"]["communication"] = "MPI 4";
  CHECK(problems_of(file).find("/harness: found the communication \"MPI 4\"") != std::string::npos);
}

TEST_CASE("how a call was timed stands beside the time that counts") {
  json file = harness_run();
  json& point = file["collective_curve"][0];
  point["from_idle_s"] = testing::statistics(1.0);
  point["back_to_back_s"] = point["time_s"];
  CHECK(read(file).curve.at(0).time.median == point["time_s"]["median"]);
}

TEST_CASE("every key that is needed is missed by name and place") {
  for (const char* pointer : {"/schema",
                              "/name",
                              "/harness",
                              "/harness/backend",
                              "/machine",
                              "/ranks",
                              "/nodes",
                              "/network",
                              "/network/kind",
                              "/model",
                              "/model/name",
                              "/model/batch_per_rank",
                              "/model/precision",
                              "/model/optimizer",
                              "/model/parameters",
                              "/model/parameters/0/name",
                              "/model/parameters/0/elements",
                              "/model/parameters/0/gradient_ready_s",
                              "/without_communication",
                              "/without_communication/iteration_s",
                              "/without_communication/iteration_s/median",
                              "/without_communication/forward_s",
                              "/without_communication/backward_s",
                              "/without_communication/optimizer_s",
                              "/without_communication/layers",
                              "/without_communication/layers/0/forward_s",
                              "/without_communication/layers/0/backward_s",
                              "/collective_curve",
                              "/collective_curve/0/bytes",
                              "/collective_curve/0/time_s",
                              "/bucket_copies",
                              "/bucket_copies/0/tensors",
                              "/bucket_copies/0/bytes",
                              "/interference",
                              "/interference/0/compute_beside_s",
                              "/interference/0/collectives",
                              "/matmuls",
                              "/memory_copies",
                              "/iterations",
                              "/iterations/0/bucket_cap_mb",
                              "/iterations/0/overlap",
                              "/iterations/0/gradient_accumulation",
                              "/iterations/0/compression",
                              "/iterations/0/iteration_s"}) {
    const json::json_pointer place(pointer);
    json file = harness_run();
    file[place.parent_pointer()].erase(file[place.parent_pointer()].find(place.back()));
    const std::string found = problems_of(file);
    CAPTURE(pointer);
    CAPTURE(found);
    CHECK(found.find("run.json: " + place.parent_pointer().to_string()) != std::string::npos);
    CHECK(found.find(place.back()) != std::string::npos);
  }
}

TEST_CASE("values out of their range are refused where they stand") {
  struct Wrong {
    const char* pointer;
    json value;
  };
  for (const auto& [pointer, value] :
       {Wrong{"/schema", "lockstep.run/2"}, Wrong{"/harness/backend", "tpu"}, Wrong{"/ranks", 0},
        Wrong{"/nodes", 1.5}, Wrong{"/network/kind", "carrier pigeon"}, Wrong{"/network/goodput_byte_s", -1},
        Wrong{"/model/parameters", json::array()}, Wrong{"/model/parameters/0/elements", 0},
        Wrong{"/without_communication/iteration_s/median", -1},
        Wrong{"/without_communication/layers/0/parameters/0", 1}, Wrong{"/collective_curve/1/bytes", 1024},
        Wrong{"/bucket_copies/0/time_s/median", "soon"}, Wrong{"/interference/0/collective_alone_s", 0},
        Wrong{"/iterations/0/gradient_accumulation", 0}, Wrong{"/iterations/0/iteration_s/p10", 1},
        Wrong{"/iterations/0/bucket_cap_mb", -25}}) {
    json file = harness_run();
    const json::json_pointer place(pointer);
    file[place] = value;
    const std::string found = problems_of(file);
    CAPTURE(pointer);
    CAPTURE(found);
    // Of a pair or a list it may be the whole that is wrong.
    const bool is_placed = found.find(place.to_string()) != std::string::npos ||
                           found.find(place.parent_pointer().to_string() + ":") != std::string::npos;
    CHECK(is_placed);
  }
}

TEST_CASE("an unknown key is a mistake, with the nearest that is known") {
  json file = harness_run();
  file["iteration"] = 1;
  CHECK(problems_of(file).find("did you mean \"iterations\"") != std::string::npos);
}

TEST_CASE("ranks are spread evenly over nodes") {
  json file = harness_run();
  file["ranks"] = 3;
  CHECK(problems_of(file).find("3 ranks on 2 nodes") != std::string::npos);
}

TEST_CASE("only files of the schema are runs") {
  const Folder folder;
  CHECK(is_harness_run(folder.write("run.json", harness_run().dump())));
  CHECK_FALSE(is_harness_run(folder.write("other.json", R"({"schema": "lockstep.measurements/1"})")));
  CHECK_FALSE(is_harness_run(folder.write("list.json", "[]")));
}

}  // namespace lockstep::harness_run_test
