// How feature maps lie in memory: what tensor cores cannot read as it lies is transposed around a convolution.

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/load/load.h"
#include "sim/run/describe_job.h"
#include "sim/run/pricing.h"
#include "tests/support/scenarios.h"

namespace lockstep::memory_format_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t batch = 8;

Json one_gpu(const std::string& model, const char* precision, const char* machine = "dgx_a100_80gb") {
  return {{"cluster", {{"machine", machine}, {"gpus_per_node", 1}}},
          {"model", {{"name", model}, {"batch_per_gpu", batch}, {"precision", precision}}},
          {"training", {{"strategy", "single"}}}};
}

LoadedScenario with_format(Json given, const char* format) {
  given["compute"]["memory_format"] = format;
  return scenario_from(given);
}

Duration step_of(const Scenario& scenario) {
  return modelled_step(scenario, describe_job(scenario)).total();
}

const LayerWork& layer_named(const Job& job, const std::string& name) {
  return *std::find_if(job.layers.begin(), job.layers.end(),
                       [&](const LayerWork& layer) { return layer.name == name; });
}

TEST_CASE("Tensor cores read pixel by pixel: other maps are read and written once more around each product") {
  const Json given = one_gpu("resnet50", "amp_fp16");
  const Job other = describe_job(with_format(given, "contiguous"));
  const Job job = describe_job(with_format(given, "channels_last"));
  // 64 to 64 channels on 56 x 56 points; two operands and a result, each read and written, of 2 bytes.
  const std::int64_t points = batch * 56 * 56;
  const std::int64_t transposed = 2 * (points * 64 + 64 * 64 + points * 64) * 2;
  const char* const inner = "layer1.0.conv1";
  CHECK(layer_named(other, inner).forward.pass_bytes - layer_named(job, inner).forward.pass_bytes ==
        transposed);
  CHECK(layer_named(other, inner).forward.passes - layer_named(job, inner).forward.passes == 3);
  // Backward has a product by data and one by weights.
  CHECK(layer_named(other, inner).backward.pass_bytes - layer_named(job, inner).backward.pass_bytes ==
        2 * transposed);
  // The first convolution's data has no gradient.
  const std::int64_t image = 2 * (batch * 3 * 224 * 224 + 64 * 3 * 49 + batch * 64 * 112 * 112) * 2;
  CHECK(layer_named(other, "conv1").backward.pass_bytes - layer_named(job, "conv1").backward.pass_bytes ==
        image);
}

TEST_CASE("Maps that lie as tensor cores read them never take longer; vector lanes read either way alike") {
  for (const char* model : {"resnet50", "resnext50_32x4d", "vgg16", "efficientnet_b0", "inception_v3"})
    for (const char* machine : {"dgx1_v100", "dgx_a100_80gb", "dgx_h100"}) {
      INFO(model, " ", machine);
      const Json half = one_gpu(model, "amp_fp16", machine);
      CHECK(step_of(with_format(half, "contiguous")) > step_of(with_format(half, "channels_last")));
      const Json full = one_gpu(model, "fp32", machine);
      CHECK(step_of(with_format(full, "contiguous")) == step_of(with_format(full, "channels_last")));
    }
}

TEST_CASE("Depthwise convolutions run on no tensor core and are transposed by nobody") {
  const Json given = one_gpu("efficientnet_b0", "amp_fp16");
  const char* const depthwise = "features.1.0.block.0.0";
  CHECK(layer_named(describe_job(with_format(given, "contiguous")), depthwise).forward.pass_bytes ==
        layer_named(describe_job(with_format(given, "channels_last")), depthwise).forward.pass_bytes);
}

TEST_CASE("Left out, maps lie as the framework has them") {
  const auto format_of = [](const char* strategy, const char* framework, const char* precision) {
    Json given = one_gpu("resnet50", precision);
    given["cluster"].erase("gpus_per_node");
    given["training"] = {{"strategy", strategy}, {"framework", framework}};
    return scenario_from(given).resolved["compute"]["memory_format"].get<std::string>();
  };
  CHECK(format_of("ddp", "pytorch_ddp", "amp_fp16") == "contiguous");
  CHECK(format_of("ddp", "tensorflow_mirrored", "amp_fp16") == "channels_last");
  CHECK(format_of("ddp", "tensorflow_mirrored", "tf32") == "contiguous");
}

TEST_CASE("A step measured with maps that lie otherwise is transferred") {
  Json given = one_gpu("resnet50", "amp_fp16");
  given["compute"] = {{"memory_format", "contiguous"},
                      {"single_gpu_iteration", {{"time", "20 ms"}, {"memory_format", "channels_last"}}}};
  const LoadedScenario scenario = scenario_from(given);
  REQUIRE(scenario.compute.single_gpu_iteration);
  CHECK(*scenario.compute.single_gpu_iteration > Duration::milliseconds(20));
  CHECK(scenario.compute.transfer > Ratio{});
}

}  // namespace
}  // namespace lockstep::memory_format_test
