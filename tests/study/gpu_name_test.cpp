// Names that drivers and data sets print, and the profiles they mean.

#include "sim/study/gpu_name.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::gpu_name_test {

TEST_CASE("a GPU is found by its shipped name and by what it is also known as") {
  const ProfileStore& store = shipped_profiles();
  CHECK(find_gpu_named("h100_sxm_80gb", store) == "h100_sxm_80gb");
  CHECK(find_gpu_named("NVIDIA A100-SXM4-80GB", store) == "a100_sxm_80gb");
  CHECK(find_gpu_named("NVIDIA_A100_80GB_PCIe", store) == "a100_pcie_80gb");
  CHECK(find_gpu_named("2080TI", store) == "rtx2080ti");
  CHECK(find_gpu_named("nvidia geforce rtx 3090", store) == "rtx3090");
}

TEST_CASE("a GPU that is not shipped is nobody") {
  for (const char* name : {"gtx970", "v100", "k40", "", "NVIDIA", "NVIDIA A100"})
    CHECK_MESSAGE(find_gpu_named(name, shipped_profiles()).empty(), name);
}

// Otherwise the order of the files would decide.
TEST_CASE("no two shipped GPUs share a name") {
  const ProfileStore& store = shipped_profiles();
  for (const std::string& gpu : store.names(ProfileKind::gpu)) {
    const auto& profile = *store.open(ProfileKind::gpu, gpu)->value;
    CHECK(find_gpu_named(gpu, store) == gpu);
    if (profile.contains("also_known_as"))
      for (const auto& name : profile["also_known_as"])
        CHECK_MESSAGE(find_gpu_named(name.get<std::string>(), store) == gpu, name);
  }
}

TEST_CASE("other names are a list of texts") {
  nlohmann::ordered_json gpu = *shipped_profiles().open(ProfileKind::gpu, "l4")->value;
  gpu["also_known_as"] = {"NVIDIA L4", "an L4"};
  CHECK(load_gpu(gpu, shipped_profiles()).name == "l4");
  CHECK(is_gpu_named("AN_L4", gpu));
  gpu["also_known_as"] = {3};
  CHECK_THROWS_WITH_AS(load_gpu(gpu, shipped_profiles()), doctest::Contains("/also_known_as/0"), ConfigError);
  gpu["also_known_as"] = "NVIDIA L4";
  CHECK_THROWS_AS(load_gpu(gpu, shipped_profiles()), ConfigError);
}

}  // namespace lockstep::gpu_name_test
