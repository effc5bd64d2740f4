#pragma once

// Days, dollars and energy as text.
//
// Invariant: three significant digits, or all before the point; the largest unit that does not exceed the quantity.

#include <string>

namespace lockstep {

std::string time_text(double seconds);  // "12.3 days", "5.40 h"
std::string usd_text(double usd);       // "$1,234,567", "$12.30"
std::string energy_text(double kwh);    // "123 MWh"

}  // namespace lockstep
