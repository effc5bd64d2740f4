// lockstep schema: every shipped file is valid by the schema of its kind, and one with a misspelt key is not.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/json_schema_check.h"
#include "tests/support/program.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::schema_test {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::run_program;
using testing::SchemaCheck;

json schema_of(const std::string& kind) {
  const Answer answer = run_program("schema " + kind);
  CAPTURE(kind);
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  return json::parse(answer.out);
}

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

TEST_CASE("every shipped scenario is valid, as it stands and with every default written out") {
  const json schema = schema_of("scenario");
  check_files(shipped_scenarios(), schema);
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
  check_files(files_in("hw_profiles/machines"), schema_of("machine"));
  check_files(files_in("hw_profiles/gpus"), schema_of("gpu"));
  check_files(files_in("hw_profiles/calibration"), schema_of("calibration"));
  check_files(files_in("models"), schema_of("model"));
}

TEST_CASE("every shipped file of measurements is valid") {
  std::vector<std::string> files;
  for (const std::string& file : files_in("validate/measurements"))
    if (const json document = document_of(file); document.value("schema", "") == "lockstep.measurements/1")
      files.push_back(file);
  check_files(files, schema_of("measurements"));
}

TEST_CASE("a schema tells kinds, units, bounds and names as the readers do") {
  const json cluster = schema_of("scenario")["properties"]["cluster"]["properties"];
  CHECK(cluster["nodes"]["type"] == json::array({"integer", "null"}));
  CHECK(cluster["nodes"]["minimum"] == 1);
  const json scenario = schema_of("scenario");
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

TEST_CASE("a kind that has no schema is a mistake with its neighbours") {
  check_refused("schema scenarios", {"did you mean \"scenario\""});
}

}  // namespace lockstep::schema_test
