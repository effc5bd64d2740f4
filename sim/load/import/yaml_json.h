#pragma once

// YAML as JSON: what settings in YAML and in JSON have in common is read once.
//
// Invariant: keys are texts and stand once in a mapping; scalars without quotes become flags, numbers or null as YAML
//            1.2's core schema has them, all others texts. What is deeper than 64 or has more than 100,000 nodes, counted
//            with every use of an alias, is refused: an alias of aliases may grow without bound.
// Errors:    ConfigError with file, line and column.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

nlohmann::ordered_json parse_yaml_text(const std::string& text, const std::string& file_name);

}  // namespace lockstep
