#include "sim/load/reading/exact_text.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

#include "sim/base/check.h"

namespace lockstep {
namespace {

struct DecimalUnit {
  std::string_view name;
  int zeros;  // 10^zeros counting units
};

constexpr std::array byte_units{DecimalUnit{"B", 0},  DecimalUnit{"kB", 3},  DecimalUnit{"MB", 6},
                                DecimalUnit{"GB", 9}, DecimalUnit{"TB", 12}, DecimalUnit{"PB", 15}};
constexpr std::array bandwidth_units{DecimalUnit{"B/s", 0}, DecimalUnit{"kB/s", 3}, DecimalUnit{"MB/s", 6},
                                     DecimalUnit{"GB/s", 9}, DecimalUnit{"TB/s", 12}};
constexpr std::array duration_units{DecimalUnit{"ps", 0}, DecimalUnit{"ns", 3}, DecimalUnit{"us", 6},
                                    DecimalUnit{"ms", 9}, DecimalUnit{"s", 12}};
constexpr std::array flops_units{DecimalUnit{"FLOP", 0},  DecimalUnit{"kFLOP", 3},  DecimalUnit{"MFLOP", 6},
                                 DecimalUnit{"GFLOP", 9}, DecimalUnit{"TFLOP", 12}, DecimalUnit{"PFLOP", 15}};
constexpr std::array power_units{DecimalUnit{"mW", 0}, DecimalUnit{"W", 3}, DecimalUnit{"kW", 6},
                                 DecimalUnit{"MW", 9}};
constexpr std::array<std::string_view, 4> binary_units{"KiB", "MiB", "GiB", "TiB"};

std::int64_t power_of_ten(int zeros) {
  std::int64_t value = 1;
  for (int digit = 0; digit < zeros; ++digit) {
    value *= 10;
  }
  return value;
}

// Digits with the point `zeros` places from their end, and no zeros behind it.
std::string with_point(std::int64_t count, int zeros) {
  const std::int64_t size = power_of_ten(zeros);
  std::string fraction = zeros == 0 ? "" : fmt::format("{:0{}}", count % size, zeros);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return fmt::format("{}{}{}", count / size, fraction.empty() ? "" : ".", fraction);
}

std::string decimal_text(std::int64_t count, std::span<const DecimalUnit> units) {
  LOCKSTEP_CHECK(count >= 0, "what is written to JSON is not negative");
  std::size_t chosen = 0;
  while (chosen + 1 < units.size() && count >= power_of_ten(units[chosen + 1].zeros)) {
    ++chosen;
  }
  return fmt::format("{} {}", with_point(count, units[chosen].zeros), units[chosen].name);
}

}  // namespace

std::string exact_text(Bytes bytes) {
  constexpr int bits_a_unit = 10;
  for (int power = static_cast<int>(binary_units.size()); power > 0; --power) {
    const std::int64_t size = std::int64_t{1} << (bits_a_unit * power);
    if (bytes.count() >= size && bytes.count() % size == 0) {
      return fmt::format("{} {}", bytes.count() / size, binary_units[static_cast<std::size_t>(power) - 1]);
    }
  }
  return decimal_text(bytes.count(), byte_units);
}

std::string exact_text(Bandwidth bandwidth) {
  return decimal_text(bandwidth.count(), bandwidth_units);
}
std::string exact_text(Duration duration) {
  return decimal_text(duration.picoseconds(), duration_units);
}
std::string exact_text(Horizon horizon) {
  return fmt::format("{} s", horizon.count());
}
std::string exact_text(FlopRate rate) {
  return decimal_text(rate.count(), flops_units) + "/s";
}
std::string exact_text(Flops flops) {
  return decimal_text(flops.count(), flops_units);
}
std::string exact_power_text(std::int64_t milliwatts) {
  return decimal_text(milliwatts, power_units);
}

}  // namespace lockstep
