#include "sim/base/units.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "sim/base/id.h"
#include "sim/base/random.h"

namespace lockstep::base_units_test {

constexpr std::int64_t limit = std::int64_t{1} << 62;

template <class Left, class Right>
concept Addable = requires(Left left, Right right) {
  left + right;
};

// The definition, in 128 bits and without shortcuts.
std::int64_t exact_time(std::int64_t amount, std::int64_t rate) {
  const auto picoseconds =
      static_cast<Unsigned128>(amount) * static_cast<Unsigned128>(picoseconds_per_second);
  const auto divisor = static_cast<Unsigned128>(rate);
  return static_cast<std::int64_t>(picoseconds / divisor + (picoseconds % divisor == 0 ? 0 : 1));
}

TEST_CASE("Quantities of different things do not add, and instants do not add at all") {
  static_assert(Addable<Bytes, Bytes>);
  static_assert(!Addable<Bytes, Bandwidth>);
  static_assert(!Addable<Bytes, std::int64_t>);
  static_assert(Addable<Time, Duration>);
  static_assert(!Addable<Time, Time>);
  static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
  static_assert(sizeof(Bytes) == sizeof(std::int64_t));
  CHECK(Bytes{3} + Bytes{4} == Bytes{3 + 4});
  CHECK(Bytes{3} - Bytes{4} == Bytes{3 - 4});
  CHECK(Bytes{3} * 4 == Bytes{3 * 4});
  CHECK(Bytes{3} < Bytes{4});
}

TEST_CASE("Each named duration is a thousand of the one before") {
  CHECK(Duration::nanoseconds(1) == Duration::picoseconds(1) * 1000);
  CHECK(Duration::microseconds(1) == Duration::nanoseconds(1) * 1000);
  CHECK(Duration::milliseconds(1) == Duration::microseconds(1) * 1000);
  CHECK(Duration::seconds(1) == Duration::milliseconds(1) * 1000);
  CHECK(Duration::seconds(3).in_seconds() == 3.0);
}

TEST_CASE("Time is affine: an instant plus what lies between two instants is the later one") {
  const Time early = Time{} + Duration::microseconds(2);
  const Time late = early + Duration::microseconds(5);
  CHECK(late - early == Duration::microseconds(5));
  CHECK(early + (late - early) == late);
  CHECK(late - Duration::microseconds(5) == early);
  CHECK(late.since_start() == Duration::microseconds(2 + 5));
  CHECK(early < late);
}

TEST_CASE("Overflow is a failed check, not a wrapped number") {
  const Bytes largest{INT64_MAX};
  CHECK(largest - Bytes{1} + Bytes{1} == largest);
  CHECK_THROWS_AS(largest + Bytes{1}, InternalError);
  CHECK_THROWS_AS(Bytes{INT64_MIN} - Bytes{1}, InternalError);
  CHECK_THROWS_AS(largest * 2, InternalError);
  CHECK_THROWS_AS(Duration::seconds(INT64_MAX), InternalError);
  CHECK_THROWS_AS(time_to_move(Bytes{limit}, Bandwidth{1}), InternalError);
  CHECK_THROWS_AS(scaled(Duration::picoseconds(limit), 4, 1), InternalError);
}

TEST_CASE("A failed check names the file without its folder, the belief and the expression") {
  try {
    LOCKSTEP_CHECK(1 + 1 == 3, "arithmetic is odd");
    FAIL("the check did not throw");
  } catch (const InternalError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with("units_test.cpp:"));
    CHECK(message.ends_with("believed: arithmetic is odd (1 + 1 == 3)"));
  }
}

TEST_CASE("Impossible work fails a check") {
  CHECK_THROWS_AS(time_to_move(Bytes{1}, Bandwidth{0}), InternalError);
  CHECK_THROWS_AS(time_to_move(Bytes{-1}, Bandwidth{1}), InternalError);
  CHECK_THROWS_AS(time_to_compute(Flops{1}, FlopRate{-1}), InternalError);
  CHECK_THROWS_AS(share(Bandwidth{1}, 0), InternalError);
  CHECK_THROWS_AS(split(Bytes{1}, 2, 2), InternalError);
  CHECK_THROWS_AS(moved_in(Duration::picoseconds(-1), Bandwidth{1}), InternalError);
  CHECK_THROWS_AS(scaled(Duration::seconds(1), 1, 0), InternalError);
}

TEST_CASE("A time rounds up by less than a picosecond, and exact times are exact") {
  // 25 MiB / (450 GB/s) = 26214400 * 10^12 / (450 * 10^9) ps = 58254222.2 ps.
  CHECK(time_to_move(Bytes{26'214'400}, Bandwidth{450'000'000'000}).picoseconds() == 58'254'223);
  CHECK(time_to_move(Bytes{450}, Bandwidth{450'000'000'000}) == Duration::nanoseconds(1));
  CHECK(time_to_move(Bytes{0}, Bandwidth{7}) == Duration::zero());
  CHECK(time_to_compute(Flops{312}, FlopRate{312'000'000'000'000}) == Duration::picoseconds(1));
  CHECK(time_to_compute(Flops{313}, FlopRate{312'000'000'000'000}) == Duration::picoseconds(2));
}

TEST_CASE("Times and amounts equal their 128-bit definitions, where 64 bits would do and where not") {
  constexpr std::int64_t boundary = static_cast<std::int64_t>(UINT64_MAX / 1'000'000);
  for (std::int64_t amount = boundary - 3; amount < boundary + 3; ++amount) {
    for (const std::int64_t rate : {boundary - 2, boundary - 1, boundary, boundary + 1, limit}) {
      CAPTURE(amount);
      CAPTURE(rate);
      CHECK(time_to_move(Bytes{amount}, Bandwidth{rate}).picoseconds() == exact_time(amount, rate));
    }
  }
  CHECK(rc::check("any amount at any rate", [] {
    // The rate is at least amount / 10^6, so that the time is at most 10^18 ps.
    const auto amount = *rc::gen::inRange<std::int64_t>(0, limit) >> *rc::gen::inRange(0, 62);
    const auto rate =
        amount / 1'000'000 + 1 + (*rc::gen::inRange<std::int64_t>(0, limit / 2) >> *rc::gen::inRange(0, 62));
    RC_ASSERT(time_to_move(Bytes{amount}, Bandwidth{rate}).picoseconds() == exact_time(amount, rate));
  }));
  CHECK(rc::check("any time at any rate", [] {
    const auto time = *rc::gen::inRange<std::int64_t>(0, limit) >> *rc::gen::inRange(0, 62);
    const auto rate = *rc::gen::inRange<std::int64_t>(0, picoseconds_per_second) >> *rc::gen::inRange(0, 40);
    const auto exact = static_cast<Unsigned128>(time) * static_cast<Unsigned128>(rate) /
                       static_cast<Unsigned128>(picoseconds_per_second);
    RC_ASSERT(moved_in(Duration::picoseconds(time), Bandwidth{rate}).count() ==
              static_cast<std::int64_t>(exact));
  }));
}

TEST_CASE("More bytes never arrive sooner, and a faster link is never slower") {
  CHECK(rc::check([] {
    const Bytes amount{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
    const Bandwidth rate{*rc::gen::inRange<std::int64_t>(1'000'000, 1'000'000'000'000)};
    const Bytes more = amount + Bytes{*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
    const Bandwidth faster = rate + Bandwidth{*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
    RC_ASSERT(time_to_move(amount, rate) <= time_to_move(more, rate));
    RC_ASSERT(time_to_move(amount, faster) <= time_to_move(amount, rate));
  }));
}

TEST_CASE("The time to move some bytes is the first instant at which they have moved") {
  CHECK(rc::check([] {
    const Bytes amount{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000)};
    const Bandwidth rate{*rc::gen::inRange<std::int64_t>(1'000'000, 1'000'000'000'000)};
    const Duration time = time_to_move(amount, rate);
    RC_ASSERT(moved_in(time, rate) >= amount);
    RC_ASSERT(moved_in(time - Duration::picoseconds(1), rate) < amount);
  }));
}

TEST_CASE("Shares never exceed the whole") {
  CHECK(share(Bandwidth{10}, 3) == Bandwidth{3});
  CHECK(rc::check([] {
    const Bandwidth whole{*rc::gen::inRange<std::int64_t>(0, limit)};
    const auto parts = *rc::gen::inRange<std::int64_t>(1, 10'000);
    RC_ASSERT(share(whole, parts) * parts <= whole);
    RC_ASSERT(whole - share(whole, parts) * parts < Bandwidth{parts});
  }));
}

TEST_CASE("A split sums exactly, its parts differ by at most one byte, and the longer ones come first") {
  CHECK(split(Bytes{10}, 4, 0) == Bytes{3});
  CHECK(split(Bytes{10}, 4, 2) == Bytes{2});
  CHECK(rc::check([] {
    const Bytes total{*rc::gen::inRange<std::int64_t>(0, limit)};
    const auto parts = *rc::gen::inRange<std::int64_t>(1, 300);
    Bytes sum;
    for (std::int64_t index = 0; index < parts; ++index) {
      sum += split(total, parts, index);
      RC_ASSERT(split(total, parts, 0) - split(total, parts, index) <= Bytes{1});
      RC_ASSERT(split(total, parts, index) >= split(total, parts, std::min(index + 1, parts - 1)));
    }
    RC_ASSERT(sum == total);
  }));
}

TEST_CASE("Scaling rounds up and reaches past 64 bits in between") {
  CHECK(scaled(Duration::picoseconds(10), 1, 3) == Duration::picoseconds(4));
  CHECK(scaled(Duration::picoseconds(limit), limit, limit) == Duration::picoseconds(limit));
  CHECK(scaled(Duration::seconds(5), 12, 10) == Duration::seconds(6));
}

// A product of 2^40 and 10^6 parts is past 2^59, and of 2^62 parts past 64 bits.
constexpr std::int64_t large_counts[]{0, 1, 7, 999'999, 1'000'001, std::int64_t{1} << 40U, limit};

TEST_CASE("One scales and divides nothing, whichever way it rounds") {
  for (const std::int64_t count : large_counts) {
    CHECK(scaled_up(count, Ratio::one()) == count);
    CHECK(scaled_down(count, Ratio::one()) == count);
    CHECK(divided_up(count, Ratio::one()) == count);
    CHECK(scaled(Duration::picoseconds(count), Ratio::one()) == Duration::picoseconds(count));
    CHECK(divided_up(Duration::picoseconds(count), Ratio::one()) == Duration::picoseconds(count));
    CHECK(scaled_down(Bandwidth{count}, Ratio::one()) == Bandwidth{count});
    CHECK(divided_down(Bandwidth{count}, Ratio::one()) == Bandwidth{count});
    CHECK(scaled_up(Ratio::parts_per_million(count), Ratio::one()).parts_per_million() == count);
    CHECK(scaled_down(Ratio::parts_per_million(count), Ratio::one()).parts_per_million() == count);
    CHECK(divided_down(Ratio::parts_per_million(count), Ratio::one()).parts_per_million() == count);
  }
  CHECK(scaled_to_nearest(999'999, Ratio::one()) == 999'999);
  CHECK(Ratio::percent(100) == Ratio::one());
  CHECK(Ratio{} == Ratio::parts_per_million(0));
}

// A third of one is 333,333 parts, which makes 2.999997 of 9: 3 up, 2 down, 3 to the nearest. Of 9 it leaves
// 27.000027 where it divides.
TEST_CASE("A ratio rounds as the operation says") {
  const Ratio third = share(Ratio::one(), 3);
  CHECK(third == Ratio::parts_per_million(333'333));
  CHECK(scaled_up(9, third) == 3);
  CHECK(scaled_down(9, third) == 2);
  CHECK(scaled_to_nearest(9, third) == 3);
  CHECK(divided_up(9, third) == 28);
  CHECK(scaled(Duration::picoseconds(9), third) == Duration::picoseconds(3));
  CHECK(divided_up(Duration::picoseconds(9), third) == Duration::picoseconds(28));
  CHECK(scaled_down(FlopRate{9}, third) == FlopRate{2});
  CHECK(divided_down(FlopRate{9}, third) == FlopRate{27});
  CHECK(ratio_up(1, 3) == third + Ratio::smallest());
  CHECK(ratio_down(1, 3) == third);
}

TEST_CASE("Half of one rounds up where the nearest is asked for") {
  CHECK(scaled_to_nearest(1, Ratio::percent(50)) == 1);
  CHECK(scaled_to_nearest(1, Ratio::percent(50) - Ratio::smallest()) == 0);
  CHECK(scaled_to_nearest(3, Ratio::percent(50)) == 2);
}

// 0.333333 * 0.333333 is 0.111110888889, and 0.333333 / 0.333334 is 0.999997000006.
TEST_CASE("A ratio of a ratio is whole parts again") {
  const Ratio third = ratio_down(1, 3);
  CHECK(scaled_down(third, third) == Ratio::parts_per_million(111'110));
  CHECK(scaled_up(third, third) == Ratio::parts_per_million(111'111));
  CHECK(divided_down(third, ratio_up(1, 3)) == Ratio::parts_per_million(999'997));
}

// Of 2,500,001 bytes/s the whole millions are 2: half of them is 10^6, half of all 1,250,000. A rate of 10^12 holds
// 666,666 times 1.5 million: so many millions are left of it.
TEST_CASE("A rate in whole millions is no more than the exact one") {
  const Bandwidth rate{2'500'001};
  CHECK(scaled_in_millions(rate, Ratio::percent(50)) == Bandwidth{1'000'000});
  CHECK(scaled_down(rate, Ratio::percent(50)) == Bandwidth{1'250'000});
  const Bandwidth full{1'000'000'000'000};
  CHECK(divided_in_millions(full, Ratio::percent(150)) == Bandwidth{666'666'000'000});
  CHECK(divided_down(full, Ratio::percent(150)) == Bandwidth{666'666'666'666});
}

TEST_CASE("Ratios add, subtract and may be below zero") {
  CHECK(Ratio::one() + Ratio::percent(-20) == Ratio::percent(80));
  CHECK(Ratio::percent(20) - Ratio::one() == Ratio::percent(-80));
  CHECK(Ratio::percent(20) * 6 == Ratio::percent(120));
  CHECK(Ratio::percent(-1) < Ratio{});
  CHECK(Ratio::parts_per_million(123'456).in_real() == 0.123456);
}

TEST_CASE("Ratios beyond 64 bits throw, and so does what they make of a count") {
  const Ratio largest = Ratio::parts_per_million(INT64_MAX);
  CHECK_THROWS_AS(largest + Ratio::smallest(), OverflowError);
  CHECK_THROWS_AS(Ratio{} - largest - Ratio::one(), OverflowError);
  CHECK_THROWS_AS(largest * 2, OverflowError);
  CHECK_THROWS_AS(Ratio::percent(limit), OverflowError);
  CHECK_THROWS_AS(scaled_up(limit, Ratio::one() * 2), OverflowError);
  CHECK_THROWS_AS(scaled_down(limit, Ratio::one() * 2), OverflowError);
  CHECK_THROWS_AS(scaled_to_nearest(limit, Ratio::one()), OverflowError);
  CHECK_THROWS_AS(divided_up(limit, Ratio::percent(50)), OverflowError);
  CHECK_THROWS_AS(ratio_up(limit, 1), OverflowError);
}

TEST_CASE("What is below zero scales nothing, and zero divides nothing") {
  CHECK_THROWS_AS(scaled_up(1, Ratio::percent(-1)), InternalError);
  CHECK_THROWS_AS(scaled_down(-1, Ratio::one()), InternalError);
  CHECK_THROWS_AS(scaled(Duration::picoseconds(1), Ratio::percent(-1)), InternalError);
  CHECK_THROWS_AS(divided_up(1, Ratio{}), InternalError);
  CHECK_THROWS_AS(divided_down(Bandwidth{1}, Ratio{}), InternalError);
  CHECK_THROWS_AS(ratio_down(1, 0), InternalError);
}

TEST_CASE("An id is invalid until it is given an index, and opens only its own vector") {
  using RankId = Id<struct RankTag>;
  using LinkId = Id<struct LinkTag>;
  static_assert(
      !std::is_invocable_v<decltype([](auto& vector, auto id) -> decltype(vector[id]) { return vector[id]; }),
                           IdVector<RankId, int>&, LinkId>);
  CHECK_FALSE(RankId{}.is_valid());
  IdVector<RankId, int> speeds;
  const RankId first = speeds.push_back(10);
  const RankId second = speeds.push_back(20);
  CHECK(first < second);
  CHECK(speeds[second] == 20);
  CHECK(speeds.contains(second));
  CHECK_FALSE(speeds.contains(RankId{}));
  int sum = 0;
  for (const RankId rank : speeds.ids()) {
    sum += speeds[rank];
  }
  CHECK(sum == 10 + 20);
}

TEST_CASE("A random number depends on each part of its key and on nothing else") {
  CHECK(keyed_random(1, 2, 3) == keyed_random(1, 2, 3));
  CHECK(keyed_random(1, 2, 3) != keyed_random(1, 3, 2));
  CHECK(keyed_random(1, 2, 3) != keyed_random(2, 1, 3));
  // Pinned: results are the same on every machine. The first output of splitmix64 from state 0, as published.
  static_assert(mixed_bits(0) == 0xe220a8397b1dcdafU);
}

TEST_CASE("Draws below a bound are below it and spread evenly") {
  constexpr std::uint64_t bound = 10;
  constexpr std::uint64_t draws = 10'000;
  int seen[bound] = {};
  for (std::uint64_t op = 0; op < draws; ++op) {
    ++seen[random_below(keyed_random(7, 0, op), bound)];
  }
  for (const int count : seen) {
    // Binomial: 1000 expected, deviation sqrt(10000 * 0.1 * 0.9) = 30; six deviations either way.
    CHECK(count > 1000 - 6 * 30);
    CHECK(count < 1000 + 6 * 30);
  }
}

}  // namespace lockstep::base_units_test
