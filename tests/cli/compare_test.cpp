// lockstep compare as a user runs it: what differs, what each difference costs, and that both are what predict says.

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace lockstep::compare_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::Folder;
using testing::resnet_text;
using testing::run_program;

json answer_of(const std::string& arguments) {
  const Answer answer = run_program(arguments + " --json");
  CAPTURE(arguments);
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  return json::parse(answer.out);
}

std::string set_option(const std::string& change) {
  return " --set '" + change + "'";
}

// Of a scenario file against what `predict --set` says of it; answers how many differences stood alone.
std::size_t check_costs(const std::string& file, const json& comparison) {
  std::string all;
  std::size_t alone = 0;
  double costs = 0;
  for (const json& difference : comparison["differences"]) {
    CAPTURE(difference.dump(2));
    const std::string change = set_option(difference["set"]);
    all += change;
    costs += difference["difference_s"].is_null() ? 0 : difference["difference_s"].get<double>();
    if (!difference["with"].empty() || difference["iteration_time_s"].is_null())
      continue;
    ++alone;
    const json predicted = answer_of("predict " + file + change);
    CHECK(predicted["iteration_time_s"] == difference["iteration_time_s"]);
  }
  CAPTURE(all);
  const json together = answer_of("predict " + file + all);
  CHECK(together["iteration_time_s"] == comparison["together"]["iteration_time_s"]);
  CHECK(together["iteration_time_s"] == comparison["b"]["iteration_time_s"]);
  CHECK(together["breakdown_s"] == comparison["b"]["breakdown_s"]);
  CHECK(together["memory_bytes"] == comparison["b"]["memory_bytes"]);
  CHECK(comparison["a"]["iteration_time_s"] == answer_of("predict " + file)["iteration_time_s"]);
  // Sums of doubles that stand for picoseconds.
  CHECK(costs + comparison["together"]["interaction_s"].get<double>() ==
        doctest::Approx(comparison["together"]["difference_s"].get<double>()).epsilon(1e-9));
  return alone;
}

TEST_CASE("each cost, and all together, is what predict --set says to the last digit") {
  const Folder folder;
  const std::string file = folder.write("a.json", resnet_text);
  const json comparison =
      answer_of("compare " + file +
                " --set cluster.nodes=4 --set training.bucket_cap_mb=1 --set cluster.machine.nics.count=2 "
                "--set training.optimizer=adam");
  CHECK(comparison["schema"] == "lockstep.compare/1");
  REQUIRE(comparison["differences"].size() == 4);
  CHECK(check_costs(file, comparison) == 4);
}

TEST_CASE("of two files the differences make the first into the second") {
  const std::string scenarios = LOCKSTEP_SOURCE_DIR "/scenarios/";
  const std::string first = scenarios + "resnet50_ddp_2x8_a100.json";
  for (const char* second : {"resnet50_ddp_dgx1_v100.json", "vgg16_ddp_compressed.json",
                             "fsdp_llama2_7b.json", "pipeline_four_stages.json"}) {
    CAPTURE(second);
    const json comparison = answer_of("compare " + first + " " + scenarios + second);
    CHECK(check_costs(first, comparison) > 0);
  }
}

TEST_CASE("differences are told largest first, with what is stated and what follows by itself") {
  const Folder folder;
  const std::string file = folder.write("a.json", resnet_text);
  const json comparison =
      answer_of("compare " + file + " --set cluster.nodes=8 --set training.find_unused_parameters=true");
  double before = 1e9;
  for (const json& difference : comparison["differences"]) {
    CHECK(std::abs(difference["difference_s"].get<double>()) <= before);
    before = std::abs(difference["difference_s"].get<double>());
    if (difference["path"] == "cluster.nodes") {
      CHECK(difference["a"] == json{{"value", 2}, {"origin", "given"}});
      CHECK(difference["b"] == json{{"value", 8}, {"origin", "given"}});
    } else {
      CHECK(difference["path"] == "training.find_unused_parameters");
      CHECK(difference["a"]["value"] == false);
      CHECK(difference["a"]["origin"].get<std::string>().starts_with("default"));
    }
  }
}

TEST_CASE("a value that both come to is no difference, though only one file states it") {
  const Folder folder;
  const json comparison = answer_of("compare " + folder.write("a.json", resnet_text) +
                                    " --set training.find_unused_parameters=false --set cluster.nodes=2");
  CHECK(comparison["differences"].empty());
  CHECK(comparison["together"]["difference_s"] == 0.0);
}

TEST_CASE("what is the same is said to be") {
  const Folder folder;
  const std::string file = folder.write("a.json", resnet_text);
  const Answer answer = run_program("compare " + file + " " + file);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"Nothing differs."});
}

TEST_CASE("a change that is impossible alone is tried with what it needs") {
  const Folder folder;
  json plain = json::parse(resnet_text);
  plain.erase("compute");
  const std::string file = folder.write("a.json", plain.dump());
  // ResNet-50 has no blocks to cut into stages, so a transformer is needed first.
  const json comparison = answer_of("compare " + file +
                                    " --set model.name=bert_large --set model.batch_per_gpu=null "
                                    "--set training.micro_batch=8 --set training.pipeline_parallel=2");
  check_costs(file, comparison);
  for (const json& difference : comparison["differences"]) {
    CAPTURE(difference.dump(2));
    const std::string path = difference["path"];
    if (path == "model.name")
      CHECK(difference["with"].empty());
    if (path == "training.pipeline_parallel")
      CHECK(difference["with"].size() == 3);
    const bool is_told_with_another = path == "training.micro_batch" || path == "model.batch_per_gpu";
    CHECK(difference["problem"].is_null() == (!is_told_with_another || !difference["with"].empty()));
  }
}

TEST_CASE("results are compared by the scenarios they hold, in the words of a scenario") {
  const Folder folder;
  const std::string file = folder.write("a.json", resnet_text);
  const std::string a = folder.write("a_result.json", run_program("predict " + file + " --json").out);
  const std::string b =
      folder.write("b_result.json", run_program("predict " + file + " --set cluster.nodes=4 --json").out);
  const json of_results = answer_of("compare " + a + " " + b);
  const json of_files = answer_of("compare " + file + " --set cluster.nodes=4");
  CHECK(of_results["differences"] == of_files["differences"]);
  CHECK(of_results["together"] == of_files["together"]);
  CHECK(of_results["warnings"] == of_files["warnings"]);
  CHECK(answer_of("compare " + file + " " + a)["differences"].empty());
}

TEST_CASE("a scenario and its own result differ in nothing, and with a change in that alone") {
  const Folder folder;
  for (const char* name : {"resnet50_ddp_dgx1_v100.json", "pipeline_four_stages.json", "mp_gpt2_xl.json",
                           "horovod_resnet101_25gbe.json", "ps_sync_resnet50_grpc.json"}) {
    CAPTURE(std::string(name));
    const std::string scenario = std::string(LOCKSTEP_SOURCE_DIR "/scenarios/") + name;
    const std::string same = folder.write("same.json", answer_of("predict " + scenario).dump());
    const json alike = answer_of("compare " + scenario + " " + same);
    CHECK(alike["differences"].empty());
    CHECK(alike["a"]["iteration_time_s"] == alike["b"]["iteration_time_s"]);
    const std::string change = set_option("training.optimizer=lamb");
    const std::string other = folder.write("other.json", answer_of("predict " + scenario + change).dump());
    const json changed = answer_of("compare " + scenario + " " + other);
    CHECK(changed["differences"] == answer_of("compare " + scenario + change)["differences"]);
  }
}

// The strategies that are compared are laid over the scenario's own, of which a result states every default.
TEST_CASE("a result whose scenario compares strategies is read back as that scenario") {
  const Folder folder;
  const std::string file = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/sync_against_async.json";
  const json result = answer_of("predict " + file);
  const json again = answer_of("predict " + folder.write("scenario.json", result["scenario"].dump()));
  CHECK(again["scenario"] == result["scenario"]);
  CHECK(again["comparison"] == result["comparison"]);
  const std::string told = folder.write("result.json", result.dump());
  const json comparison = answer_of("compare " + file + " " + told);
  CHECK(comparison["differences"].empty());
}

TEST_CASE("results of another version are refused, and those that no longer hold are told") {
  const Folder folder;
  json result = json::parse(run_program("predict " + folder.write("a.json", resnet_text) + " --json").out);
  const std::string a = folder.path() + "/a.json";
  json changed = result;
  changed["iteration_time_s"] = 1.5;
  CHECK(answer_of("compare " + a + " " + folder.write("old.json", changed.dump()))["warnings"].dump().find(
            "its result says 1.5 s") != std::string::npos);
  changed["schema"] = "lockstep.result/2";
  check_refused("compare " + a + " " + folder.write("next.json", changed.dump()),
                {"/schema: found \"lockstep.result/2\"", "lockstep.result/1"});
  result.erase("scenario");
  check_refused("compare " + a + " " + folder.write("bare.json", result.dump()),
                {"found a result without its \"scenario\""});
  check_refused("compare " + a, {"--set PATH=VALUE"});
}

TEST_CASE("a measured step that both state alike belongs to each one's own batch") {
  const Folder folder;
  json other = json::parse(resnet_text);
  other["model"]["batch_per_gpu"] = 128;
  const json comparison = answer_of("compare " + folder.write("a.json", resnet_text) + " " +
                                    folder.write("b.json", other.dump()));
  REQUIRE(comparison["differences"].size() == 2);
  CHECK(check_costs(folder.path() + "/a.json", comparison) == 1);
  for (const json& difference : comparison["differences"])
    if (difference["path"] == "compute.single_gpu_iteration") {
      CHECK(difference["a"]["value"]["batch_per_gpu"] == 256);
      CHECK(difference["b"]["value"] == "103.6 ms");
      CHECK(difference["with"] == json::array({"model.batch_per_gpu"}));
    }
}

TEST_CASE("the same bytes on any number of threads") {
  const Folder folder;
  const std::string arguments = "compare " + folder.write("a.json", resnet_text) +
                                " --set cluster.nodes=4 --set training.bucket_cap_mb=1";
  CHECK(run_program(arguments + " --jobs 1").out == run_program(arguments + " --jobs 3").out);
}

}  // namespace lockstep::compare_test
