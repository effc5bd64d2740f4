// lockstep schema: every shipped file and every result is valid by the schema of its kind, and one with a misspelt
// key is not.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/golden_file.h"
#include "tests/support/json_schema_check.h"
#include "tests/support/program.h"
#include "tests/support/shipped_scenarios.h"
#include "tests/support/shipped_schema.h"

namespace lockstep::schema_test {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::run_program;
using testing::SchemaCheck;
using testing::shipped_schema;

json document_of(const std::string& file) {
  return json::parse(testing::text_of(file), nullptr, true, true);
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(fs::path(LOCKSTEP_SOURCE_DIR) / folder))
    if (file.path().extension() == ".json")
      files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_valid(const json& document, const json& schema) {
  return SchemaCheck().problems_of(document, schema).empty();
}

void check_valid(const json& document, const json& schema) {
  const std::vector<std::string> problems = SchemaCheck().problems_of(document, schema);
  CHECK_MESSAGE(problems.empty(), problems.size(),
                " problems, the first: ", problems.empty() ? "" : problems.front());
}

// Each key of the document's own, one at a time; and each one level below where the schema knows all keys there.
void check_misspelt_keys(const json& document, const json& schema) {
  for (const auto& [key, value] : document.items()) {
    CAPTURE(key);
    json misspelt = document;
    misspelt.erase(key);
    misspelt[key + "s_"] = value;
    CHECK_FALSE(is_valid(misspelt, schema));
    const json below = schema["properties"].value(key, json::object());
    if (!value.is_object() || below.value("additionalProperties", json()) != false)
      continue;
    json deeper = document;
    deeper[key]["no_such_key"] = 1;
    CHECK_FALSE(is_valid(deeper, schema));
  }
}

void check_files(const std::vector<std::string>& files, const json& schema) {
  REQUIRE_FALSE(files.empty());
  for (const std::string& file : files) {
    CAPTURE(file);
    const json document = document_of(file);
    check_valid(document, schema);
    check_misspelt_keys(document, schema);
  }
}

// Editors look where the file says.
void check_names_schema(const std::string& file, const json& document, const std::string& kind) {
  const std::string named = document.value("$schema", "");
  CHECK((fs::path(file).parent_path() / named).lexically_normal() == testing::file_of_schema(kind));
}

// Every file of the kind.
void check_kind(const std::string& kind, const std::vector<std::string>& files) {
  check_files(files, shipped_schema(kind));
  for (const std::string& file : files) {
    CAPTURE(file);
    check_names_schema(file, document_of(file), kind);
  }
}

TEST_CASE("every shipped scenario is valid, as it stands and with every default written out") {
  const json schema = shipped_schema("scenario");
  check_kind("scenario", shipped_scenarios());
  check_kind("scenario", files_in("scenarios/large"));
  for (const char* section : {"cluster", "training", "communication", "compute", "simulation"}) {
    CAPTURE(section);
    CHECK(schema["properties"][section]["additionalProperties"] == false);
  }
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    check_valid(json::parse(run_program("explain " + file + " --yes --json").out)["scenario"], schema);
  }
}

TEST_CASE("every shipped profile is valid by the schema of its kind") {
  check_kind("machine", files_in("hw_profiles/machines"));
  check_kind("gpu", files_in("hw_profiles/gpus"));
  check_kind("calibration", files_in("hw_profiles/calibration"));
  check_kind("model", files_in("models"));
}

TEST_CASE("every shipped file of measurements is valid") {
  std::vector<std::string> files;
  for (const char* folder : {"validate/measurements", "validate/layouts"})
    for (const std::string& file : files_in(folder))
      if (const json document = document_of(file); document.value("schema", "") == "lockstep.measurements/1")
        files.push_back(file);
  check_kind("measurements", files);
}

json result_of(const std::string& arguments) {
  const Answer answer = run_program("predict --yes --json " + arguments);
  CAPTURE(arguments);
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  return json::parse(answer.out);
}

// "/goodput/lost_s/rework": every key, those of all elements of an array at one place.
void collect_keys(const json& value, const std::string& place, std::set<std::string>& keys) {
  for (const auto& [key, member] : value.items()) {
    const std::string there = value.is_array() ? place : place + "/" + key;
    if (value.is_object())
      keys.insert(there);
    if (member.is_structured() && there != "/scenario")
      collect_keys(member, there, keys);
  }
}

void collect_schema_keys(const json& schema, const std::string& place, std::set<std::string>& keys) {
  if (schema.contains("items"))
    collect_schema_keys(schema["items"], place, keys);
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, below] : properties.items()) {
    keys.insert(place + "/" + key);
    if (place + "/" + key != "/scenario")
      collect_schema_keys(below, place + "/" + key, keys);
  }
}

// What no shipped scenario has: a machine that is changed, a step that does not fit, a collective that nobody waits
// for to its end, and an epoch.
std::vector<std::string> results_of_rare_keys() {
  const std::string folder = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/";
  return {folder + "resnet50_ddp_2x8_a100.json --set cluster.machine.nics.count=4",
          folder + "bert_large_ddp_straggler.json --set model.batch_per_gpu=256",
          folder + "ddp_jitter_64_gpus.json --set communication.timeout='\"1 us\"'",
          folder + "input_bound_resnet50.json --set input.dataset_samples=100000"};
}

TEST_CASE("every result is valid, and the schema has no key that no result has") {
  const json schema = shipped_schema("result");
  std::vector<std::string> predicted = shipped_scenarios();
  for (const std::string& arguments : results_of_rare_keys()) predicted.push_back(arguments);
  std::set<std::string> found;
  for (const std::string& arguments : predicted) {
    CAPTURE(arguments);
    const json result = result_of(arguments);
    check_valid(result, schema);
    collect_keys(result, "", found);
  }
  std::set<std::string> stated;
  collect_schema_keys(schema, "", stated);
  for (const std::string& key : stated) CHECK_MESSAGE(found.contains(key), key);
}

TEST_CASE("a result that lacks a key, has another, or another kind of value is not valid") {
  const json schema = shipped_schema("result");
  const json result = result_of(shipped_scenarios().front());
  check_misspelt_keys(result, schema);
  json changed = result;
  changed["iteration_time_s"] = "0.1 s";
  CHECK_FALSE(is_valid(changed, schema));
  changed = result;
  changed["schema"] = "lockstep.result/2";
  CHECK_FALSE(is_valid(changed, schema));
  changed = result;
  changed["scenario"]["cluster"]["node"] = 2;
  CHECK_FALSE(is_valid(changed, schema));
}

TEST_CASE("every shipped request is valid, down to what it has of a scenario") {
  const json schema = shipped_schema("request");
  check_kind("request", files_in("scenarios/plans"));
  const json request = document_of(files_in("scenarios/plans").front());
  const auto is_valid_with = [&](const char* pointer, const json& value) {
    json changed = request;
    changed[json::json_pointer(pointer)] = value;
    return is_valid(changed, schema);
  };
  CHECK(is_valid_with("/candidates/0/nodes", "1:64:x2"));
  CHECK(is_valid_with("/candidates/0/nodes", 4));
  CHECK_FALSE(is_valid_with("/candidates/0/nodes", true));
  CHECK_FALSE(is_valid_with("/candidates/0/price", 3));
  CHECK_FALSE(is_valid_with("/training/optimiser", "adamw"));
  CHECK_FALSE(is_valid_with("/goal/minimize", "energy"));
}

TEST_CASE("a schema tells kinds, units, bounds and names as the readers do") {
  const json cluster = shipped_schema("scenario")["properties"]["cluster"]["properties"];
  CHECK(cluster["nodes"]["type"] == json::array({"integer", "null"}));
  CHECK(cluster["nodes"]["minimum"] == 1);
  const json scenario = shipped_schema("scenario");
  CHECK(is_valid(json::parse(R"({"cluster": {"machine": {"based_on": "dgx_h100", "nics": {"count": 4}}},
                                "model": {"name": "resnet50", "batch_per_gpu": 8}})"),
                 scenario));
  CHECK_FALSE(
      is_valid(json::parse(R"({"cluster": {"machine": "dgx_h100", "nodes": "2"}, "model": {"name": "a"}})"),
               scenario));
  CHECK_FALSE(is_valid(json::parse(R"({"cluster": {"machine": "dgx_h100"}})"), scenario));
  CHECK_FALSE(is_valid(json::parse(R"({"cluster": {"machine": "dgx_h100"}, "model": {"name": "a"},
                                      "training": {"optimizer": "adamx"}})"),
                       scenario));
}

TEST_CASE("a schema knows what is asked only beside other keys, or otherwise by each family of models") {
  const json schema = shipped_schema("scenario");
  const auto is_valid_with = [&](const char* model, const char* training) {
    const json document{{"cluster", {{"machine", "dgx_h100"}}},
                        {"model", json::parse(model)},
                        {"training", json::parse(training)}};
    return is_valid(document, schema);
  };
  const char* named = R"({"name": "llama2_7b"})";
  CHECK(is_valid_with(named, R"({"pipeline_parallel": 2, "stage_layers": [15, 17]})"));
  CHECK(is_valid_with(named, R"({"pipeline_parallel": 2, "stage_layers": "balanced_time"})"));
  CHECK_FALSE(is_valid_with(named, R"({"pipeline_parallel": 2, "batch_p2p_sync": 1})"));
  CHECK_FALSE(is_valid_with(named, R"({"strategy": "dpp"})"));
  CHECK(is_valid_with(R"({"family": "resnet", "image_size": 32})", "{}"));
  CHECK(is_valid_with(
      R"({"family": "transformer", "experts": 2, "shared_experts": 1, "shared_expert_gate": true})", "{}"));
}

TEST_CASE("scenarios/schemas holds every schema as it is printed") {
  for (const char* kind :
       {"scenario", "result", "request", "machine", "gpu", "model", "calibration", "measurements"}) {
    CAPTURE(kind);
    const Answer answer = run_program(std::string("schema ") + kind);
    CHECK(answer.exit_code == 0);
    testing::check_golden_file(testing::file_of_schema(kind), answer.out);
  }
}

TEST_CASE("a file may say where its schema is, in text") {
  const testing::Folder folder;
  const auto with_schema = [&](const char* value) {
    return folder.write("mine.json",
                        std::string(R"({"$schema": )") + value + R"(, "cluster": {"machine": "dgx_h100"},
                                      "model": {"name": "resnet50", "batch_per_gpu": 8}})");
  };
  CHECK(run_program("predict " + with_schema(R"("anywhere.json")")).exit_code == 0);
  check_refused("predict " + with_schema("5"), {"mine.json", "/$schema", "found 5", "expected text"});
}

TEST_CASE("a schema is taken for none of the files that it describes") {
  const std::string schema = testing::file_of_schema("scenario");
  check_refused("predict " + schema, {"scenario.schema.json: found a JSON Schema"});
  check_refused("predict " + std::string(LOCKSTEP_SOURCE_DIR) +
                    "/scenarios/single_gpu_resnet50.json --set cluster.machine=" + schema,
                {"scenario.schema.json: found a JSON Schema"});
}

TEST_CASE("a kind that has no schema is a mistake with its neighbours") {
  check_refused("schema scenarios", {"did you mean \"scenario\""});
}

}  // namespace lockstep::schema_test
