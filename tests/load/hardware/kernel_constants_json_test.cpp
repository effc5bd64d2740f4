#include "sim/load/hardware/kernel_constants_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::kernel_constants_json_test {

// Each constant another figure, in the range of its unit.
KernelConstants all_different() {
  KernelConstants constants;
  constants.name = "mine";
  constants.source = "ours";
  std::int64_t figure = 123'456;
  for (const KernelConstantField& field : kernel_constant_fields()) {
    figure += 1'001;
    field.set(constants, field.unit == ConstantUnit::bandwidth ? figure * 100'000 : figure);
  }
  return constants;
}

KernelConstants read_back(const KernelConstants& constants) {
  nlohmann::ordered_json gpu = *shipped_profiles().open(ProfileKind::gpu, "l4")->value;
  gpu["compute"] = write_kernel_constants(constants);
  return load_gpu(gpu, shipped_profiles()).kernels.value();
}

TEST_CASE("constants that are written read back as the same") {
  CHECK(read_back(all_different()) == all_different());
  KernelConstants usual;
  usual.name = "usual";
  CHECK(read_back(usual) == usual);
}

TEST_CASE("shipped constants are written as they were read") {
  for (const std::string& name : shipped_profiles().names(ProfileKind::architecture)) {
    CAPTURE(name);
    nlohmann::ordered_json gpu = *shipped_profiles().open(ProfileKind::gpu, "l4")->value;
    gpu["compute"] = name;
    KernelConstants shipped = load_gpu(gpu, shipped_profiles()).kernels.value();
    CHECK(shipped.name == name);
    CHECK_FALSE(shipped.source.empty());
    shipped.are_compared = true;  // as of any that a user states: residuals are the file's
    CHECK(read_back(shipped) == shipped);
  }
}

TEST_CASE("each field sets and gets a constant of its own") {
  std::set<std::string> names;
  for (const KernelConstantField& field : kernel_constant_fields()) {
    names.insert(std::string(field.section) + "." + std::string(field.key));
    KernelConstants constants;
    const std::int64_t before = field.get(constants);
    field.set(constants, before + 7);
    CHECK(field.get(constants) == before + 7);
    for (const KernelConstantField& other : kernel_constant_fields())
      if (other.get != field.get)
        CHECK(other.get(constants) == other.get(KernelConstants{}));
  }
  CHECK(names.size() == kernel_constant_fields().size());
}

TEST_CASE(
    "an architecture is told by compute capability, and its nearest relative where it was never timed") {
  const auto name_of = [](std::int64_t capability) { return architecture_of(capability, "nvidia").name; };
  const auto is_own = [](std::int64_t capability) { return architecture_of(capability, "nvidia").is_own; };
  CHECK(name_of(100) == "blackwell");
  CHECK(name_of(120) == "blackwell_gb20x");
  CHECK(name_of(90) == "hopper");
  CHECK(name_of(89) == "ada");
  CHECK(name_of(80) == "ampere");
  CHECK(is_own(80));
  CHECK(name_of(86) == "ampere_ga10x");
  CHECK(name_of(75) == "turing");
  CHECK(name_of(70) == "volta");
  CHECK(name_of(61) == "pascal_gp10x");
  CHECK(name_of(60) == "pascal");
  CHECK(is_own(60));
  CHECK(name_of(52) == "maxwell");
  CHECK(name_of(37) == "maxwell");
  CHECK_FALSE(is_own(37));
  CHECK(architecture_of(0, "amd").name == "cdna");
}

}  // namespace lockstep::kernel_constants_json_test
