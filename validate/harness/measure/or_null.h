#pragma once

// What was not measured is null in a file, never zero and never left out.
//
// Invariant: a reader may ask for every key.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep::harness {

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

inline nlohmann::ordered_json or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace lockstep::harness
