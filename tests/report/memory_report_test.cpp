#include "sim/report/memory_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/report/report_text.h"
#include "tests/support/scenarios.h"

namespace lockstep::memory_report_test {

using Json = nlohmann::ordered_json;

// A gigabyte of fp32 weights, measured as a whole: 4 GB of weights, gradients and buckets on a GPU of 40 GiB.
Json measured_model() {
  Json parameter{
      {"name", "weights"}, {"elements", 250'000'000}, {"dtype", "fp32"}, {"gradient_ready", "2 ms"}};
  Json measured{{"forward", "1 ms"}, {"backward", "2 ms"}, {"optimizer", "1 ms"}};
  measured["parameters"] = Json::array({parameter});
  return {{"cluster", {{"machine", "dgx_a100_40gb"}}},
          {"model", {{"measured", measured}, {"batch_per_gpu", 1}}},
          {"training", {{"strategy", "ddp"}}}};
}

bool warns_of_activations(const Report& report) {
  return std::any_of(report.warnings.begin(), report.warnings.end(), [](const std::string& warning) {
    return warning.starts_with("memory: activations are not counted");
  });
}

TEST_CASE("A model that does not tell what it keeps fits without its activations, and the report says so") {
  const LoadedScenario scenario = scenario_from(measured_model());
  const Report report = predict(scenario).report;
  CHECK(report.memory.fits());
  CHECK(!report.memory.counts_activations);
  CHECK(warns_of_activations(report));
}

// Ten times as many: 40 GB are more than 40 GiB with what else there is, whatever activations take.
TEST_CASE("What does not fit without its activations does not fit") {
  Json given = measured_model();
  given["model"]["measured"]["parameters"][0]["elements"] = 4'000'000'000;
  const Report report = predict(scenario_from(given)).report;
  CHECK(!report.memory.fits());
  CHECK(!warns_of_activations(report));
}

// A server keeps its variables, their sums and momentum's one state: each as much as the fp32 weights.
TEST_CASE("A server on a GPU takes its memory, one elsewhere none of it") {
  const auto standing = [](const char* place, std::int64_t count) {
    Json given{{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 2}}},
               {"model", {{"name", "resnet50"}, {"batch_per_gpu", 8}, {"precision", "fp32"}}},
               {"training", {{"strategy", "ps_sync"}, {"optimizer", "momentum"}}}};
    given["training"]["servers"] = {{"on", place}, {"count", count}};
    return predict(scenario_from(given)).report.memory.standing;
  };
  const std::int64_t weights = 25'557'032 * 4;
  const MemoryUse beside = standing("cpu", 1);
  const MemoryUse with = standing("gpu", 1);
  CHECK((with.parameters - beside.parameters).count() == weights);
  CHECK((with.gradients - beside.gradients).count() == weights);
  CHECK((with.optimizer_states - beside.optimizer_states).count() == weights);
  CHECK(standing("gpu", 2).optimizer_states < with.optimizer_states);
}

TEST_CASE("A model that tells what it keeps is counted whole") {
  const Report report =
      predict(scenario_from({{"cluster", {{"machine", "dgx_a100_40gb"}}},
                             {"model", {{"name", "resnet50"}, {"batch_per_gpu", 8}, {"precision", "fp32"}}},
                             {"training", {{"strategy", "ddp"}}}}))
          .report;
  CHECK(report.memory.counts_activations);
  CHECK(!warns_of_activations(report));
}

// Of one RTX 3090 (24 GiB), mixed precision: the largest batch that trained, and the next that was tried and did not
// (huggingface/pytorch-image-models@5e7d47ca results/benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv; its script
// goes on with 384, 256, 192, 128 ... after an error).
struct Bracket {
  Json model;
  std::int64_t trained, failed;
};

bool fits_at(const Bracket& bracket, std::int64_t batch) {
  Json given{
      {"cluster", {{"machine", "rtx3090_8gpu_pcie"}, {"gpus_per_node", 1}}},
      {"model", bracket.model},
      {"training", {{"strategy", "single"}, {"framework_version", "1.12"}, {"optimizer", "momentum"}}}};
  given["model"]["batch_per_gpu"] = batch;
  given["model"]["precision"] = "amp_fp16";
  return predict(scenario_from(given)).report.memory.fits();
}

TEST_CASE("What trained on 24 GiB is said to fit, and what did not is said not to") {
  const auto vision = [](std::int64_t hidden, std::int64_t heads) {
    return Json{{"family", "vision_transformer"},
                {"layers", 12},
                {"hidden", hidden},
                {"heads", heads},
                {"patch_size", 16},
                {"attention", "unfused"}};
  };
  const std::vector<Bracket> brackets{{{{"name", "resnet101"}}, 256, 384},
                                      {{{"name", "resnet152"}}, 192, 256},
                                      {{{"name", "resnext50_32x4d"}}, 384, 512},
                                      {{{"name", "resnext101_32x8d"}}, 128, 192},
                                      {{{"name", "vgg16"}}, 384, 512},
                                      {{{"name", "vgg19"}}, 384, 512},
                                      {{{"name", "densenet121"}}, 256, 384},
                                      {{{"name", "inception_v3"}}, 384, 512},
                                      {vision(384, 6), 384, 512},
                                      {vision(768, 12), 192, 256}};
  for (const Bracket& bracket : brackets) {
    INFO(bracket.model.dump());
    CHECK(fits_at(bracket, bracket.trained));
    CHECK(!fits_at(bracket, bracket.failed));
  }
  for (const char* small : {"resnet18", "resnet34", "resnet50", "efficientnet_b0"}) {
    INFO(small);
    CHECK(fits_at({.model = {{"name", small}}, .trained = 512, .failed = 0}, 512));
  }
}

}  // namespace lockstep::memory_report_test
