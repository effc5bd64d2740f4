// Whatever number a user writes is answered or refused with its place: nothing overflows, nothing is a bug.
//
// Every number and every quantity of every shipped scenario, machine, GPU, link, fabric, calibration and
// model is replaced by the numbers at which 32 and 64 bits and doubles end. What loads is simulated as well,
// unless it has become larger than the scenario was: what is too large is refused elsewhere, and running it
// says nothing here.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/training/strategy.h"
#include "tests/support/scenarios.h"

namespace lockstep::extreme_numbers_test {

using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

constexpr std::array numbers{
    "0", "-1", "2147483648", "9007199254740992", "4611686018427387904", "9223372036854775807", "1e308"};

bool is_quantity(const Json& value) {
  if (!value.is_string())
    return false;
  const std::string& text = value.get_ref<const std::string&>();
  return text.find_first_of("0123456789") == 0 && text.find(' ') != text.npos &&
         text.find_first_not_of("0123456789.") == text.find(' ');
}

void find_numbers(const Json& json, const std::string& pointer, std::vector<std::string>& found) {
  if (json.is_number() || is_quantity(json))
    found.push_back(pointer);
  if (!json.is_structured())
    return;
  for (const auto& item : json.items()) find_numbers(item.value(), pointer + "/" + item.key(), found);
}

// The number in front of the unit is replaced; a number without one as a whole.
Json with_number(const Json& before, const char* number) {
  if (!before.is_string())
    return Json::parse(number);
  const std::string& text = before.get_ref<const std::string&>();
  return number + text.substr(text.find(' '));
}

// Counts from which plans are made.
double size_of(const LoadedScenario& scenario) {
  const TrainingSpec& training = scenario.training;
  return static_cast<double>(scenario.cluster.ranks()) *
         static_cast<double>(scenario.simulation.iterations + 1) *
         static_cast<double>(training.gradient_accumulation) *
         static_cast<double>(training.local_sgd.local_steps) *
         static_cast<double>(training.parameter_server.servers.count + 1) *
         static_cast<double>(scenario.model.model.parameters.size() + scenario.model.model.layers.size());
}

struct Subject {
  std::string name;
  Json scenario;
  std::string base;    // what is mutated stands here
  std::string folder;  // of the scenario
};

LoadedScenario loaded(const Subject& subject, const Json& json) {
  return load_value(json, {.store = shipped_profiles(), .file_name = subject.name, .folder = subject.folder});
}

enum class Outcome { answered, loaded, refused };

Outcome outcome_of(const Subject& subject, const Json& json, double most) {
  try {
    const LoadedScenario scenario = loaded(subject, json);
    if (size_of(scenario) > most || scenario.comparison)
      return Outcome::loaded;
    const Report report = predict(scenario).report;
    CHECK_FALSE(to_text(report, scenario).empty());
    CHECK_FALSE(to_json(report, scenario).empty());
    return Outcome::answered;
  } catch (const ConfigError& error) {
    CHECK_MESSAGE(std::string(error.what()).find("/") != std::string::npos, error.what());  // it says where
    return Outcome::refused;
  }
}

void check_every_number(const Subject& subject) {
  constexpr double enough = 5e4;
  const double most = std::min(enough, size_of(loaded(subject, subject.scenario)));
  std::vector<std::string> pointers;
  find_numbers(subject.scenario.at(Pointer(subject.base)), subject.base, pointers);
  for (const std::string& pointer : pointers)
    for (const char* number : numbers) {
      Json changed = subject.scenario;
      changed[Pointer(pointer)] = with_number(changed[Pointer(pointer)], number);
      try {
        outcome_of(subject, changed, most);
      } catch (const std::exception& error) {
        FAIL_CHECK((subject.name + pointer + " = " + number + ": " + error.what()));
      }
    }
}

const Json& profile(ProfileKind kind, const std::string& name) {
  return *shipped_profiles().open(kind, name)->value;
}

Json small_scenario(Json machine, std::int64_t nodes) {
  return {
      {"cluster", {{"machine", std::move(machine)}, {"nodes", nodes}}},
      {"model",
       {{"batch_per_gpu", 2},
        {"layers",
         {{{"name", "a"}, {"parameters", {100'000'000, 10}}, {"forward_flops", "1 GFLOP"}},
          {{"name", "b"}, {"parameters", {1000}}, {"forward_time", "1 ms"}, {"backward_time", "2 ms"}}}}}}};
}

TEST_CASE("every number of every shipped scenario may be anything") {
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios"))
    if (file.path().extension() == ".json")
      check_every_number({.name = file.path().filename().string(),
                          .scenario = JsonDocument::from_file(file.path().string()).value(),
                          .base = "",
                          .folder = file.path().parent_path().string()});
}

// As load has filled them in, so that no option is missing.
TEST_CASE("every option of every strategy may be anything") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    Json given = small_scenario("dgx_a100_40gb", name == "dp" || name == "single" ? 1 : 2);
    given["cluster"]["gpus_per_node"] = name == "single" ? 1 : 2;
    given["training"]["strategy"] = name;
    const Json resolved = scenario_from(given).resolved;
    for (const char* section : {"training", "communication", "compute", "simulation"}) {
      Json scenario = given;
      scenario[section] = resolved[section];
      check_every_number({name, scenario, std::string("/") + section, ""});
    }
  }
}

TEST_CASE("every number of every shipped machine may be anything") {
  for (const std::string& name : shipped_machine_names()) {
    const Json machine = profile(ProfileKind::machine, name);
    const bool has_nics = machine.contains("nics") && !machine["nics"].empty();
    check_every_number({name, small_scenario(machine, has_nics ? 2 : 1), "/cluster/machine", ""});
  }
}

TEST_CASE("every number of every shipped GPU, link, fabric and calibration may be anything") {
  const Json machine = profile(ProfileKind::machine, "dgx_a100_40gb");
  for (const std::string& name : shipped_profiles().names(ProfileKind::gpu)) {
    Json scenario = small_scenario(machine, 2);
    scenario["cluster"]["machine"]["gpu"] = profile(ProfileKind::gpu, name);
    check_every_number({name, scenario, "/cluster/machine/gpu", ""});
  }
  for (const std::string& name : shipped_profiles().names(ProfileKind::link)) {
    Json scenario = small_scenario(machine, 2);
    scenario["cluster"]["machine"]["nics"] = {{"count", 8}, {"link", profile(ProfileKind::link, name)}};
    check_every_number({name, scenario, "/cluster/machine/nics", ""});
  }
  for (const std::string& name : shipped_profiles().names(ProfileKind::fabric)) {
    Json scenario = small_scenario(machine, 2);
    scenario["cluster"]["fabric"] = profile(ProfileKind::fabric, name);
    check_every_number({name, scenario, "/cluster/fabric", ""});
  }
  for (const std::string& name : shipped_profiles().names(ProfileKind::calibration)) {
    const Json calibration = profile(ProfileKind::calibration, name);
    Json scenario = small_scenario(machine, 2);
    scenario["cluster"]["machine"]["calibration"] = calibration;
    if (calibration.contains("library"))
      scenario["cluster"]["machine"]["library"] = calibration["library"];
    check_every_number({name, scenario, "/cluster/machine/calibration", ""});
  }
}

TEST_CASE("every number of every shipped model may be anything") {
  for (const std::string& name : shipped_profiles().names(ProfileKind::model)) {
    Json scenario = small_scenario("dgx_a100_80gb", 1);
    scenario["cluster"]["gpus_per_node"] = 2;
    scenario["model"] = profile(ProfileKind::model, name);
    scenario["model"]["batch_per_gpu"] = 2;
    check_every_number({name, scenario, "/model", ""});
  }
}

}  // namespace lockstep::extreme_numbers_test
