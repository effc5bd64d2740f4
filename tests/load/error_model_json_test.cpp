#include "sim/load/error_model_json.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "sim/base/error.h"
#include "tests/support/scenarios.h"

namespace lockstep::error_model_json_test {

namespace fs = std::filesystem;

// A data folder that holds one error file.
class DataFolder {
 public:
  DataFolder(const std::string& name, const nlohmann::ordered_json& profile)
      : folder_(fs::temp_directory_path() / ("lockstep_errors_" + name)) {
    fs::create_directories(folder_ / "hw_profiles/errors");
    std::ofstream(folder_ / "hw_profiles/errors" / (name + ".json")) << profile.dump();
  }
  ~DataFolder() { fs::remove_all(folder_); }

  std::string path() const { return folder_.string(); }

 private:
  fs::path folder_;
};

ErrorModel all_different() {
  ErrorModel errors;
  errors.name = "mine";
  errors.measured = {Ratio::percent(-1), Ratio::percent(2)};
  errors.in_node = {Ratio::percent(-3), Ratio::percent(4)};
  errors.between_nodes = {Ratio::percent(-5), Ratio::percent(6)};
  errors.transferred = {Ratio::percent(-7), Ratio::percent(8)};
  errors.unanchored = {{"convolutions fp32", {Ratio::percent(-9), Ratio::percent(10)}},
                       {"products tf32", {Ratio{}, Ratio::percent(50)}}};
  errors.host = {Ratio::percent(-15), Ratio::percent(16)};
  errors.communication = {{Ratio::percent(-11), Ratio::percent(12), Bytes{0}},
                          {Ratio::percent(-13), Ratio::percent(14), Bytes{mebi}}};
  errors.factor = Ratio::parts_per_million(1'234'500);
  return errors;
}

TEST_CASE("An error model that is written reads back as the same") {
  const DataFolder folder("steps", write_error_model(all_different()));
  CHECK(find_error_model(ProfileStore(std::vector<std::string>{folder.path()})) == all_different());
}

TEST_CASE("Models that were made without a group read back as the same") {
  std::map<std::string, ErrorModel> models{{"one, of 3 GPUs", all_different()}, {"another", all_different()}};
  models["another"].factor = Ratio::percent(90);
  const DataFolder folder("steps_left_out", write_left_out_models(models));
  CHECK(find_left_out_models(ProfileStore(std::vector<std::string>{folder.path()})) == models);
}

TEST_CASE("Where no file says how far predictions miss there is no model") {
  const DataFolder folder("another", nlohmann::ordered_json::object());
  CHECK_FALSE(find_error_model(ProfileStore(std::vector<std::string>{folder.path()})).has_value());
  CHECK(find_left_out_models(ProfileStore(std::vector<std::string>{folder.path()})).empty());
}

TEST_CASE("A range that does not hold zero is refused where it stands") {
  nlohmann::ordered_json profile = write_error_model(all_different());
  profile["in_node"]["low"] = 0.1;
  const DataFolder folder("steps", profile);
  try {
    find_error_model(ProfileStore(std::vector<std::string>{folder.path()}));
    FAIL("was read");
  } catch (const ConfigError& error) {
    REQUIRE(error.problems.size() == 1);
    CHECK(error.problems.front().find("steps.json: /in_node/low: ") != std::string::npos);
  }
}

TEST_CASE("What is shipped is read with every scenario, and was made with each of its groups left out too") {
  REQUIRE(find_error_model(shipped_profiles()).has_value());
  CHECK(cluster_scenario("dgx_a100_40gb", 1).errors == find_error_model(shipped_profiles()));
  CHECK(find_left_out_models(shipped_profiles()).contains("DLPerf OneFlow BERT-base"));
}

}  // namespace lockstep::error_model_json_test
