#include <algorithm>

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::module_factory_test {

std::vector<float> begun(std::uint64_t seed, std::uint32_t index, InitialValues initial) {
  const std::unique_ptr<Device> device = make_cpu_device();
  ModuleFactory factory(*device, Type::fp32, seed);
  for (std::uint32_t before = 0; before < index; ++before) factory.add_parameter("other", 1, {}, false);
  factory.add_parameter("this", 10'000, initial, false);
  return read_back(*device, factory.parameter(index).value);
}

TEST_CASE("a parameter begins as its seed and its place in the order say, and no two alike") {
  const InitialValues normal{.kind = InitialValues::Kind::normal, .value = 1};
  CHECK(begun(1, 0, normal) == begun(1, 0, normal));
  CHECK(begun(1, 0, normal) != begun(2, 0, normal));
  CHECK(begun(1, 0, normal) != begun(1, 1, normal));
}

// Of 10,000 draws of deviation d the mean strays by d / 100, the deviation by d / 141: four times as much is
// allowed.
TEST_CASE("draws have the deviation or bound that was asked for") {
  const std::vector<float> normal = begun(1, 0, {.kind = InitialValues::Kind::normal, .value = 2});
  const std::vector<float> ones(normal.size(), 1);
  CHECK(std::abs(dot(normal, ones) / 10'000) < 4 * 2.0 / 100);
  CHECK(std::abs(length(normal) / 100 - 2) < 4 * 2.0 / 141);

  const std::vector<float> uniform = begun(1, 0, {.kind = InitialValues::Kind::uniform, .value = 3});
  CHECK(*std::ranges::max_element(uniform) <= 3);
  CHECK(*std::ranges::min_element(uniform) >= -3);
  CHECK(std::abs(length(uniform) / 100 - std::sqrt(3.0)) < 4 * std::sqrt(3.0) / 141);
  CHECK(begun(1, 0, {.value = 5}) == std::vector<float>(10'000, 5));
}

TEST_CASE("in mixed precision what is multiplied has a copy in half, and nothing else does") {
  const std::unique_ptr<Device> device = make_cpu_device();
  ModuleFactory factory(*device, Type::bf16);
  factory.add_parameter("weight", 4, {.value = 1}, true);
  factory.add_parameter("bias", 4, {.value = 1}, false);
  CHECK(factory.parameter(0).multiplied.type == Type::bf16);
  CHECK(factory.parameter(0).value.type == Type::fp32);
  CHECK(factory.parameter(0).gradient.type == Type::fp32);
  CHECK(factory.parameter(1).multiplied.data == factory.parameter(1).value.data);
}

}  // namespace lockstep::harness::module_factory_test
