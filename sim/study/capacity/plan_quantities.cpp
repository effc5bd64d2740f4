#include "sim/study/capacity/plan_quantities.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "sim/report/text_table.h"

namespace lockstep {
namespace {

struct Unit {
  double size;
  const char* name;
};

std::string three_digits(double value) {
  if (value >= 100)
    return grouped(std::llround(value));
  return fmt::format("{:.{}f}", value, value >= 10 ? 1 : 2);
}

// In the largest unit that does not exceed it; units descend.
template <std::size_t count>
std::string in_unit(double value, const std::array<Unit, count>& units) {
  for (const Unit& unit : units)
    if (value >= unit.size)
      return three_digits(value / unit.size) + " " + unit.name;
  return three_digits(value / units.back().size) + " " + units.back().name;
}

}  // namespace

std::string time_text(double seconds) {
  constexpr std::array units{Unit{86'400, "days"}, Unit{3'600, "h"}, Unit{60, "min"}, Unit{1, "s"}};
  return in_unit(seconds, units);
}

std::string usd_text(double usd) {
  return fmt::format("${}", three_digits(usd));
}

std::string energy_text(double kwh) {
  constexpr std::array units{Unit{1e6, "GWh"}, Unit{1e3, "MWh"}, Unit{1, "kWh"}};
  return in_unit(kwh, units);
}

}  // namespace lockstep
