#pragma once

// Quantities as text that reads back to exactly the same integer.
//
// Problem:   a table rounds to one decimal; a resolved scenario must be loadable and mean the same.
// Idea:      every unit but the binary ones is a power of ten of the counting unit, so some number of
// decimals
//            is always exact; bytes take a binary unit where that leaves no fraction.
// Invariant: parse(exact_text(quantity)) == quantity, for quantities that are not negative.

#include <cstdint>
#include <string>

#include "sim/base/units.h"

namespace lockstep {

std::string exact_text(Bytes bytes);                    // "40 GiB", "1.5 kB"
std::string exact_text(Bandwidth bandwidth);            // "25 GB/s"
std::string exact_text(Duration duration);              // "103.6 ms"
std::string exact_text(Horizon horizon);                // "2592000 s"
std::string exact_text(FlopRate rate);                  // "312 TFLOP/s"
std::string exact_text(Flops flops);                    // "2.147 GFLOP"
std::string exact_power_text(std::int64_t milliwatts);  // "400 W"

}  // namespace lockstep
