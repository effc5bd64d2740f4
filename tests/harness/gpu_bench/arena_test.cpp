#include "validate/harness/gpu_bench/arena.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tests/harness/device/device_numbers.h"

namespace lockstep::harness::arena_test {

constexpr ArenaSize size{.bytes = 1 << 20, .cache_bytes = 10'000};

// A slot of 300 and 100 floats is 1,280 and 512 bytes when each begins at a multiple of 256. 2 x 10,000 bytes
// hold 11 slots whole; one more and the first is used again after more than twice the cache.
TEST_CASE("as many slots as make the first come again after twice the cache") {
  const SlotPlan plan = plan_slots({{.elements = 300}, {.elements = 100}}, size, true);
  CHECK(plan.offsets == std::vector<std::int64_t>{0, 1280});
  CHECK(plan.slot_bytes == 1280 + 512);
  CHECK(plan.slots == 20'000 / (1280 + 512) + 1);
  CHECK((plan.slots - 1) * plan.slot_bytes <= 20'000);
  CHECK(plan.slots * plan.slot_bytes > 20'000);
}

TEST_CASE("what is to be found in the cache has one slot") {
  CHECK(plan_slots({{.elements = 300}}, size, false).slots == 1);
}

TEST_CASE(
    "what is larger than twice the cache is cold in one slot, and what is larger than the arena has none") {
  CHECK(plan_slots({{.elements = 6'000}}, size, true).slots == 1);
  CHECK(plan_slots({{.elements = 300'000}}, size, true).slots == 0);
  CHECK(plan_slots({{.elements = 300}}, {.bytes = 20'000, .cache_bytes = 10'000}, true).slots == 0);
}

TEST_CASE("operands of a slot and slots do not overlap, and come again in turn") {
  const auto device = make_cpu_device();
  Arena arena(*device, size);
  REQUIRE(arena.prepare(*device, {{.elements = 300}, {.elements = 100}}, Type::fp32));
  const std::int64_t slots = plan_slots({{.elements = 300}, {.elements = 100}}, size, true).slots;
  const char* end = nullptr;
  for (std::int64_t call = 0; call < slots; ++call)
    for (const std::size_t index : {0, 1}) {
      const Tensor tensor = arena.operand(call, index);
      CHECK(tensor.as<char>() >= end);
      end = tensor.as<char>() + tensor.bytes();
    }
  CHECK(arena.operand(slots, 0).data == arena.operand(0, 0).data);
}

TEST_CASE("memory holds numbers between -1 and 1 of the type asked for, none of them twice in a row") {
  const auto device = make_cpu_device();
  Arena arena(*device, size);
  for (const Type type : all_types) {
    REQUIRE(arena.prepare(*device, {{.elements = 1000, .type = type}}, type));
    const Numbers numbers = numbers_of(*device, arena.operand(3, 0));
    CHECK(largest_of(numbers) <= 1);
    CHECK(largest_of(numbers) > 0.9);
    CHECK(std::set<double>(numbers.begin(), numbers.end()).size() > 100);
  }
}

}  // namespace lockstep::harness::arena_test
