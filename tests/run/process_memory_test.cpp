#include "sim/run/process_memory.h"

#include <doctest/doctest.h>

#include "sim/run/describe_job.h"
#include "tests/support/scenarios.h"

namespace lockstep::process_memory_test {

using Json = nlohmann::ordered_json;

constexpr std::int64_t mib = 1024 * 1024;

Json resnet_on(const std::string& machine, const Json& training = Json::object()) {
  Json given{{"cluster", {{"machine", machine}, {"gpus_per_node", 1}}},
             {"model", {{"name", "resnet50"}, {"batch_per_gpu", 2}, {"precision", "fp32"}}},
             {"training", {{"strategy", "single"}}}};
  given["training"].update(training);
  return given;
}

ProcessMemory process_of(const Json& given) {
  return describe_job(scenario_from(given)).process;
}

// A handle for the thread of forward and one for that of backward: 2 x 4 MiB and 8 x 16 KiB each before Hopper, 32 MiB
// since; AMD's 128 MiB on an MI300X.
TEST_CASE("Products have the workspaces of their architecture, for two handles") {
  CHECK(process_of(resnet_on("dgx1_v100")).product_workspaces.count() == 2 * (8 * mib + mib / 8));
  CHECK(process_of(resnet_on("dgx_a100_80gb")).product_workspaces.count() == 2 * (8 * mib + mib / 8));
  CHECK(process_of(resnet_on("dgx_h100")).product_workspaces.count() == 2 * 32 * mib);
  CHECK(process_of(resnet_on("hgx_b200")).product_workspaces.count() == 2 * 32 * mib);
  CHECK(process_of(resnet_on("mi300x_8gpu")).product_workspaces.count() == 2 * 128 * mib);
}

TEST_CASE("PyTorch before 2.0 loads all kernels at once") {
  CHECK(process_of(resnet_on("dgx1_v100", {{"framework_version", "1.13"}})).context.count() == 1341 * mib);
  CHECK(process_of(resnet_on("dgx1_v100", {{"framework_version", "2.10"}})).context.count() == 700 * mib);
}

// torchvision's resnet50: 25,557,032 parameters, the largest tensor is layer4's 512 x 512 x 3 x 3.
TEST_CASE("Adam over lists of tensors holds the root of every second moment at once") {
  const auto optimizer = [](const char* name, const char* kernels, const char* version) {
    Json given = resnet_on("dgx_a100_80gb", {{"optimizer", name}, {"framework_version", version}});
    given["compute"]["kernels"] = kernels;
    return process_of(given).optimizer_workspace.count();
  };
  CHECK(optimizer("adamw", "eager", "2.8") == 4 * 25'557'032);
  CHECK(optimizer("adamw", "eager", "1.13") == 4 * 512 * 512 * 9);
  CHECK(optimizer("adamw", "fused", "2.8") == 0);
  CHECK(optimizer("momentum", "eager", "2.8") == 0);
}

TEST_CASE("A process on a CPU has no context, no workspaces and no allocator that loses") {
  const ProcessMemory process =
      process_of({{"cluster", {{"machine", "cpu_gloo"}, {"gpus_per_node", 1}}},
                  {"model", {{"name", "resnet50"}, {"batch_per_gpu", 2}, {"precision", "fp32"}}},
                  {"training", {{"strategy", "single"}, {"optimizer", "adamw"}}}});
  CHECK(process.context == Bytes{0});
  CHECK(process.product_workspaces == Bytes{0});
  CHECK(process.optimizer_workspace == Bytes{0});
  CHECK(process.allocated_per_lost == 0);
}

}  // namespace lockstep::process_memory_test
