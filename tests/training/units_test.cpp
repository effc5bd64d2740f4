// What FSDP gathers at once.

#include "sim/training/units.h"

#include <doctest/doctest.h>

namespace lockstep::training_units_test {

// An embedding, three blocks of two layers with 10 and 20 elements, a head.
Job three_blocks() {
  Job job;
  const auto add = [&](std::int64_t block, std::int64_t elements) {
    LayerWork layer;
    layer.block = block;
    layer.gradients = {static_cast<std::uint32_t>(job.gradients.size())};
    job.gradients.push_back({.name = "p", .bytes = Bytes{elements * 4}, .element_bytes = 4});
    job.layers.push_back(std::move(layer));
  };
  add(-1, 100);
  for (const std::int64_t block : {0, 1, 2}) {
    add(block, 10);
    add(block, 20);
  }
  add(-1, 200);
  return job;
}

std::vector<std::int64_t> sizes(const Units& units) {
  std::vector<std::int64_t> elements;
  for (const Unit& unit : units.units) elements.push_back(unit.elements);
  return elements;
}

TEST_CASE("Each block is a unit, and what is outside of them is the root") {
  const Units units = find_units(three_blocks(), {.kind = WrapKind::block});
  CHECK(sizes(units) == std::vector<std::int64_t>{300, 30, 30, 30});
  CHECK(units.unit_of_layer == std::vector<std::uint32_t>{0, 1, 1, 2, 2, 3, 3, 0});
}

TEST_CASE("By size blocks join a unit until it has enough elements") {
  CHECK(sizes(find_units(three_blocks(), {.kind = WrapKind::size, .elements = 31})) ==
        std::vector<std::int64_t>{300, 60, 30});
}

TEST_CASE("Unwrapped, the whole model is the root") {
  CHECK(sizes(find_units(three_blocks(), {.kind = WrapKind::none})) == std::vector<std::int64_t>{390});
}

}  // namespace lockstep::training_units_test
