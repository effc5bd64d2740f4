#include "sim/compute/clock.h"

#include <algorithm>

namespace lockstep {
namespace {

// Of the voltage at boost it falls to four fifths.
constexpr std::int64_t floor_numerator = 4;
constexpr std::int64_t floor_denominator = 5;

constexpr int fraction_bits = 40;

constexpr Unsigned128 wide(std::int64_t value) {
  return static_cast<Unsigned128>(value);
}

// Of a number from 1 to 2, both with so many bits behind the point.
Unsigned128 cube_root(Unsigned128 number) {
  Unsigned128 low = Unsigned128{1} << fraction_bits;
  Unsigned128 high = low * 2;
  while (high - low > 1) {
    const Unsigned128 tried = (low + high) / 2;
    (tried * tried * tried <= number << (2 * fraction_bits) ? low : high) = tried;
  }
  return low;
}

Duration rounded_up(Unsigned128 dividend, Unsigned128 divisor) {
  return Duration::picoseconds(arithmetic::checked_narrow((dividend + divisor - 1) / divisor));
}

}  // namespace

Duration within_limit(Duration boost, Flops flops, const PowerLimit& limit) {
  // A milliwatt for a TFLOP/s is a femtojoule a FLOP, and a milliwatt makes one in a picosecond.
  const Unsigned128 energy = wide(flops.count()) * wide(limit.draw.count);
  const Unsigned128 allowed = wide(boost.picoseconds()) * wide(limit.board.count);
  if (limit.board.count == 0 || energy <= allowed)
    return boost;
  const Duration at_floor = rounded_up(energy * wide(floor_numerator * floor_numerator),
                                       wide(limit.board.count * floor_denominator * floor_denominator));
  if (energy >= allowed * 2)
    return std::max(boost, at_floor);
  // Both have less than 88 bits.
  const Unsigned128 slower = cube_root((energy << fraction_bits) / allowed);
  const Duration cubed = rounded_up(wide(boost.picoseconds()) * slower, Unsigned128{1} << fraction_bits);
  return std::max({boost, cubed, at_floor});
}

}  // namespace lockstep
