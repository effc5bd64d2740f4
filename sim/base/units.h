#pragma once

// Physical quantities as strong integer types, and the only arithmetic that may mix them.
//
// Problem: floating-point time depends on the order of additions, and a bare integer does not say its unit.
// Idea: int64 counts of picoseconds, bytes, bytes/s, FLOPs, FLOP/s and parts per million. One unit never converts
// into another except through the five named cross operations, which go through 128 bits: times round up, shares and
// amounts moved round down. A result is therefore never optimistic, and the same on every compiler. A ratio scales
// any of them, with its rounding in the name.
// Invariant: every operation is exact or rounded as its name says; overflow throws, and division by zero fails
// a check. Cost: about 3 ns for a cross operation, a predicted branch for the others.

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "sim/base/check.h"

namespace lockstep {

// What a ratio is made of, and what readers allow of most things.
inline constexpr std::int64_t million = 1'000'000;
inline constexpr std::int64_t mebi = 1024 * 1024;

// In whole pieces of `by`, the last of which need not be full. No amount is negative.
template <std::integral Count>
constexpr Count divided_up(Count amount, std::type_identity_t<Count> by) {
  return static_cast<Count>(amount / by + (amount % by != 0 ? 1 : 0));
}

// Quantities grow out of 64 bits by the user's numbers alone: readers refuse what is too large where it stands,
// and this is the net below them. main ends it with 2.
struct OverflowError : InternalError {
  using InternalError::InternalError;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_overflow(const char* what) {
  throw OverflowError(std::string(what) + " outgrows 64 bits");
}

// The extension is marked because -Wpedantic rightly knows no 128-bit integer.
__extension__ typedef unsigned __int128 Unsigned128;

namespace arithmetic {

constexpr std::int64_t checked_sum(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(left, right, &result))
    throw_overflow("a sum of quantities");
  return result;
}

constexpr std::int64_t checked_difference(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(left, right, &result))
    throw_overflow("a difference of quantities");
  return result;
}

constexpr std::int64_t checked_product(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(left, right, &result))
    throw_overflow("a product of quantities");
  return result;
}

template <class Unsigned>
constexpr std::int64_t checked_narrow(Unsigned wide) {
  if (wide > static_cast<Unsigned>(INT64_MAX))
    throw_overflow("a quantity");
  return static_cast<std::int64_t>(wide);
}

}  // namespace arithmetic

// An amount of one thing; Tag names the thing. Signed, so that a difference is a quantity too.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }

  constexpr Quantity& operator+=(Quantity other) {
    count_ = arithmetic::checked_sum(count_, other.count_);
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ = arithmetic::checked_difference(count_, other.count_);
    return *this;
  }
  friend constexpr Quantity operator+(Quantity left, Quantity right) { return left += right; }
  friend constexpr Quantity operator-(Quantity left, Quantity right) { return left -= right; }
  friend constexpr Quantity operator*(Quantity quantity, std::int64_t times) {
    return Quantity(arithmetic::checked_product(quantity.count_, times));
  }
  friend constexpr Quantity operator*(std::int64_t times, Quantity quantity) { return quantity * times; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  std::int64_t count_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Bandwidth = Quantity<struct BandwidthTag>;  // bytes per second
using Flops = Quantity<struct FlopsTag>;
using FlopRate = Quantity<struct FlopRateTag>;  // FLOPs per second
// Whole seconds, for what 53 days of picoseconds cannot hold: a mean time between failures, a training
// deadline.
using Horizon = Quantity<struct HorizonTag>;

// A factor, or a part of something, in whole parts per million: what is calibrated or stated as a ratio becomes one
// at load, so that nothing that is simulated depends on a floating-point number. Signed, so that a distance from
// one is a ratio too: 1 + x is Ratio::one() + x.
class Ratio {
 public:
  constexpr Ratio() = default;
  static constexpr Ratio one() { return Ratio(million); }
  // Above zero: what is divided by is no less.
  static constexpr Ratio smallest() { return Ratio(1); }
  static constexpr Ratio percent(std::int64_t count) { return Ratio(million / 100) * count; }
  static constexpr Ratio parts_per_million(std::int64_t count) { return Ratio(count); }

  constexpr std::int64_t parts_per_million() const { return parts_; }
  // For reports and files only: the nearest double of k / 10^6 prints as that decimal and reads back to k.
  constexpr double in_real() const { return static_cast<double>(parts_) / static_cast<double>(million); }

  constexpr Ratio& operator+=(Ratio other) {
    parts_ = arithmetic::checked_sum(parts_, other.parts_);
    return *this;
  }
  constexpr Ratio& operator-=(Ratio other) {
    parts_ = arithmetic::checked_difference(parts_, other.parts_);
    return *this;
  }
  friend constexpr Ratio operator+(Ratio left, Ratio right) { return left += right; }
  friend constexpr Ratio operator-(Ratio left, Ratio right) { return left -= right; }
  friend constexpr Ratio operator*(Ratio ratio, std::int64_t times) {
    return Ratio(arithmetic::checked_product(ratio.parts_, times));
  }
  friend constexpr Ratio operator*(std::int64_t times, Ratio ratio) { return ratio * times; }
  friend constexpr auto operator<=>(Ratio, Ratio) = default;

 private:
  constexpr explicit Ratio(std::int64_t parts) : parts_(parts) {}

  std::int64_t parts_ = 0;
};

inline constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;

// A length of time in whole picoseconds.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration zero() { return Duration(0); }
  static constexpr Duration picoseconds(std::int64_t count) { return Duration(count); }
  static constexpr Duration nanoseconds(std::int64_t count) { return Duration(1'000) * count; }
  static constexpr Duration microseconds(std::int64_t count) { return Duration(1'000'000) * count; }
  static constexpr Duration milliseconds(std::int64_t count) { return Duration(1'000'000'000) * count; }
  static constexpr Duration seconds(std::int64_t count) { return Duration(picoseconds_per_second) * count; }

  constexpr std::int64_t picoseconds() const { return picoseconds_; }
  // For reports only: nothing that is simulated may depend on it.
  constexpr double in_seconds() const {
    return static_cast<double>(picoseconds_) / static_cast<double>(picoseconds_per_second);
  }

  constexpr Duration& operator+=(Duration other) {
    picoseconds_ = arithmetic::checked_sum(picoseconds_, other.picoseconds_);
    return *this;
  }
  constexpr Duration& operator-=(Duration other) {
    picoseconds_ = arithmetic::checked_difference(picoseconds_, other.picoseconds_);
    return *this;
  }
  friend constexpr Duration operator+(Duration left, Duration right) { return left += right; }
  friend constexpr Duration operator-(Duration left, Duration right) { return left -= right; }
  friend constexpr Duration operator*(Duration duration, std::int64_t times) {
    return Duration(arithmetic::checked_product(duration.picoseconds_, times));
  }
  friend constexpr Duration operator*(std::int64_t times, Duration duration) { return duration * times; }
  friend constexpr auto operator<=>(Duration, Duration) = default;

 private:
  constexpr explicit Duration(std::int64_t count) : picoseconds_(count) {}

  std::int64_t picoseconds_ = 0;
};

// An instant. Affine: instants are subtracted, never added; Time{} is the start of the simulation.
class Time {
 public:
  constexpr Time() = default;
  constexpr explicit Time(Duration since_start) : since_start_(since_start) {}

  constexpr Duration since_start() const { return since_start_; }

  constexpr Time& operator+=(Duration elapsed) {
    since_start_ += elapsed;
    return *this;
  }
  friend constexpr Time operator+(Time time, Duration elapsed) { return time += elapsed; }
  friend constexpr Time operator+(Duration elapsed, Time time) { return time += elapsed; }
  friend constexpr Time operator-(Time time, Duration elapsed) { return Time(time.since_start_ - elapsed); }
  friend constexpr Duration operator-(Time left, Time right) {
    return left.since_start_ - right.since_start_;
  }
  friend constexpr auto operator<=>(Time, Time) = default;

 private:
  Duration since_start_;
};

namespace arithmetic {

// ceil(left * right / divisor), through 128 bits where 64 do not hold the product.
constexpr std::int64_t product_divided_up(std::int64_t left, std::int64_t right, std::int64_t divisor) {
  std::uint64_t narrow = 0;
  if (!__builtin_mul_overflow(static_cast<std::uint64_t>(left), static_cast<std::uint64_t>(right), &narrow) &&
      !__builtin_add_overflow(narrow, static_cast<std::uint64_t>(divisor - 1), &narrow))
    return checked_narrow(narrow / static_cast<std::uint64_t>(divisor));
  const auto product = static_cast<Unsigned128>(left) * static_cast<Unsigned128>(right);
  return checked_narrow((product + static_cast<Unsigned128>(divisor - 1)) /
                        static_cast<Unsigned128>(divisor));
}

// floor(left * right / divisor), likewise.
constexpr std::int64_t product_divided_down(std::int64_t left, std::int64_t right, std::int64_t divisor) {
  std::uint64_t narrow = 0;
  if (!__builtin_mul_overflow(static_cast<std::uint64_t>(left), static_cast<std::uint64_t>(right), &narrow))
    return checked_narrow(narrow / static_cast<std::uint64_t>(divisor));
  const auto product = static_cast<Unsigned128>(left) * static_cast<Unsigned128>(right);
  return checked_narrow(product / static_cast<Unsigned128>(divisor));
}

constexpr void check_scale(std::int64_t amount, Ratio ratio) {
  LOCKSTEP_CHECK(amount >= 0, "what is scaled is not negative");
  LOCKSTEP_CHECK(ratio >= Ratio{}, "a scale is a ratio that is not negative");
}

constexpr void check_divisor(std::int64_t amount, Ratio ratio) {
  LOCKSTEP_CHECK(amount >= 0, "what is divided is not negative");
  LOCKSTEP_CHECK(ratio > Ratio{}, "what is divided by is above zero");
}

// ceil(amount * 10^12 / rate). Long division in two 64-bit steps lost: libgcc needs one instruction when the
// quotient fits 64 bits (2.7 ns against 4.0 ns).
constexpr Duration time_at_rate(std::int64_t amount, std::int64_t rate) {
  LOCKSTEP_CHECK(amount >= 0, "work is not negative");
  LOCKSTEP_CHECK(rate > 0, "work is done at a rate above zero");
  return Duration::picoseconds(product_divided_up(amount, picoseconds_per_second, rate));
}

}  // namespace arithmetic

// How long `amount` takes at `rate`, rounded up. Both may be as large as 2^62; the rate is above zero.
constexpr Duration time_to_move(Bytes amount, Bandwidth rate) {
  return arithmetic::time_at_rate(amount.count(), rate.count());
}

constexpr Duration time_to_compute(Flops work, FlopRate rate) {
  return arithmetic::time_at_rate(work.count(), rate.count());
}

// The bytes that have surely passed after `elapsed`, rounded down: moved_in(time_to_move(b, r), r) >= b.
constexpr Bytes moved_in(Duration elapsed, Bandwidth rate) {
  LOCKSTEP_CHECK(elapsed >= Duration::zero(), "time does not run backwards");
  LOCKSTEP_CHECK(rate >= Bandwidth{0}, "a rate is not negative");
  const auto product =
      static_cast<Unsigned128>(elapsed.picoseconds()) * static_cast<Unsigned128>(rate.count());
  return Bytes(arithmetic::checked_narrow(product / static_cast<Unsigned128>(picoseconds_per_second)));
}

// As much as the largest of `parts` equal parts holds.
constexpr Bytes divided_up(Bytes whole, std::int64_t parts) {
  return Bytes(divided_up(whole.count(), parts));
}

// An equal part of a capacity, rounded down so that the parts never exceed the whole.
constexpr Bandwidth share(Bandwidth whole, std::int64_t parts) {
  LOCKSTEP_CHECK(whole >= Bandwidth{0} && parts > 0, "a capacity is shared by at least one");
  return Bandwidth(whole.count() / parts);
}

// Part `index` of `parts` of a buffer. The remainder is spread over the first parts, one byte each, so the
// parts differ by at most one byte and their sum is exactly `total`.
constexpr Bytes split(Bytes total, std::int64_t parts, std::int64_t index) {
  LOCKSTEP_CHECK(total >= Bytes{0} && parts > 0, "a buffer is split into at least one part");
  LOCKSTEP_CHECK(index >= 0 && index < parts, "a part is one of the parts");
  const std::int64_t longer = index < total.count() % parts ? 1 : 0;
  return Bytes(total.count() / parts + longer);
}

// ceil(duration * numerator / denominator), for what a Ratio does not hold exactly.
constexpr Duration scaled(Duration duration, std::int64_t numerator, std::int64_t denominator) {
  LOCKSTEP_CHECK(duration >= Duration::zero(), "a scaled duration is not negative");
  LOCKSTEP_CHECK(numerator >= 0 && denominator > 0, "a scale is a ratio that is not negative");
  return Duration::picoseconds(
      arithmetic::product_divided_up(duration.picoseconds(), numerator, denominator));
}

// How slowdowns and calibrated efficiencies reach a time: rounded up.
constexpr Duration scaled(Duration duration, Ratio ratio) {
  return scaled(duration, ratio.parts_per_million(), million);
}

// What takes `duration` at full speed, at that part of it: rounded up.
constexpr Duration divided_up(Duration duration, Ratio ratio) {
  arithmetic::check_divisor(duration.picoseconds(), ratio);
  return scaled(duration, million, ratio.parts_per_million());
}

// ---- counts ----

constexpr std::int64_t scaled_up(std::int64_t count, Ratio ratio) {
  arithmetic::check_scale(count, ratio);
  return arithmetic::product_divided_up(count, ratio.parts_per_million(), million);
}

constexpr std::int64_t scaled_down(std::int64_t count, Ratio ratio) {
  arithmetic::check_scale(count, ratio);
  return arithmetic::product_divided_down(count, ratio.parts_per_million(), million);
}

// Half of one rounds up.
constexpr std::int64_t scaled_to_nearest(std::int64_t count, Ratio ratio) {
  arithmetic::check_scale(count, ratio);
  return (arithmetic::checked_product(count, ratio.parts_per_million()) + million / 2) / million;
}

constexpr std::int64_t divided_up(std::int64_t count, Ratio ratio) {
  arithmetic::check_divisor(count, ratio);
  return arithmetic::product_divided_up(count, million, ratio.parts_per_million());
}

// ---- rates ----

template <class Tag>
constexpr Quantity<Tag> scaled_down(Quantity<Tag> rate, Ratio ratio) {
  return Quantity<Tag>(scaled_down(rate.count(), ratio));
}

template <class Tag>
constexpr Quantity<Tag> divided_down(Quantity<Tag> rate, Ratio ratio) {
  arithmetic::check_divisor(rate.count(), ratio);
  return Quantity<Tag>(arithmetic::product_divided_down(rate.count(), million, ratio.parts_per_million()));
}

// The same with what is less than a million of a rate left out, before the product and after the division. Constants
// of kernels were fitted with the first, slow ranks and kernels beside collectives are priced with the second: the
// exact ones would move predicted times.
template <class Tag>
constexpr Quantity<Tag> scaled_in_millions(Quantity<Tag> rate, Ratio ratio) {
  arithmetic::check_scale(rate.count(), ratio);
  return Quantity<Tag>(rate.count() / million) * ratio.parts_per_million();
}

template <class Tag>
constexpr Quantity<Tag> divided_in_millions(Quantity<Tag> rate, Ratio ratio) {
  arithmetic::check_divisor(rate.count(), ratio);
  return Quantity<Tag>(rate.count() / ratio.parts_per_million()) * million;
}

// ---- ratios ----

constexpr Ratio ratio_up(std::int64_t part, std::int64_t whole) {
  LOCKSTEP_CHECK(part >= 0 && whole > 0, "a ratio is of something");
  return Ratio::parts_per_million(arithmetic::product_divided_up(part, million, whole));
}

constexpr Ratio ratio_down(std::int64_t part, std::int64_t whole) {
  LOCKSTEP_CHECK(part >= 0 && whole > 0, "a ratio is of something");
  return Ratio::parts_per_million(arithmetic::product_divided_down(part, million, whole));
}

constexpr Ratio scaled_up(Ratio ratio, Ratio by) {
  return Ratio::parts_per_million(scaled_up(ratio.parts_per_million(), by));
}

constexpr Ratio scaled_down(Ratio ratio, Ratio by) {
  return Ratio::parts_per_million(scaled_down(ratio.parts_per_million(), by));
}

constexpr Ratio divided_down(Ratio ratio, Ratio by) {
  return ratio_down(ratio.parts_per_million(), by.parts_per_million());
}

// One of so many equal parts, rounded down.
constexpr Ratio share(Ratio whole, std::int64_t parts) {
  LOCKSTEP_CHECK(whole >= Ratio{} && parts > 0, "a ratio is shared by at least one");
  return Ratio::parts_per_million(whole.parts_per_million() / parts);
}

}  // namespace lockstep
