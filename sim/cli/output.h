#pragma once

// What a verb says: answers to stdout, everything else to stderr.
//
// Invariant: an answer is printed whole and reported as an EnvironmentError when it could not be (a full
//            disk behind a redirection); with --json it is one document and nothing else. Control characters
//            that names bring along are written out, in JSON as JSON writes them; so it is in JSON that is a file.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep {

void print(std::string_view text);
void print_json(const nlohmann::ordered_json& document);
void write_json(const std::string& path, const nlohmann::ordered_json& document, int indent = 2);
// A profile, perhaps over an earlier one: the "$schema" that it named, by which editors check it, stands on.
void write_profile(const std::string& path, const nlohmann::ordered_json& document);
void print_diagnostic(std::string_view text);

// What has escapes of our own in it, and names already written out.
void print_coloured(std::string_view text);
void draw_diagnostic(std::string_view text);

// Whether stdout is a terminal and NO_COLOR is unset (https://no-color.org).
bool wants_colour();

}  // namespace lockstep
