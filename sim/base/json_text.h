#pragma once

// JSON text to a value, defensively, and the pieces of text that errors about JSON are made of.
//
// Problem: a general JSON parser takes duplicate keys, reads up to the first NUL, rounds integers that do not
// fit, and builds any depth, which its recursive destructor then cannot take apart. Idea: nlohmann's SAX
// parser, which does not recurse, drives a builder that refuses all of these as they appear. Invariant: a
// value that is returned is at most 64 deep, has no duplicate keys, and its numbers fit int64 or double.
// Cost: linear; 20 ns a byte of ordinary scenario, 140 at worst. Reference: RFC 8259, RFC 6901.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep {

// Throws ConfigError "file:line:column: what was found and what is valid". Columns count characters, not
// bytes.
nlohmann::ordered_json parse_json_text(std::string_view text, const std::string& file_name);

// A file of Lockstep's own. "$schema", by which editors check it (JSON Schema, draft 2020-12), is no key of it and is
// left out of the value. Throws also where that is not text, or where the file is a schema itself.
nlohmann::ordered_json parse_lockstep_file(std::string_view text, const std::string& file_name);

// Throws ConfigError when the file is missing, a directory, unreadable or above 64 MiB.
std::string read_json_file(const std::string& path);

bool is_utf8(std::string_view text);

// Of the UTF-8 sequence at the front of `text`, 0 when it is ill-formed (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text);

// `pointer` of the member `key` (or the index, in decimal) of the value at `pointer`.
std::string extended_pointer(std::string_view pointer, std::string_view key);

// How an error shows a value: scalars as JSON text, containers by their kind.
std::string describe_value(const nlohmann::ordered_json& value);

// Fit for one line of a message: control characters replaced, the middle of long text left out.
std::string abbreviated(std::string_view text);

}  // namespace lockstep
