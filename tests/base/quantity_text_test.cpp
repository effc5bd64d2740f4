#include "sim/base/quantity_text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>

namespace lockstep::quantity_text_test {

constexpr std::int64_t kilo = 1'000;
constexpr std::int64_t mega = kilo * kilo;
constexpr std::int64_t giga = kilo * mega;
constexpr std::int64_t tera = kilo * giga;
constexpr std::int64_t mebi = 1'024 * 1'024;

template <class T>
T value(const Parsed<T>& parsed) {
  if (const auto* failure = std::get_if<ParseFailure>(&parsed)) {
    FAIL(failure->message);
  }
  return std::get<T>(parsed);
}

template <class T>
std::string failure(const Parsed<T>& parsed) {
  REQUIRE(std::holds_alternative<ParseFailure>(parsed));
  return std::get<ParseFailure>(parsed).message;
}

bool mentions(const std::string& message, const std::string& part) {
  INFO(message);
  return message.find(part) != std::string::npos;
}

TEST_CASE("Bytes are decimal by GB and binary by GiB") {
  CHECK(value(parse_bytes("25 MiB")) == Bytes{25 * mebi});
  CHECK(value(parse_bytes("25 MB")) == Bytes{25 * mega});
  CHECK(value(parse_bytes("1 GiB")) == Bytes{1'024 * mebi});
  CHECK(value(parse_bytes("0 B")) == Bytes{0});
  CHECK(value(parse_bytes("25MiB")) == value(parse_bytes("25 MiB")));
  CHECK(value(parse_bytes("0.1 KiB")) == Bytes{103});  // 102.4 rounds up
}

TEST_CASE("Rates are read in bytes or bits, exactly where double would not be") {
  CHECK(value(parse_bandwidth("450 GB/s")) == Bandwidth{450 * giga});
  CHECK(value(parse_bandwidth("200 Gbit/s")) == Bandwidth{200 * giga / 8});
  CHECK(value(parse_bandwidth("0.124 GB/s")) == Bandwidth{124 * mega});
  CHECK(value(parse_bandwidth("0.3 TB/s")) == Bandwidth{300 * giga});
  CHECK(value(parse_bandwidth("1.5 GiB/s")) == Bandwidth{1'536 * mebi});
  CHECK(value(parse_bandwidth("15 bit/s")) == Bandwidth{1});  // 1.875 rounds down
  CHECK(value(parse_flop_rate("312 TFLOP/s")) == FlopRate{312 * tera});
  CHECK(value(parse_flops("2.1 GFLOP")) == Flops{2'100 * mega});
  CHECK(value(parse_power("300 W")) == 300 * kilo);
}

TEST_CASE("Times are whole picoseconds, rounded up") {
  CHECK(value(parse_duration("3 us")) == Duration::microseconds(3));
  CHECK(value(parse_duration("103.6 ms")) == Duration::microseconds(103'600));
  CHECK(value(parse_duration("5 min")) == Duration::seconds(5 * 60));
  CHECK(value(parse_duration("1 h")) == Duration::seconds(3'600));
  CHECK(value(parse_duration("30 days")) == Duration::seconds(30 * 86'400));
  CHECK(value(parse_duration("1 day")) == Duration::seconds(86'400));
  CHECK(value(parse_duration("1.2 ps")) == Duration::picoseconds(2));
  CHECK(value(parse_duration("8.333333333333333 ms")) == Duration::picoseconds(8'333'333'334));
}

TEST_CASE("A year is too long for picoseconds and is read as a horizon in seconds") {
  CHECK(mentions(failure(parse_duration("1 year")), "at most 53 days"));
  CHECK(value(parse_horizon("1 year")) == Horizon{365 * 86'400});
  CHECK(value(parse_horizon("1.5 years")) == Horizon{365 * 86'400 * 3 / 2});
  CHECK(value(parse_horizon("90 s")) == Horizon{90});
  CHECK(value(parse_horizon("1500 ms")) == Horizon{2});  // 1.5 rounds up
}

TEST_CASE("The largest quantity is 2^62, and one more is refused") {
  CHECK(value(parse_bytes("4611686018427387904 B")) == Bytes{std::int64_t{1} << 62});
  CHECK(mentions(failure(parse_bytes("4611686018427387905 B")), "too large"));
  CHECK(mentions(failure(parse_bytes("99999999999999999999999999999999999999999999 PiB")), "too large"));
  CHECK(mentions(failure(parse_bandwidth("9000000000000000000 bit/s")), "too large"));
}

TEST_CASE("A rate that rounds to nothing is refused, because something divides by it") {
  CHECK(mentions(failure(parse_bandwidth("0 GB/s")), "at least 1 B/s"));
  CHECK(mentions(failure(parse_bandwidth("7 bit/s")), "at least 1 B/s"));
  CHECK(mentions(failure(parse_flop_rate("0 FLOP/s")), "at least 1 FLOP/s"));
}

TEST_CASE("What is not a plain decimal is refused with an example") {
  CHECK(mentions(failure(parse_bytes("")), "\"25 MiB\""));
  CHECK(mentions(failure(parse_bytes("MiB")), "\"25 MiB\""));
  CHECK(mentions(failure(parse_bytes("-1 MiB")), "not negative"));
  CHECK(mentions(failure(parse_bytes("1. MiB")), "decimal point"));
  CHECK(mentions(failure(parse_bytes(".5 MiB")), "\"25 MiB\""));
  CHECK(mentions(failure(parse_bytes("1e3 MiB")), "exponents"));
  CHECK(mentions(failure(parse_bytes("25")), "a quantity with a unit such as \"25 MiB\""));
  CHECK(mentions(failure(parse_duration("0.0000000000000000001 s")), "at most 18 digits"));
  CHECK(value(parse_duration("1.0000000000000000000000000000 s")) == Duration::seconds(1));
}

TEST_CASE("A near miss of a unit is answered with what was probably meant") {
  CHECK(failure(parse_bandwidth("450 Gb/s")) == "Gb/s is ambiguous: Gbit/s or GB/s");
  CHECK(failure(parse_bandwidth("100 Mbps")) == "Mbps is ambiguous: Mbit/s or MB/s");
  CHECK(mentions(failure(parse_bandwidth("450 GB")), "GB measures a number of bytes"));
  CHECK(mentions(failure(parse_bandwidth("450 GB")), "expected a bandwidth such as \"450 GB/s\""));
  CHECK(mentions(failure(parse_bytes("3 us")), "us measures a time"));
  CHECK(mentions(failure(parse_bytes("25 mib")), "did you mean \"MiB\"?"));
  CHECK(mentions(failure(parse_flop_rate("312 TFLOPS")), "did you mean \"TFLOP/s\"?"));
  CHECK(mentions(failure(parse_duration("3 usec")), "did you mean \"us\"?"));
  CHECK(mentions(failure(parse_duration("3  us")), "not a unit"));
}

TEST_CASE("Tables show sizes and rates with one decimal in the largest unit that fits") {
  CHECK(format_bytes(Bytes{512}) == "512 B");
  CHECK(format_bytes(Bytes{25 * mebi}) == "25.0 MiB");
  CHECK(format_bytes(Bytes{mebi - 1}) == "1.0 MiB");  // 1023.999 KiB
  CHECK(format_bytes(Bytes{-25 * mebi}) == "-25.0 MiB");
  CHECK(format_duration(Duration::microseconds(103'550)) == "103.6 ms");  // half rounds up
  CHECK(format_duration(Duration::seconds(7'200)) == "7200 s");
  CHECK(format_duration(Duration::zero()) == "0 ps");
  CHECK(format_bandwidth(Bandwidth{450 * giga}) == "450 GB/s");
  CHECK(format_bandwidth(Bandwidth{25 * giga / 2}) == "12.5 GB/s");
  CHECK(format_horizon(Horizon{86'400 * 123 / 10}) == "12.3 days");
  CHECK(format_duration(Duration::picoseconds(INT64_MIN)) == "-9223372 s");
}

TEST_CASE("Durations keep four significant digits, whatever their unit") {
  CHECK(format_duration(Duration::microseconds(2'812'600)) == "2.813 s");
  CHECK(format_duration(Duration::nanoseconds(28'126'000)) == "28.13 ms");
  CHECK(format_duration(Duration::picoseconds(281'260'000)) == "281.3 us");
  CHECK(format_duration(Duration::picoseconds(999)) == "999 ps");
  CHECK(format_duration(Duration::picoseconds(1'500)) == "1.500 ns");
  CHECK(format_duration(Duration::picoseconds(999'949'999)) == "999.9 us");
  CHECK(format_duration(Duration::picoseconds(999'950'000)) == "1.000 ms");  // rounds up to a thousand of a unit
}

TEST_CASE("What a table shows reads back as what the table shows") {
  CHECK(rc::check([] {
    const auto count = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 60) >> *rc::gen::inRange(0, 60);
    const std::string bytes = format_bytes(Bytes{count});
    RC_ASSERT(format_bytes(value(parse_bytes(bytes))) == bytes);
    const std::string duration = format_duration(Duration::picoseconds(count));
    RC_ASSERT(format_duration(value(parse_duration(duration))) == duration);
    const std::string bandwidth = format_bandwidth(Bandwidth{count + 1});
    RC_ASSERT(format_bandwidth(value(parse_bandwidth(bandwidth))) == bandwidth);
  }));
}

TEST_CASE("Every whole number of a unit is exact") {
  CHECK(rc::check([] {
    const auto count = *rc::gen::inRange<std::int64_t>(1, mega);
    RC_ASSERT(value(parse_bytes(std::to_string(count) + " MiB")) == Bytes{mebi} * count);
    RC_ASSERT(value(parse_bandwidth(std::to_string(count) + " kbit/s")) == Bandwidth{kilo / 8} * count);
    RC_ASSERT(value(parse_duration(std::to_string(count) + " ms")) == Duration::milliseconds(count));
  }));
}

TEST_CASE("No text makes a parser do anything but answer") {
  CHECK(rc::check([](const std::string& text) {
    const std::string numbered = "1" + text;
    static_cast<void>(parse_bytes(text));
    static_cast<void>(parse_bandwidth(numbered));
    static_cast<void>(parse_duration(numbered));
    static_cast<void>(parse_horizon(numbered));
  }));
}

}  // namespace lockstep::quantity_text_test
