#pragma once

// What a verb says: answers to stdout, everything else to stderr.
//
// Invariant: an answer is printed whole and reported as an EnvironmentError when it could not be (a full
//            disk behind a redirection); with --json it is one document and nothing else.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace lockstep {

void print(std::string_view text);
void print_json(const nlohmann::ordered_json& document);
void print_diagnostic(std::string_view text);

// Whether stdout is a terminal and NO_COLOR is unset (https://no-color.org).
bool wants_colour();

}  // namespace lockstep
