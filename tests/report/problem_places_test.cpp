// What shows only while a scenario is simulated is still said of its file.

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/report/prediction.h"
#include "sim/report/report.h"
#include "tests/scenario/lab.h"
#include "tests/support/program.h"

namespace lockstep::problem_places_test {

std::string problem_of(const Overrides& overrides) {
  try {
    predict(testing::load_resnet(overrides));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

Overrides faults(const std::string& mtbf, const std::string& interval) {
  return {{"cluster.faults", R"({"mtbf_per_node": ")" + mtbf +
                                 R"(", "restart": "1 s", "checkpoint_interval": ")" + interval +
                                 R"(", "checkpoint_bandwidth": "10 GB/s"})"}};
}

// An iteration takes 0.11 s, a checkpoint of ResNet-50 and SGD 0.02 s.
TEST_CASE("a run that gets nowhere is refused by its file") {
  CHECK(problem_of(faults("1 s", "1 s")).starts_with("scenario: /cluster/faults"));
  CHECK(problem_of(faults("1 year", "50 ms")).starts_with("scenario: /cluster/faults/checkpoint_interval"));
}

TEST_CASE("an anchor that cannot be met is refused by its file") {
  const Overrides overrides{{"compute", R"({"anchor": {"set": {}, "iteration_time": "1 us"}})"}};
  CHECK(problem_of(overrides).starts_with("scenario: /compute/anchor/iteration_time: found 1.000 us"));
}

TEST_CASE("what the network finds wrong is said of the scenario's file, once") {
  Scenario scenario = testing::load_lab();
  scenario.file_name = "/folder/s.json";
  const auto fail = [] { throw ConfigError("/cluster: is too narrow"); };
  CHECK_THROWS_WITH_AS(with_file(scenario, fail), "/folder/s.json: /cluster: is too narrow", ConfigError);
  const auto fail_within = [&] { with_file(scenario, fail); };
  CHECK_THROWS_WITH_AS(with_file(scenario, fail_within), "/folder/s.json: /cluster: is too narrow", ConfigError);
}

// The rooms below the readers know a scenario and no file: in_file names it, and with_file for the network, which
// knows no scenario either.
TEST_CASE("every problem that is found after loading is given its file") {
  const std::filesystem::path sources = LOCKSTEP_SOURCE_DIR "/sim";
  for (const char* folder : {"report", "engine", "training", "collectives", "compute", "plan"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(sources / folder)) {
      if (!entry.is_regular_file())
        continue;
      const std::string text = testing::text_of(entry.path().string());
      CAPTURE(entry.path().string());
      for (std::size_t at = text.find("throw ConfigError("); at != text.npos;
           at = text.find("throw ConfigError(", at + 1))
        CHECK(text.compare(at, 26, "throw ConfigError(in_file(") == 0);
    }
}

}  // namespace lockstep::problem_places_test
