#include "validate/harness/gpu_bench/interference_cases.h"

#include <doctest/doctest.h>

#include <set>

namespace lockstep::harness::interference_cases_test {

OccupantWord word(std::uint32_t multiprocessor, bool was_stopped = true) {
  return {.was_stopped = was_stopped, .multiprocessor = multiprocessor, .seconds = 0.5, .bytes = 20e9};
}

TEST_CASE("1 to 32 multiprocessors are held, each at rates from none to full") {
  std::set<int> held;
  std::set<std::string> rates;
  for (const InterferenceCase& one : interference_cases()) {
    held.insert(one.multiprocessors);
    rates.insert(one.rate.name);
  }
  CHECK(*held.begin() == 1);
  CHECK(*held.rbegin() == 32);
  CHECK(rates == std::set<std::string>{"0", "10", "20", "40", "full"});
  CHECK(interference_cases().front().multiprocessors == 16);
}

TEST_CASE("a row counts only where each block held a multiprocessor of its own until it was told to end") {
  CHECK(failure_of({word(3), word(7)}).empty());
  CHECK(failure_of({word(3), word(7, false)}) == "failed: a block ended before it was told to");
  CHECK(failure_of({word(3), word(7), word(3)}) == "failed: 3 blocks held 2 multiprocessors");
}

// 20 GB in half a second is 40 GB/s, of each of two.
TEST_CASE("what the blocks take of the memory is the sum of their rates") {
  CHECK(gigabytes_per_second({word(3), word(7)}) == doctest::Approx(80));
  CHECK(gigabytes_per_second({}) == 0);
}

// At 20 GB/s 131,072 bytes take 6.5536 us; at 1,500 MHz that is 9,830 cycles.
TEST_CASE("a rate becomes cycles between chunks") {
  CHECK(chunk_cycles({.name = "20", .gigabytes_per_second = 20}, 131'072, 1500) == 9830);
  CHECK(chunk_cycles({.name = "full"}, 131'072, 1500) == 0);
  CHECK(chunk_cycles({.name = "0"}, 131'072, 1500) == -1);
}

}  // namespace lockstep::harness::interference_cases_test
