#pragma once

// Fields of a JSON object that may be left out: the value that stands there, else the default.
//
// Ratios become whole parts per million here, once, so that nothing behind load is a floating-point number
// (Ratio; half of a part rounds up).

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/base/quantity_text.h"

namespace lockstep {

struct IntegerRange {
  std::int64_t minimum;
  std::int64_t maximum;
};

struct RatioRange {
  double minimum;
  double maximum;
};

inline bool boolean_or(const JsonReader& json, std::string_view key, bool fallback) {
  const auto found = json.optional(key);
  return found ? found->boolean() : fallback;
}

inline std::int64_t integer_or(const JsonReader& json, std::string_view key, std::int64_t fallback,
                               IntegerRange range) {
  const auto found = json.optional(key);
  return found ? found->integer(range.minimum, range.maximum) : fallback;
}

inline std::string text_or(const JsonReader& json, std::string_view key, std::string fallback) {
  const auto found = json.optional(key);
  return found ? found->text() : fallback;
}

inline Duration duration_or(const JsonReader& json, std::string_view key, Duration fallback) {
  const auto found = json.optional(key);
  return found ? found->duration() : fallback;
}

inline std::string name_or(const JsonReader& json, std::string_view key, std::string fallback,
                           const std::vector<std::string>& valid) {
  const auto found = json.optional(key);
  return found ? found->one_of(valid) : fallback;
}

inline Ratio ratio(const JsonReader& json, RatioRange range, std::string_view meaning) {
  const double stated = json.number(range.minimum, range.maximum, meaning);
  return Ratio::parts_per_million(
      static_cast<std::int64_t>(std::floor(stated * static_cast<double>(million) + 0.5)));
}

inline Ratio ratio_or(const JsonReader& json, std::string_view key, Ratio fallback, RatioRange range) {
  const auto found = json.optional(key);
  return found ? ratio(*found, range, "a ratio") : fallback;
}

inline std::optional<Ratio> ratio_if_stated(const JsonReader& json, std::string_view key, RatioRange range) {
  const auto found = json.optional(key);
  return found ? std::optional(ratio(*found, range, "a ratio")) : std::nullopt;
}

// False where reading the quantity has recorded a problem already: one mistake is one line.
template <class T>
bool is_readable(const JsonReader& json, Parsed<T> (*parse)(std::string_view)) {
  return json.is_string() && std::holds_alternative<T>(parse(json.value().get_ref<const std::string&>()));
}

// Keys of the contract whose meaning is not simulated yet: saying so is better than a silent default.
inline void refuse_unsupported(const JsonReader& json, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (const auto found = json.optional(key)) {
      found->problem("not supported yet: take this key out");
    }
  }
}

}  // namespace lockstep
