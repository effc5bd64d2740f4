// Runs of PyTorch that were traced: the trace alone, imported, predicts the iterations that were timed without a profiler.

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/load/import/import_file.h"
#include "sim/load/load.h"
#include "sim/report/prediction.h"

namespace lockstep::traced_runs_test {

using nlohmann::ordered_json;

const std::string traces = std::string(LOCKSTEP_SOURCE_DIR) + "/validate/traces/";

ordered_json json_of(const std::string& path) {
  std::ifstream file(path);
  return ordered_json::parse(file);
}

double predicted(const ordered_json& scenario) {
  const ProfileStore store(LOCKSTEP_SOURCE_DIR);
  const Duration iteration = predict(load_value(scenario, {.store = store})).report.iteration;
  return static_cast<double>(iteration.picoseconds()) / 1e12;
}

ordered_json imported(const std::string& name, const ordered_json& cluster) {
  std::ifstream file = open_import_file(traces + name + ".trace.json.gz");
  return importer_named("kineto")
      .second.import({.file_name = name + ".trace.json.gz", .file = file, .stated = {{"cluster", cluster}}})
      .document;
}

TEST_CASE("a traced run of two ranks is predicted within 5 % of its iterations") {
  for (const std::string name : {"mlp_2_ranks_1gbit", "mlp_2_ranks_200mbit"}) {
    CAPTURE(name);
    const ordered_json scenario = json_of(traces + name + ".scenario.json");
    const ordered_json run = imported(name, scenario["cluster"]);
    CHECK(run["model"] == scenario["model"]);
    const double measured =
        json_of(traces + name + ".cases.json")["cases"][0]["measured"]["iteration_time_s"].get<double>();
    CHECK(std::abs(predicted(scenario) / measured - 1) < 0.05);
  }
}

}  // namespace lockstep::traced_runs_test
