#pragma once

// Quantities as people write them ("25 MiB", "0.124 GB/s", "3 us") to exact integers, and back for tables.
//
// Problem: "0.1" has no binary fraction, so parsing through double gives results that depend on the rounding
// mode. Idea: decimal digits become integers and meet the unit's size in 128 bits; no floating point
// anywhere. Invariant: GB is 10^9 and GiB is 2^30; case matters (Gb and GB differ by 8). What is finer than
// the counting unit (a picosecond, a byte) rounds up for amounts and times, down for rates. Negative, zero
// for a rate, and anything above 2^62 are refused, so sums of a few parsed quantities cannot overflow.
// Numbers are plain decimals (no sign, no exponent), at most 18 digits after the point; one space is
// optional.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/units.h"

namespace lockstep {

// Says what is wrong with the text and what is valid, without repeating the text itself.
struct ParseFailure {
  std::string message;
};

template <class T>
using Parsed = std::variant<T, ParseFailure>;

Parsed<Bytes> parse_bytes(std::string_view text);          // B, kB MB GB TB PB, KiB MiB GiB TiB PiB
Parsed<Bandwidth> parse_bandwidth(std::string_view text);  // the same per second, and bit/s kbit/s .. Tbit/s
Parsed<Duration> parse_duration(std::string_view text);   // ps ns us ms s min h day(s) year(s), up to 53 days
Parsed<Horizon> parse_horizon(std::string_view text);     // the same units, to whole seconds
Parsed<Flops> parse_flops(std::string_view text);         // FLOP, kFLOP .. EFLOP
Parsed<FlopRate> parse_flop_rate(std::string_view text);  // FLOP/s, kFLOP/s .. EFLOP/s
Parsed<std::int64_t> parse_power(std::string_view text);  // mW W kW MW, to milliwatts

// One decimal, rounded half up, in the largest unit that does not exceed the value.
std::string format_bytes(Bytes bytes);              // "25.0 MiB", "512 B"
std::string format_duration(Duration duration);     // "103.6 ms", seconds at most
std::string format_bandwidth(Bandwidth bandwidth);  // "450 GB/s", "12.5 GB/s"
std::string format_horizon(Horizon horizon);        // "12.3 days"

}  // namespace lockstep
