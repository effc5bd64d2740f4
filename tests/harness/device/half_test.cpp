#include "validate/harness/device/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/base/random.h"

namespace lockstep::harness::half_test {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The definition: the multiple of the last place's value that is nearest, ties to the even multiple.
double nearest(double value, int precision, int smallest_exponent) {
  if (value == 0)
    return value;
  const int exponent = std::max(std::ilogb(value), smallest_exponent);
  const double place = std::ldexp(1.0, exponent - (precision - 1));
  return std::nearbyint(value / place) * place;  // the default mode is to nearest even
}

float any_float(std::uint64_t index) {
  return float_of(static_cast<std::uint32_t>(keyed_random(9, index, 0)));
}

TEST_CASE("every fp16 number survives being widened and stored") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float wide = load(half);
    if (std::isnan(wide)) {
      REQUIRE((bits & 0x7fffU) > 0x7c00U);
      REQUIRE(std::isnan(load(half_of(wide))));
    } else {
      REQUIRE(half_of(wide).bits == bits);
    }
  }
}

TEST_CASE("every bf16 number survives being widened and stored") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bfloat16 half{static_cast<std::uint16_t>(bits)};
    const float wide = load(half);
    if (std::isnan(wide))
      REQUIRE(std::isnan(load(bfloat16_of(wide))));
    else
      REQUIRE(bfloat16_of(wide).bits == bits);
  }
}

TEST_CASE("widened numbers have the values of IEEE 754") {
  CHECK(load(Half{0x3c00}) == 1.0F);
  CHECK(load(Half{0xc000}) == -2.0F);
  CHECK(load(Half{0x7bff}) == 65504.0F);  // (2 - 2^-10) 2^15
  CHECK(load(Half{0x0400}) == 0x1p-14F);  // the smallest normal number
  CHECK(load(Half{0x0001}) == 0x1p-24F);  // the smallest of all
  CHECK(load(Half{0x03ff}) == 1023 * 0x1p-24F);
  CHECK(load(Half{0x7c00}) == infinity);
  CHECK(load(Half{0xfc00}) == -infinity);
  CHECK(std::signbit(load(Half{0x8000})));
  CHECK(load(Bfloat16{0x3f80}) == 1.0F);
  CHECK(load(Bfloat16{0xff80}) == -infinity);
}

TEST_CASE("ties between two fp16 numbers go to the even one") {
  // Between 1 and 1 + 2^-10, and between 1 + 2^-10 and 1 + 2^-9.
  CHECK(half_of(1 + 0x1p-11F).bits == 0x3c00);
  CHECK(half_of(1 + 0x1p-11F + 0x1p-23F).bits == 0x3c01);
  CHECK(half_of(1 + 0x1.8p-10F).bits == 0x3c02);
  // Between subnormal neighbours: 0.5, 1.5 and 2.5 times the smallest.
  CHECK(half_of(0x1p-25F).bits == 0);
  CHECK(half_of(0x1.000002p-25F).bits == 1);
  CHECK(half_of(0x1.8p-24F).bits == 2);
  CHECK(half_of(0x1.4p-23F).bits == 2);
  // Between the largest subnormal and the smallest normal number: the latter's fraction is even.
  CHECK(half_of(1023.5F * 0x1p-24F).bits == 0x0400);
}

TEST_CASE("fp16 becomes infinite from half a place above its largest number") {
  CHECK(half_of(65504.0F).bits == 0x7bff);
  CHECK(half_of(std::nextafter(65520.0F, 0.0F)).bits == 0x7bff);
  CHECK(half_of(65520.0F).bits == 0x7c00);
  CHECK(half_of(-65520.0F).bits == 0xfc00);
  CHECK(half_of(infinity).bits == 0x7c00);
  CHECK(half_of(std::numeric_limits<float>::max()).bits == 0x7c00);
}

TEST_CASE("ties between two bf16 numbers go to the even one") {
  CHECK(bfloat16_of(1 + 0x1p-8F).bits == 0x3f80);
  CHECK(bfloat16_of(1 + 0x1p-8F + 0x1p-23F).bits == 0x3f81);
  CHECK(bfloat16_of(1 + 0x1.8p-7F).bits == 0x3f82);
  CHECK(bfloat16_of(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16_of(-infinity).bits == 0xff80);
  CHECK(std::isnan(load(bfloat16_of(float_of(0x7f800001U)))));  // whose payload is in the bits that are lost
}

TEST_CASE("any float is rounded to the nearest number of 16 bits") {
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const float value = any_float(i);
    if (!is_finite(value))
      continue;
    const double as_bf16 = nearest(static_cast<double>(value), 8, -126);
    REQUIRE(static_cast<double>(load(bfloat16_of(value))) ==
            (std::abs(as_bf16) >= 0x1p128 ? std::copysign(HUGE_VAL, as_bf16) : as_bf16));
    // Exponents of fp16 and a little beyond: a draw of 32 bits seldom has one.
    const float small = std::ldexp(std::ldexp(value, -std::ilogb(value)), static_cast<int>(i % 44) - 27);
    const double as_fp16 = nearest(static_cast<double>(small), 11, -14);
    REQUIRE(static_cast<double>(load(half_of(small))) ==
            (std::abs(as_fp16) >= 65536 ? std::copysign(HUGE_VAL, as_fp16) : as_fp16));
  }
}

TEST_CASE("what is finite is told from the bits") {
  CHECK(is_finite(std::numeric_limits<float>::max()));
  CHECK(is_finite(0x1p-149F));
  CHECK_FALSE(is_finite(infinity));
  CHECK_FALSE(is_finite(-infinity));
  CHECK_FALSE(is_finite(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace lockstep::harness::half_test
