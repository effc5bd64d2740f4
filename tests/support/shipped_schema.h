#pragma once

// The schemas in scenarios/schemas, as editors read them. One test proves that they are what `lockstep schema` prints,
// which takes seconds; all others ask the files.

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace lockstep::testing {

inline std::string file_of_schema(const std::string& kind) {
  return LOCKSTEP_SOURCE_DIR "/scenarios/schemas/" + kind + ".schema.json";
}

inline nlohmann::json shipped_schema(const std::string& kind) {
  return nlohmann::json::parse(text_of(file_of_schema(kind)));
}

}  // namespace lockstep::testing
