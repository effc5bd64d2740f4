#include "sim/base/quantity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/nearest_name.h"

namespace lockstep {
namespace {

constexpr std::int64_t largest_quantity = std::int64_t{1} << 62;
constexpr std::size_t most_decimals = 18;

// One unit is `size / divisor` counting units; the divisor is 8 for bits, 10^12 for times in seconds, else 1.
struct Unit {
  std::string_view name;
  Unsigned128 size;
  std::int64_t divisor = 1;
};

constexpr Unsigned128 power_of_ten(int exponent) {
  return exponent == 0 ? 1 : 10 * power_of_ten(exponent - 1);
}
constexpr Unsigned128 power_of_two(int exponent) {
  return Unsigned128{1} << exponent;
}

constexpr auto byte_units = std::to_array<Unit>({{"B", 1},
                                                 {"kB", power_of_ten(3)},
                                                 {"MB", power_of_ten(6)},
                                                 {"GB", power_of_ten(9)},
                                                 {"TB", power_of_ten(12)},
                                                 {"PB", power_of_ten(15)},
                                                 {"KiB", power_of_two(10)},
                                                 {"MiB", power_of_two(20)},
                                                 {"GiB", power_of_two(30)},
                                                 {"TiB", power_of_two(40)},
                                                 {"PiB", power_of_two(50)}});
constexpr auto bandwidth_units = std::to_array<Unit>({{"B/s", 1},
                                                      {"kB/s", power_of_ten(3)},
                                                      {"MB/s", power_of_ten(6)},
                                                      {"GB/s", power_of_ten(9)},
                                                      {"TB/s", power_of_ten(12)},
                                                      {"KiB/s", power_of_two(10)},
                                                      {"MiB/s", power_of_two(20)},
                                                      {"GiB/s", power_of_two(30)},
                                                      {"TiB/s", power_of_two(40)},
                                                      {"bit/s", 1, 8},
                                                      {"kbit/s", power_of_ten(3), 8},
                                                      {"Mbit/s", power_of_ten(6), 8},
                                                      {"Gbit/s", power_of_ten(9), 8},
                                                      {"Tbit/s", power_of_ten(12), 8}});
constexpr auto duration_units = std::to_array<Unit>({{"ps", 1},
                                                     {"ns", power_of_ten(3)},
                                                     {"us", power_of_ten(6)},
                                                     {"ms", power_of_ten(9)},
                                                     {"s", power_of_ten(12)},
                                                     {"min", 60 * power_of_ten(12)},
                                                     {"h", 3'600 * power_of_ten(12)},
                                                     {"day", 86'400 * power_of_ten(12)},
                                                     {"days", 86'400 * power_of_ten(12)},
                                                     {"year", 31'536'000 * power_of_ten(12)},
                                                     {"years", 31'536'000 * power_of_ten(12)}});
constexpr auto flops_units = std::to_array<Unit>({{"FLOP", 1},
                                                  {"kFLOP", power_of_ten(3)},
                                                  {"MFLOP", power_of_ten(6)},
                                                  {"GFLOP", power_of_ten(9)},
                                                  {"TFLOP", power_of_ten(12)},
                                                  {"PFLOP", power_of_ten(15)},
                                                  {"EFLOP", power_of_ten(18)}});
constexpr auto flop_rate_units = std::to_array<Unit>({{"FLOP/s", 1},
                                                      {"kFLOP/s", power_of_ten(3)},
                                                      {"MFLOP/s", power_of_ten(6)},
                                                      {"GFLOP/s", power_of_ten(9)},
                                                      {"TFLOP/s", power_of_ten(12)},
                                                      {"PFLOP/s", power_of_ten(15)},
                                                      {"EFLOP/s", power_of_ten(18)}});
constexpr auto power_units = std::to_array<Unit>(
    {{"mW", 1}, {"W", power_of_ten(3)}, {"kW", power_of_ten(6)}, {"MW", power_of_ten(9)}});

struct Dimension {
  std::string_view noun;
  std::string_view example;
  std::string_view largest;  // 2^62 in words
  std::span<const Unit> units;
};

constexpr Dimension bytes_dimension{"a number of bytes", "25 MiB", "4 EiB", byte_units};
constexpr Dimension bandwidth_dimension{"a bandwidth", "450 GB/s", "2^62 B/s", bandwidth_units};
constexpr Dimension duration_dimension{"a time", "3 us", "53 days", duration_units};
// Picoseconds over 10^12 are seconds: the same spellings, counted more coarsely.
constexpr auto long_time_units = [] {
  auto units = duration_units;
  for (Unit& unit : units) unit.divisor = picoseconds_per_second;
  return units;
}();
constexpr Dimension horizon_dimension{"a time", "30 days", "2^62 s", long_time_units};
constexpr Dimension flops_dimension{"a number of FLOPs", "2.1 GFLOP", "4.6 EFLOP", flops_units};
constexpr Dimension flop_rate_dimension{"a FLOP rate", "312 TFLOP/s", "4.6 EFLOP/s", flop_rate_units};
constexpr Dimension power_dimension{"a power", "300 W", "2^62 mW", power_units};
constexpr std::array all_dimensions{bytes_dimension, bandwidth_dimension, duration_dimension,
                                    flops_dimension, flop_rate_dimension, power_dimension};

// Decimal text as written: whole + fraction / fraction_size.
struct Decimal {
  Unsigned128 whole = 0;
  Unsigned128 fraction = 0;
  Unsigned128 fraction_size = 1;
};

enum class Rounding { up, down };

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

std::string expectation(const Dimension& dimension) {
  return fmt::format("expected {} such as \"{}\"", dimension.noun, dimension.example);
}

// Saturates just above the limit, so that any number of digits is read and then refused.
Unsigned128 read_whole(std::string_view digits) {
  constexpr auto limit = static_cast<Unsigned128>(largest_quantity);
  Unsigned128 value = 0;
  for (const char digit : digits)
    value = std::min(value * 10 + static_cast<unsigned>(digit - '0'), limit + 1);
  return value;
}

Decimal read_decimal(std::string_view whole, std::string_view fraction) {
  Decimal decimal{.whole = read_whole(whole)};
  for (const char digit : fraction) {
    decimal.fraction = decimal.fraction * 10 + static_cast<unsigned>(digit - '0');
    decimal.fraction_size *= 10;
  }
  return decimal;
}

std::string_view without_trailing_zeros(std::string_view digits) {
  const std::size_t last = digits.find_last_not_of('0');
  return digits.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// The number at the front of `text`, which is advanced to the unit.
Parsed<Decimal> take_decimal(std::string_view& text, const Dimension& dimension) {
  if (text.starts_with('-'))
    return ParseFailure{fmt::format("{} is not negative", dimension.noun)};
  const std::string_view whole = text.substr(0, count_digits(text));
  text.remove_prefix(whole.size());
  if (whole.empty())
    return ParseFailure{expectation(dimension)};
  std::string_view fraction;
  if (text.starts_with('.')) {
    fraction = text.substr(1, count_digits(text.substr(1)));
    if (fraction.empty())
      return ParseFailure{fmt::format("digits follow the decimal point; {}", expectation(dimension))};
    text.remove_prefix(1 + fraction.size());
  }
  fraction = without_trailing_zeros(fraction);
  if (fraction.size() > most_decimals)
    return ParseFailure{fmt::format("at most {} digits may follow the decimal point", most_decimals)};
  return read_decimal(whole, fraction);
}

std::vector<std::string> unit_names(const Dimension& dimension) {
  std::vector<std::string> names;
  for (const Unit& unit : dimension.units) names.emplace_back(unit.name);
  return names;
}

const Unit* find_unit(std::string_view name, const Dimension& dimension) {
  const auto found = std::find_if(dimension.units.begin(), dimension.units.end(),
                                  [&](const Unit& unit) { return unit.name == name; });
  return found == dimension.units.end() ? nullptr : &*found;
}

// "Gb/s" and "Gbps" are written for bits and for bytes, a factor of 8 apart: nobody can guess, so nobody
// does.
std::optional<std::string> refuse_ambiguous_rate(std::string_view unit) {
  if (!unit.ends_with("b/s") && !unit.ends_with("bps"))
    return std::nullopt;
  std::string prefix(unit.substr(0, unit.size() - 3));
  if (prefix.size() > 1 || std::string_view("kKMGT").find(prefix) == std::string_view::npos)
    return std::nullopt;
  prefix = prefix == "K" ? "k" : prefix;
  return fmt::format("{} is ambiguous: {}bit/s or {}B/s", unit, prefix, prefix);
}

std::optional<std::string> refuse_other_dimension(std::string_view unit, const Dimension& dimension) {
  for (const Dimension& other : all_dimensions)
    if (find_unit(unit, other) != nullptr)
      return fmt::format("{} measures {}; {}", unit, other.noun, expectation(dimension));
  return std::nullopt;
}

std::string refuse_unit(std::string_view unit, const Dimension& dimension) {
  if (unit.empty())
    return fmt::format("expected a quantity with a unit such as \"{}\"", dimension.example);
  if (unit.size() > 1 && (unit[0] == 'e' || unit[0] == 'E') &&
      (is_digit(unit[1]) || unit[1] == '-' || unit[1] == '+'))
    return "exponents are not read here: write the digits out or choose a larger or smaller unit";
  if (const auto ambiguous = refuse_ambiguous_rate(unit))
    return *ambiguous;
  if (const auto other = refuse_other_dimension(unit, dimension))
    return *other;
  return fmt::format("\"{}\" is not a unit of {}; {}", unit, dimension.noun,
                     describe_choices(unit, unit_names(dimension)));
}

// decimal * unit.size / unit.divisor. Floors nest (floor(floor(x) / n) = floor(x / n)), so only whether
// anything was cut off has to be remembered. 128 bits hold it: 2^62 years, or 10^18 decimals of a year, stay
// under 2^127.
Unsigned128 in_counting_units(const Decimal& decimal, const Unit& unit, Rounding rounding) {
  const auto divisor = static_cast<Unsigned128>(unit.divisor);
  const Unsigned128 fraction = decimal.fraction * unit.size;
  const Unsigned128 undivided = decimal.whole * unit.size + fraction / decimal.fraction_size;
  const bool is_exact = fraction % decimal.fraction_size == 0 && undivided % divisor == 0;
  return undivided / divisor + (rounding == Rounding::up && !is_exact ? 1 : 0);
}

Parsed<std::int64_t> parse_count(std::string_view text, const Dimension& dimension, Rounding rounding) {
  const auto decimal = take_decimal(text, dimension);
  if (const auto* failure = std::get_if<ParseFailure>(&decimal))
    return *failure;
  text.remove_prefix(text.starts_with(' ') ? 1 : 0);
  const Unit* unit = find_unit(text, dimension);
  if (unit == nullptr)
    return ParseFailure{refuse_unit(text, dimension)};
  constexpr auto limit = static_cast<Unsigned128>(largest_quantity);
  const Decimal& number = std::get<Decimal>(decimal);
  // The whole part is refused on its own as well, because read_whole saturates there.
  const Unsigned128 count = in_counting_units(number, *unit, rounding);
  if (number.whole > limit || count > limit)
    return ParseFailure{fmt::format("too large: {} here is at most {}", dimension.noun, dimension.largest)};
  return static_cast<std::int64_t>(count);
}

template <class Q>
Parsed<Q> parse_amount(std::string_view text, const Dimension& dimension) {
  const auto count = parse_count(text, dimension, Rounding::up);
  if (const auto* failure = std::get_if<ParseFailure>(&count))
    return *failure;
  return Q(std::get<std::int64_t>(count));
}

template <class Q>
Parsed<Q> parse_rate(std::string_view text, const Dimension& dimension) {
  const auto count = parse_count(text, dimension, Rounding::down);
  if (const auto* failure = std::get_if<ParseFailure>(&count))
    return *failure;
  if (std::get<std::int64_t>(count) == 0)
    return ParseFailure{fmt::format("a rate is at least 1 {}", dimension.units.front().name)};
  return Q(std::get<std::int64_t>(count));
}

std::string with_sign(std::int64_t count, std::string_view magnitude) {
  return fmt::format("{}{}", count < 0 ? "-" : "", magnitude);
}

std::uint64_t magnitude_of(std::int64_t count) {
  const auto bits = static_cast<std::uint64_t>(count);
  return count < 0 ? 0 - bits : bits;
}

// Tenths of a unit, rounded half up.
Unsigned128 tenths_of(std::uint64_t magnitude, Unsigned128 size) {
  return (static_cast<Unsigned128>(magnitude) * 20 + size) / (2 * size);
}

// `units` ascend from the counting unit. The rounded value picks the unit, so 1023.96 KiB is 1.0 MiB.
std::string format_count(std::int64_t count, std::span<const Unit> units, bool keeps_zero_decimal) {
  const std::uint64_t magnitude = magnitude_of(count);
  std::size_t chosen = 0;
  while (chosen + 1 < units.size() &&
         tenths_of(magnitude, units[chosen].size) * units[chosen].size >= 10 * units[chosen + 1].size)
    ++chosen;
  const Unit& unit = units[chosen];
  if (chosen == 0)
    return with_sign(count, fmt::format("{} {}", magnitude, unit.name));
  const auto tenths = static_cast<std::uint64_t>(tenths_of(magnitude, unit.size));
  if (tenths % 10 == 0 && !keeps_zero_decimal)
    return with_sign(count, fmt::format("{} {}", tenths / 10, unit.name));
  return with_sign(count, fmt::format("{}.{} {}", tenths / 10, tenths % 10, unit.name));
}

// Four significant digits, in the largest unit of which there is one: what rounds up to a thousand of a unit is
// one of the next. Whole numbers of the smallest unit are exact.
std::string format_significant(std::int64_t count, std::span<const Unit> units) {
  const Unsigned128 magnitude = magnitude_of(count);
  std::size_t unit = units.size() - 1;
  while (unit > 0 && magnitude < units[unit].size) --unit;
  for (;; ++unit) {
    const Unsigned128 scale = units[unit].size;
    int decimals = unit == 0 ? 0 : 3;
    Unsigned128 shift = unit == 0 ? 1 : 1000;
    for (Unsigned128 whole = magnitude / scale; whole >= 10 && decimals > 0; whole /= 10) {
      --decimals;
      shift /= 10;
    }
    const Unsigned128 rounded = (magnitude * shift + scale / 2) / scale;
    if (rounded >= 1000 * shift && unit > 0 && unit + 1 < units.size())
      continue;
    const auto whole = static_cast<std::uint64_t>(rounded / shift);
    const auto rest = static_cast<std::uint64_t>(rounded % shift);
    const std::string text = decimals == 0
                                 ? fmt::format("{} {}", whole, units[unit].name)
                                 : fmt::format("{}.{:0{}} {}", whole, rest, decimals, units[unit].name);
    return with_sign(count, text);
  }
}

constexpr auto binary_byte_units = std::to_array<Unit>({{"B", 1},
                                                        {"KiB", power_of_two(10)},
                                                        {"MiB", power_of_two(20)},
                                                        {"GiB", power_of_two(30)},
                                                        {"TiB", power_of_two(40)},
                                                        {"PiB", power_of_two(50)}});
constexpr auto horizon_units = std::to_array<Unit>({{"s", 1}, {"min", 60}, {"h", 3'600}, {"days", 86'400}});

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) {
  return parse_amount<Bytes>(text, bytes_dimension);
}

Parsed<Bandwidth> parse_bandwidth(std::string_view text) {
  return parse_rate<Bandwidth>(text, bandwidth_dimension);
}

Parsed<Duration> parse_duration(std::string_view text) {
  const auto count = parse_count(text, duration_dimension, Rounding::up);
  if (const auto* failure = std::get_if<ParseFailure>(&count))
    return *failure;
  return Duration::picoseconds(std::get<std::int64_t>(count));
}

Parsed<Horizon> parse_horizon(std::string_view text) {
  return parse_amount<Horizon>(text, horizon_dimension);
}

Parsed<Flops> parse_flops(std::string_view text) {
  return parse_amount<Flops>(text, flops_dimension);
}

Parsed<FlopRate> parse_flop_rate(std::string_view text) {
  return parse_rate<FlopRate>(text, flop_rate_dimension);
}

Parsed<std::int64_t> parse_power(std::string_view text) {
  return parse_count(text, power_dimension, Rounding::up);
}

std::string format_bytes(Bytes bytes) {
  return format_count(bytes.count(), binary_byte_units, true);
}

std::string format_duration(Duration duration) {
  constexpr std::size_t up_to_seconds = 5;
  return format_significant(duration.picoseconds(), std::span(duration_units).first(up_to_seconds));
}

std::string format_bandwidth(Bandwidth bandwidth) {
  constexpr std::size_t decimal_units = 5;
  return format_count(bandwidth.count(), std::span(bandwidth_units).first(decimal_units), false);
}

std::string format_horizon(Horizon horizon) {
  return format_count(horizon.count(), horizon_units, true);
}

}  // namespace lockstep
