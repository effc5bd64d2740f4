// Steps measured on one GPU: what they belong to, how they are written back, and what is wrong with them.

#include "sim/load/measured_steps.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/resolved.h"
#include "sim/report/prediction.h"
#include "sim/run/host_issue.h"
#include "sim/run/single_gpu.h"
#include "tests/scenario/lab.h"
#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep::measured_steps_test {

using nlohmann::ordered_json;
using testing::load_resnet;
using testing::problems_of_resnet;

constexpr const char* step_path = "compute.single_gpu_iteration";

std::vector<std::string> transfers_of(const LoadedScenario& scenario) {
  std::vector<std::string> found;
  for (const std::string& warning : scenario.warnings)
    if (warning.find("transferred to") != std::string::npos)
      found.push_back(warning);
  return found;
}

Duration time_of(const LoadedScenario& scenario) {
  REQUIRE(scenario.compute.single_gpu_iteration);
  CHECK(single_gpu_time(scenario) == *scenario.compute.single_gpu_iteration);
  return *scenario.compute.single_gpu_iteration;
}

// What the contract says a plain time belongs to, one change each.
const std::vector<Overrides>& changes() {
  static const std::vector<Overrides> all{{{"model.batch_per_gpu", "64"}},
                                          {{"model.precision", "fp32"}},
                                          {{"model.name", "resnet152"}},
                                          {{"cluster.machine", "dgx1_v100"}},
                                          {{"cluster.machine.gpu.memory_bandwidth", "3 TB/s"}},
                                          {{"training.optimizer", "adam"}},
                                          {{"training.recompute", "full"}},
                                          {{"compute.kernels", "compiled"}},
                                          {{"compute.preset", "nvidia_mxnet"}},
                                          {{"training.framework", "tensorflow_multiworker"}},
                                          {{"training.gradient_accumulation", "4"}}};
  return all;
}

TEST_CASE("a time belongs to the scenario as its file states it: any change of what it depends on moves it") {
  for (const Overrides& change : changes()) {
    CAPTURE(change.front().first);
    const LoadedScenario changed = load_resnet(change);
    CHECK(time_of(changed) != Duration::microseconds(103'600));
    REQUIRE(transfers_of(changed).size() == 1);
    CHECK(changed.compute.transfer > Ratio{});
  }
  const LoadedScenario same = load_resnet({{"training.bucket_cap_mb", "50"}, {"cluster.nodes", "4"}});
  CHECK(time_of(same) == Duration::microseconds(103'600));
  CHECK(transfers_of(same).empty());
}

TEST_CASE("a change and its reverse leave nothing to say") {
  for (const char* batch : {"256", "256.0"})
    CHECK(transfers_of(load_resnet({{"model.batch_per_gpu", batch}, {"training.optimizer", "sgd"}})).empty());
  // The same GPU and host in another machine.
  CHECK(transfers_of(load_resnet({{"cluster.machine", "azure_nd_a100_v4"}})).empty());
}

TEST_CASE("the warning says from what to what, and by how much") {
  const std::string warning = transfers_of(load_resnet({{"model.batch_per_gpu", "64"}})).front();
  CHECK(warning.starts_with(
      "compute.single_gpu_iteration was measured at batch 256; transferred to batch 64 by "
      "the model of computing: x0.2"));
}

TEST_CASE("a transfer there and back is the identity") {
  for (const Overrides& change : changes()) {
    CAPTURE(change.front().first);
    const LoadedScenario there = load_resnet(change);
    ordered_json step = there.measured_steps.front().conditions;  // as the file has it
    ordered_json back = ordered_json::object();
    back["time"] = std::to_string(time_of(there).picoseconds()) + " ps";
    if (step.contains("gpu"))
      back["gpu"] = write_gpu(there.cluster.gpu);
    if (step.contains("operator_time"))
      back["operator_time"] = exact_text(operator_time(there.cluster.machine.host));
    for (const char* key : {"batch_per_gpu", "precision"})
      if (step.contains(key))
        back[key] = there.given["model"][key];
    for (const char* key : {"optimizer", "recompute", "gradient_accumulation"})
      if (step.contains(key))
        back[key] = there.given["training"][key];
    for (const char* key : {"kernels", "modules", "autocast", "cross_entropy_loss_fusion"})
      if (step.contains(key))
        back[key] = there.resolved["compute"][key];
    if (step.contains("optimizer_kernels"))
      back["optimizer_kernels"] = name_of(there.compute.optimizer_kernels, optimizer_kernels_spellings);
    if (step.contains("memory_format"))
      back["memory_format"] = name_of(there.compute.memory_format, memory_format_spellings);
    if (step.contains("model"))
      back["model"] = there.given["model"]["name"];
    const Duration again = time_of(load_resnet({{step_path, back.dump()}}));
    // Each of three parts is rounded up to a picosecond twice, at most 9 times enlarged on the way.
    CHECK(std::abs(again.picoseconds() - 103'600'000'000) <= 3 * (1 + 9));
  }
}

TEST_CASE("what is stated together belongs together, and what is varied after it is a change") {
  const Overrides together{{step_path, "60 ms"}, {"model.batch_per_gpu", "128"}};
  const LoadedScenario stated = load_resnet(together);
  CHECK(time_of(stated) == Duration::milliseconds(60));
  CHECK(transfers_of(stated).empty());
  const auto value = ordered_json::parse(testing::resnet_text);
  const LoadedScenario varied = load_value(value, {.store = shipped_profiles(),
                                                   .overrides = {{step_path, "103.6 ms"}},
                                                   .variation = {{"model.batch_per_gpu", "64"}}});
  CHECK(time_of(varied) == time_of(load_resnet({{"model.batch_per_gpu", "64"}})));
}

TEST_CASE("an object says what was otherwise; what it leaves out is as the file has it") {
  const std::string at_64 = R"({"time": "27 ms", "batch_per_gpu": 64})";
  CHECK(time_of(load_resnet({{step_path, at_64}, {"model.batch_per_gpu", "64"}})) ==
        Duration::milliseconds(27));
  const LoadedScenario here = load_resnet({{step_path, at_64}});
  CHECK(time_of(here) > Duration::milliseconds(27));
  CHECK(time_of(here) < Duration::milliseconds(4 * 27));
  auto file = ordered_json::parse(testing::resnet_text);
  file["compute"]["single_gpu_iteration"] = ordered_json::parse(at_64);
  // Of amp_fp16, as the file says, although fp32 is asked for.
  const LoadedScenario slow =
      load_value(file, {.store = shipped_profiles(),
                        .overrides = {{"model.batch_per_gpu", "64"}, {"model.precision", "fp32"}}});
  CHECK(time_of(slow) > Duration::milliseconds(2 * 27));
  CHECK(slow.measured_steps.front().conditions == ordered_json{{"precision", "amp_fp16"}});
}

TEST_CASE("what is resolved reads back to the same, and so does what variants are loaded from") {
  for (const Overrides& change : changes()) {
    CAPTURE(change.front().first);
    const LoadedScenario changed = load_resnet(change);
    for (const ordered_json& document : {changed.resolved, changed.given}) {
      const LoadedScenario again = scenario_from(document);
      CHECK(time_of(again) == time_of(changed));
      CHECK(predict_iteration(again) == predict_iteration(changed));
      CHECK(again.resolved["compute"] == changed.resolved["compute"]);
    }
  }
}

TEST_CASE("two measured steps that are one and the same say what one says") {
  auto file = ordered_json::parse(testing::resnet_text);
  file["compute"] = {{"anchors", {"103.6 ms", {{"time", "103.6 ms"}, {"batch_per_gpu", 256}}}}};
  for (const Overrides& change : {Overrides{}, Overrides{{"model.batch_per_gpu", "64"}}})
    CHECK(predict_iteration(scenario_from(file, {.overrides = change})) ==
          predict_iteration(load_resnet(change)));
}

// Beside a host that no GPU waits for: a step grows with its batch.
TEST_CASE("each of several measured steps is met, and between them lies what they say") {
  auto file = ordered_json::parse(testing::resnet_text);
  file["cluster"]["machine"] = {{"based_on", "dgx_a100_40gb"}, {"host", {{"operator_time", "15 us"}}}};
  file["compute"] = {{"anchors", {"103.6 ms", {{"time", "16 ms"}, {"batch_per_gpu", 32}}}}};
  CHECK(time_of(scenario_from(file)) == Duration::microseconds(103'600));
  const LoadedScenario small = scenario_from(file, {.overrides = {{"model.batch_per_gpu", "32"}}});
  CHECK(time_of(small) == Duration::milliseconds(16));
  CHECK(transfers_of(small).empty());
  const LoadedScenario between = scenario_from(file, {.overrides = {{"model.batch_per_gpu", "96"}}});
  CHECK(time_of(between) > Duration::milliseconds(2 * 16));
  CHECK(time_of(between) < Duration::milliseconds(3 * 16));
  REQUIRE(transfers_of(between).size() == 1);
  CHECK(
      transfers_of(between).front().starts_with("the nearest of compute.anchors was measured at batch 256;"));
  CHECK(time_of(scenario_from(between.resolved)) == time_of(between));
}

TEST_CASE("an anchor's own changes and what is compared transfer the step too, and say so") {
  auto file = ordered_json::parse(testing::resnet_text);
  file["compute"]["anchor"] = {{"set", {{"model.batch_per_gpu", 64}, {"cluster.nodes", 1}}},
                               {"iteration_time", "40 ms"}};
  const LoadedScenario anchored = scenario_from(file);
  CHECK(*anchored.compute.anchor->there.front().compute.single_gpu_iteration ==
        time_of(load_resnet({{"model.batch_per_gpu", "64"}})));
  REQUIRE(transfers_of(anchored).size() == 1);
  CHECK(transfers_of(anchored).front().starts_with("with the changes of compute.anchor.set: "));
  file = ordered_json::parse(testing::resnet_text);
  file["compare"]["strategies"] = {"ddp", {{"strategy", "ddp"}, {"gradient_accumulation", 4}}};
  const LoadedScenario compared = scenario_from(file);
  CHECK(*compared.comparison->strategies[1].compute.single_gpu_iteration ==
        time_of(load_resnet({{"training.gradient_accumulation", "4"}})));
  REQUIRE(transfers_of(compared).size() == 1);
}

TEST_CASE("an anchor's scenario is simulated as its own is: folded or not, at the same fidelity") {
  auto file = ordered_json::parse(testing::resnet_text);
  file["compute"] = {{"anchor", {{"set", {{"cluster.nodes", 1}}}, {"iteration_time", "120 ms"}}}};
  const LoadedScenario scenario = scenario_from(file, {.fold = false, .fidelity = Fidelity::step});
  const Scenario& there = scenario.compute.anchor->there.front();
  CHECK_FALSE(there.simulation.fold);
  CHECK(there.simulation.fidelity == Fidelity::step);
}

struct Mistake {
  std::string step;
  std::vector<std::string> said;
};

TEST_CASE("what cannot have been measured is refused with what could") {
  const std::string at = "scenario: /compute/single_gpu_iteration";
  for (const Mistake& mistake : std::vector<Mistake>{
           {"1 us",
            {at + ": ", "found 1.000 us", "MFU of", "312 TFLOP/s", "a100_sxm_40gb", "amp_fp16", "20.13 ms"}},
           {R"({"time": "50 ms", "precision": "fp32"})", {at + ": ", "MFU of", "precision tf32"}},
           {"0 s", {at + ": ", "above zero"}},
           {R"({"time": "-1 ms"})", {at + "/time: ", "not negative"}},
           {R"({"batch_per_gpu": 64})", {at, "\"time\""}},
           {R"({"time": "90 ms", "batch": 64})", {at + "/batch: ", "did you mean \"batch_per_gpu\""}},
           {R"({"time": "90 ms", "batch_per_gpu": 0})", {at + "/batch_per_gpu: ", "found 0"}},
           {R"({"time": "90 ms", "recompute": "some"})", {at + "/recompute: ", "every_K"}},
           {R"({"time": "90 ms", "kernels": "eagre"})", {at + "/kernels: ", "did you mean \"eager\""}},
           {R"({"time": "90 ms", "gpu": "a100_sxm_40"})", {at + "/gpu: ", "a100_sxm_40gb"}},
           {R"({"time": "90 ms", "gpu": "v100_sxm2_16gb", "precision": "bf16"})",
            {at + "/precision: ", "v100_sxm2_16gb", "did you mean \"fp16\""}},
           {R"({"time": "9 s", "model": "resnet5"})", {at, "resnet50"}},
           {R"({"time": "9 s", "model": "bert_large"})",
            {at + ": ", "bert_large", "attention", "single_gpu_iteration=null"}},
           {R"({"time": "9 s", "sequence_length": 128})", {at + "/sequence_length: ", "no sequences"}}}) {
    const std::string found = problems_of_resnet({{step_path, mistake.step}});
    CAPTURE(mistake.step);
    CAPTURE(found);
    for (const std::string& part : mistake.said) CHECK(testing::contains(found, part));
  }
}

TEST_CASE("a change to a model of another kind is refused: what was measured says nothing of it") {
  const std::string found = problems_of_resnet({{"model.name", "bert_large"}});
  for (const char* part : {"/compute/single_gpu_iteration: ", "resnet50", "bert_large", "null"})
    CHECK(testing::contains(found, part));
  CHECK(problems_of_resnet({{"model.name", "bert_large"}, {step_path, "null"}}).empty());
}

TEST_CASE("measured steps that contradict each other are refused, and which") {
  const auto problems = [](const char* anchors) {
    return problems_of_resnet({{step_path, "null"}, {"compute.anchors", anchors}});
  };
  const std::string same = problems(R"(["103.6 ms", "120 ms"])");
  for (const char* part : {"/compute/anchors/1: ", "120.0 ms", "/compute/anchors/0", "103.6 ms", "5 %"})
    CHECK(testing::contains(same, part));
  CHECK(problems(R"(["103.6 ms", "105 ms"])").empty());
  const std::string reversed = problems(R"([{"time": "103.6 ms", "batch_per_gpu": 64}, "50 ms"])");
  for (const char* part : {"/compute/anchors/", "contradicts", "20 %"})
    CHECK(testing::contains(reversed, part));
  CHECK(testing::contains(problems("[]"), "at least one"));
  CHECK(testing::contains(problems_of_resnet({{"compute.anchors", R"(["103.6 ms"])"}}), "one of the two"));
}

TEST_CASE("a file that leaves the batch to whoever loads it states a step all the same") {
  auto file = ordered_json::parse(testing::resnet_text);
  file["model"].erase("batch_per_gpu");
  const LoadedScenario scenario = scenario_from(file, {.overrides = {{"model.batch_per_gpu", "128"}}});
  CHECK(time_of(scenario) == Duration::microseconds(103'600));
}

TEST_CASE("the user's scale is of all computing, anchored or not") {
  CHECK(single_gpu_time(load_resnet({{"compute.scale", "2"}})) == Duration::microseconds(207'200));
}

TEST_CASE("the band widens with the distance from what was measured") {
  const auto width = [](const char* batch) {
    const LoadedScenario scenario =
        load_resnet({{"model.batch_per_gpu", batch}, {"cluster.nodes", "1"}, {"cluster.gpus_per_node", "1"}});
    const Report report = predict(scenario).report;
    return report.times.high->in_seconds() / report.times.low->in_seconds();
  };
  CHECK(width("128") > width("256"));
  CHECK(width("32") > width("128"));
  CHECK(width("512") > width("256"));
}

TEST_CASE("what an iteration anchors may be off by less than computing that nobody measured") {
  auto file = ordered_json::parse(testing::resnet_text);
  file["cluster"]["nodes"] = 1;
  file["cluster"]["gpus_per_node"] = 1;
  file["compute"] = ordered_json::object();
  const IterationTimes guessed = predict(scenario_from(file)).report.times;
  file["compute"]["anchor"] = {{"set", ordered_json::object()}, {"iteration_time", "120 ms"}};
  const IterationTimes anchored = predict(scenario_from(file)).report.times;
  const auto width = [](const IterationTimes& times) {
    return times.high->in_seconds() / times.low->in_seconds();
  };
  CHECK(width(anchored) < width(guessed));
}

}  // namespace lockstep::measured_steps_test
