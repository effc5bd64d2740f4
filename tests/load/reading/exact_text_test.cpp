#include "sim/load/reading/exact_text.h"

#include <doctest/doctest.h>

#include <variant>

#include "sim/base/quantity_text.h"
#include "sim/base/random.h"

namespace lockstep::exact_text_test {

TEST_CASE("a quantity is written in the unit that people would choose") {
  CHECK(exact_text(Bytes{40LL << 30}) == "40 GiB");
  CHECK(exact_text(Bytes{1'500}) == "1.5 kB");
  CHECK(exact_text(Bytes{0}) == "0 B");
  CHECK(exact_text(Bandwidth{25'000'000'000}) == "25 GB/s");
  CHECK(exact_text(Duration::microseconds(103'600)) == "103.6 ms");
  CHECK(exact_text(Duration::zero()) == "0 ps");
  CHECK(exact_text(FlopRate{312'000'000'000'000}) == "312 TFLOP/s");
  CHECK(exact_text(Flops{2'147'000'000}) == "2.147 GFLOP");
  CHECK(exact_power_text(400'000) == "400 W");
}

TEST_CASE("whatever is written reads back to the same integer") {
  for (std::uint64_t draw = 0; draw < 2'000; ++draw) {
    // Every magnitude up to 2^62.
    const std::uint64_t bits = keyed_random(1, draw, 0);
    const auto count = static_cast<std::int64_t>((bits >> 2U) >> (draw % 62));
    CAPTURE(count);
    CHECK(std::get<Bytes>(parse_bytes(exact_text(Bytes{count}))) == Bytes{count});
    CHECK(std::get<Duration>(parse_duration(exact_text(Duration::picoseconds(count)))) ==
          Duration::picoseconds(count));
    CHECK(std::get<Flops>(parse_flops(exact_text(Flops{count}))) == Flops{count});
    CHECK(std::get<std::int64_t>(parse_power(exact_power_text(count))) == count);
    if (count > 0) {
      CHECK(std::get<Bandwidth>(parse_bandwidth(exact_text(Bandwidth{count}))) == Bandwidth{count});
    }
  }
}

}  // namespace lockstep::exact_text_test
