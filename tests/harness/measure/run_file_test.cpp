#include "validate/harness/measure/run_file.h"

#include <doctest/doctest.h>

#include <limits>

namespace lockstep::harness::run_file_test {

RunFile small_run() {
  RunFile run;
  run.name = "small";
  run.date = "2026-11-21";
  run.programs.backend = "cpu";
  run.ranks = 2;
  run.nodes = 2;
  run.network = {.kind = "shaped", .link_bits_per_second = 200'000'000, .mtu_bytes = 9000};
  run.model.name = "mlp";
  run.model.sizes = {{"hidden", 8}};
  run.parameters = {{.name = "0.weight", .elements = 64}};
  run.step = StepTiming{.step = {.iteration = summarise({1, 2, 3})},
                        .gradient_ready = {0.25},
                        .layers = {{.name = "0", .parameters = {0}, .forward = 0.1, .backward = 0.2}}};
  run.curve = {{.bytes = 1024, .time = {.from_idle = summarise({1e-3})}}};
  run.iterations = {{.bucket_cap_mb = 25,
                     .first_iteration = 0.5,
                     .buckets = {{.bytes = 256, .parameters = {0}, .ready = 0.1, .start = 0.2, .end = 0.3}}}};
  return run;
}

TEST_CASE("the file has every key its reader needs, in the reader's units") {
  const nlohmann::ordered_json json = to_json(small_run());
  CHECK(json["schema"] == "lockstep.run/1");
  for (const char* key :
       {"name", "date", "harness", "machine", "ranks", "nodes", "network", "model", "without_communication",
        "collective_curve", "bucket_copies", "interference", "matmuls", "memory_copies", "iterations"})
    CHECK_MESSAGE(json.contains(key), key);
  CHECK(json["model"]["parameters"][0]["gradient_ready_s"] == 0.25);
  CHECK(json["model"]["sizes"]["hidden"] == 8);
  CHECK(json["without_communication"]["iteration_s"]["median"] == 2);
  CHECK(json["without_communication"]["layers"][0]["backward_s"] == 0.2);
  CHECK(json["collective_curve"][0]["time_s"]["median"] == 1e-3);
  CHECK(json["iterations"][0]["buckets"][0]["parameters"][0] == 0);
  CHECK(json["iterations"][0]["compression"] == "none");
  CHECK(json["iterations"][0]["overlap"] == true);
}

TEST_CASE("what was not measured or cannot be known is null or an empty list") {
  RunFile run = small_run();
  run.step.reset();
  run.network = {.kind = "loopback"};
  const nlohmann::ordered_json json = to_json(run);
  CHECK(json["without_communication"].is_null());
  CHECK(json["model"]["parameters"][0]["gradient_ready_s"].is_null());
  CHECK(json["network"]["goodput_byte_s"].is_null());
  CHECK(json["machine"]["clock_mhz"]["before"].is_null());
  CHECK(json["machine"]["gpu"].is_null());
  CHECK(json["interference"].empty());
  CHECK(json["interference"].is_array());
}

TEST_CASE(
    "the time that counts is that among others where a device works behind its host, and both are told") {
  RunFile run = small_run();
  run.curve = {{.bytes = 1024, .time = {.from_idle = summarise({3e-3}), .back_to_back = summarise({1e-3})}}};
  run.matmuls = {{.size = 64, .precision = "fp32", .time = run.curve[0].time}};
  run.memory_copies = {{.bytes = 64, .time = {.from_idle = summarise({2e-3})}}};
  const nlohmann::ordered_json json = to_json(run);
  CHECK(json["collective_curve"][0]["time_s"]["median"] == 1e-3);
  CHECK(json["collective_curve"][0]["from_idle_s"]["median"] == 3e-3);
  CHECK(json["collective_curve"][0]["back_to_back_s"]["median"] == 1e-3);
  CHECK(json["matmuls"][0]["time_s"] == 1e-3);
  CHECK(json["matmuls"][0]["from_idle_s"] == 3e-3);
  CHECK(json["memory_copies"][0]["time_s"] == 2e-3);
  CHECK(json["memory_copies"][0]["back_to_back_s"].is_null());
}

TEST_CASE(
    "losses stand beside the time at which each iteration had ended, and one that is no number is null") {
  RunFile run = small_run();
  run.losses = LossCurve{.bucket_cap_mb = 5,
                         .samples_of_iteration = 16,
                         .loss = {2.5, std::numeric_limits<double>::infinity()},
                         .end = {0.25, 0.5}};
  const nlohmann::ordered_json json = to_json(run);
  CHECK(json["losses"]["bucket_cap_mb"] == 5);
  CHECK(json["losses"]["samples_of_iteration"] == 16);
  CHECK(json["losses"]["loss"][0] == 2.5);
  CHECK(json["losses"]["loss"][1].is_null());
  CHECK(json["losses"]["end_s"][1] == 0.5);
  CHECK_FALSE(to_json(small_run()).contains("losses"));
}

TEST_CASE("what failed is told with its reason, in the file and in the table") {
  RunFile run = small_run();
  run.failures = {{.measurement = "interference", .bytes = 1024, .reason = "it stood still"}};
  const nlohmann::ordered_json json = to_json(run);
  CHECK(json["failed"][0]["measurement"] == "interference");
  CHECK(json["failed"][0]["bytes"] == 1024);
  CHECK(json["failed"][0]["reason"] == "it stood still");
  CHECK(to_table(run).find("it stood still") != std::string::npos);
}

TEST_CASE("the file tells that ranks shared a GPU, and what NCCL was told") {
  RunFile run = small_run();
  CHECK(to_json(run)["machine"]["gpus_shared"] == false);
  run.gpus_shared = true;
  run.machine.environment = {{"NCCL_ALGO", "Ring"}};
  CHECK(to_json(run)["machine"]["gpus_shared"] == true);
  CHECK(to_json(run)["machine"]["environment"]["NCCL_ALGO"] == "Ring");
}

TEST_CASE("a shaped link carries its rate less the headers of IP, TCP with timestamps, and Ethernet") {
  // 25e6 byte/s * (9000 - 52) / (9000 + 14) = 24816951.4.
  CHECK(goodput({.kind = "shaped", .link_bits_per_second = 200'000'000, .mtu_bytes = 9000}) == 24'816'951);
  CHECK_FALSE(goodput({.kind = "shaped", .link_bits_per_second = 200'000'000}).has_value());
}

TEST_CASE("the file lists the kernels that ranks agreed on where there was a choice") {
  RunFile run = small_run();
  CHECK_FALSE(to_json(run).contains("kernel_choices"));
  run.kernel_choices = R"([{"algorithm": "CUDNN_CONVOLUTION_FWD_ALGO_DIRECT"}])";
  CHECK(to_json(run)["kernel_choices"][0]["algorithm"] == "CUDNN_CONVOLUTION_FWD_ALGO_DIRECT");
}

TEST_CASE("the table names the run and its iterations") {
  const std::string table = to_table(small_run());
  CHECK(table.find("small") == 0);
  CHECK(table.find("iteration, cap 25 MB") != table.npos);
}

}  // namespace lockstep::harness::run_file_test
