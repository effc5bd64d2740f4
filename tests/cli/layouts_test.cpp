// lockstep layouts as a user runs it.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace lockstep::layouts_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::Folder;
using testing::run_program;

json small() {
  return {{"name", "small"},
          {"cluster", {{"machine", "dgx_a100_80gb"}, {"nodes", 1}}},
          {"model",
           {{"family", "transformer"},
            {"layers", 4},
            {"hidden", 1024},
            {"heads", 8},
            {"kv_heads", 8},
            {"ffn", 4096},
            {"vocabulary", 32000},
            {"sequence_length", 256},
            {"precision", "bf16"}}},
          {"training", {{"strategy", "ddp"}, {"micro_batch", 1}, {"global_batch", 8}}}};
}

TEST_CASE("the table tells each layout and what it loses, and the counts add up") {
  const Folder folder;
  const Answer answer = run_program("layouts " + folder.write("small.json", small().dump()) + " --top 3");
  REQUIRE(answer.exit_code == 0);
  check_says(answer.out, {"small: 8 GPUs (1 x dgx_a100_80gb), global batch 8", "against the best", "tokens/s",
                          "candidates:", "The best again: predict --set training.tensor_parallel="});
}

TEST_CASE("the document's layouts are accepted by predict as they are printed") {
  const Folder folder;
  const std::string file = folder.write("small.json", small().dump());
  const json answer = json::parse(run_program("layouts " + file + " --top 4 --json").out);
  CHECK(answer["schema"] == "lockstep.layouts/1");
  CHECK(answer["gpus"] == 8);
  REQUIRE(answer["layouts"].size() == 4);
  std::size_t counted = answer["simulated"];
  for (const auto& [reason, count] : answer["rejected"].items()) counted += count.get<std::size_t>();
  CHECK(answer["candidates"] == counted);
  for (const json& layout : answer["layouts"]) {
    std::string command = "predict " + file + " --json";
    for (const auto& [path, value] : layout["set"].items())
      command +=
          " --set '" + path + "=" + (value.is_string() ? value.get<std::string>() : value.dump()) + "'";
    const json predicted = json::parse(run_program(command).out);
    CHECK(predicted["iteration_time_s"] == layout["iteration_time_s"]);
    CHECK(predicted["memory_bytes"]["total"] == layout["memory_bytes"]);
    CHECK(predicted["tokens_per_s"] == layout["tokens_per_s"]);
    CHECK(predicted["mfu"] == layout["mfu"]);
  }
}

TEST_CASE("more GPUs are asked for in whole nodes, and train the same batch") {
  const Folder folder;
  json scenario = small();
  scenario["training"]["data_parallel"] = 8;  // of the file's own cluster
  const std::string file = folder.write("small.json", scenario.dump());
  const json answer = json::parse(run_program("layouts " + file + " --gpus 16 --top 1 --json").out);
  CHECK(answer["nodes"] == 2);
  CHECK(answer["global_batch"] == 8);
  CHECK(answer["layouts"][0]["set"]["cluster.nodes"] == 2);
  check_refused("layouts " + file + " --gpus 12", {"--gpus", "found 12", "multiple of the 8", "16"});
  check_refused("layouts " + file + " --gpus 3", {"--gpus", "found 3", "nearest: 8"});
  check_refused("layouts " + file + " --gpus 0", {"--gpus"});
  check_refused("layouts " + file + " --top 0", {"--top"});
}

// ResNet-50 as measured with its batch: what the file says is among the candidates, at the measured time.
TEST_CASE("the scenario's own micro-batch is tried, and a measured step is met by it") {
  const Folder folder;
  const std::string file = folder.write("resnet.json", testing::resnet_text);
  const json answer = json::parse(run_program("layouts " + file + " --top 500 --json").out);
  const json own = json::parse(run_program("predict " + file + " --json").out);
  bool is_told = false;
  for (const json& layout : answer["layouts"])
    is_told = is_told || layout["iteration_time_s"] == own["iteration_time_s"];
  CHECK(is_told);
}

TEST_CASE("where nothing fits the nearest is told, with exit code 3") {
  const Folder folder;
  json scenario = small();
  scenario["cluster"]["machine"] = {{"based_on", "dgx_a100_80gb"},
                                    {"gpu", {{"based_on", "a100_sxm_80gb"}, {"memory", "1 GiB"}}}};
  const std::string file = folder.write("small.json", scenario.dump());
  const Answer answer = run_program("layouts " + file + " --json");
  CHECK(answer.exit_code == 3);
  check_says(answer.diagnostics, {"none of", "the nearest needs", "more than there is", "recompute"});
  const json document = json::parse(answer.out);
  CHECK(document["layouts"].empty());
  CHECK(document["rejected"]["out_of_memory"] > 0);
  CHECK(document["nearest_that_does_not_fit"]["memory_bytes_lacking"] > 0);
}

TEST_CASE("a scenario that does not load is the user's mistake") {
  const Folder folder;
  json scenario = small();
  scenario["training"]["tensor_paralel"] = 8;
  check_refused("layouts " + folder.write("wrong.json", scenario.dump()),
                {"tensor_paralel", "tensor_parallel"});
}

}  // namespace lockstep::layouts_test
