#pragma once

// Numbers of a JSON document as text: seconds, bytes, counts and shares.
//
// Invariant: the same text as the answer on the terminal has, since both end in quantity_text.h.

#include <string>

namespace lockstep {

std::string duration_text(double seconds);  // "103.6 ms"
std::string bytes_text(double bytes);       // "25.0 MiB"
std::string count_text(double count);       // "36,180"
std::string rate_text(double rate);         // "36,180", below 100 with digits after the point
std::string share_text(double share);       // "91.5 %"
std::string percent_text(double percent);   // "+3.1 %"
std::string plain_text(double value);       // six digits at most

}  // namespace lockstep
