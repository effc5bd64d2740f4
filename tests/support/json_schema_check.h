#pragma once

// Whether a document is valid by a JSON Schema, of the keywords that `lockstep schema` writes.
//
// Invariant: a keyword that is not known here is a problem, so that none is passed over.
// Reference: JSON Schema, draft 2020-12: applicators of objects and arrays, and the validation vocabulary.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::testing {

using nlohmann::json;

inline bool is_of_kind(const json& value, const std::string& kind) {
  if (kind == "integer")
    return value.is_number_integer() ||
           (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
  return (kind == "number" && value.is_number()) || (kind == "string" && value.is_string()) ||
         (kind == "boolean" && value.is_boolean()) || (kind == "object" && value.is_object()) ||
         (kind == "array" && value.is_array()) || (kind == "null" && value.is_null());
}

class SchemaCheck {
 public:
  // "/cluster/nodes: type", ...; empty where the document is valid.
  std::vector<std::string> problems_of(const json& document, const json& schema) {
    check(document, schema, "");
    return problems_;
  }

 private:
  void fail(const std::string& place, const std::string& keyword) {
    problems_.push_back(place + ": " + keyword);
  }

  void check(const json& value, const json& schema, const std::string& place) {
    for (const auto& [keyword, argument] : schema.items())
      check_keyword(value, schema, place, keyword, argument);
  }

  void check_keyword(const json& value, const json& schema, const std::string& place,
                     const std::string& keyword, const json& argument) {
    if (keyword == "$schema" || keyword == "title" || keyword == "description" || keyword == "examples")
      return;
    if (keyword == "type")
      return check_type(value, argument, place);
    if (keyword == "enum" && std::find(argument.begin(), argument.end(), value) == argument.end())
      return fail(place, "enum");
    if (keyword == "anyOf")
      return check_any(value, argument, place);
    if (keyword == "minimum" && value.is_number() && value < argument)
      return fail(place, "minimum");
    if (keyword == "maximum" && value.is_number() && value > argument)
      return fail(place, "maximum");
    if (keyword == "required")
      return check_required(value, argument, place);
    if (keyword == "properties" && value.is_object())
      return check_properties(value, argument, place);
    if (keyword == "additionalProperties" && value.is_object())
      return check_others(value, schema, argument, place);
    if (keyword == "items" && value.is_array())
      return check_items(value, argument, place);
    const std::vector<std::string> known{
        "enum", "minimum", "maximum", "required", "properties", "additionalProperties", "items"};
    if (std::find(known.begin(), known.end(), keyword) == known.end())
      fail(place, "unknown keyword " + keyword);
  }

  void check_type(const json& value, const json& kinds, const std::string& place) {
    const json all = kinds.is_array() ? kinds : json::array({kinds});
    if (std::none_of(all.begin(), all.end(),
                     [&](const json& kind) { return is_of_kind(value, kind.get<std::string>()); }))
      fail(place, "type");
  }

  void check_any(const json& value, const json& schemas, const std::string& place) {
    if (std::none_of(schemas.begin(), schemas.end(),
                     [&](const json& schema) { return SchemaCheck().problems_of(value, schema).empty(); }))
      fail(place, "anyOf");
  }

  void check_required(const json& value, const json& keys, const std::string& place) {
    if (value.is_object())
      for (const json& key : keys)
        if (!value.contains(key.get<std::string>()))
          fail(place + "/" + key.get<std::string>(), "required");
  }

  void check_properties(const json& value, const json& schemas, const std::string& place) {
    for (const auto& [key, schema] : schemas.items())
      if (value.contains(key))
        check(value.at(key), schema, place + "/" + key);
  }

  void check_others(const json& value, const json& schema, const json& others, const std::string& place) {
    const json known = schema.value("properties", json::object());
    for (const auto& [key, member] : value.items()) {
      if (known.contains(key))
        continue;
      if (others.is_object())
        check(member, others, place + "/" + key);
      else if (others == false)
        fail(place + "/" + key, "additionalProperties");
    }
  }

  void check_items(const json& value, const json& schema, const std::string& place) {
    for (std::size_t index = 0; index < value.size(); ++index)
      check(value[index], schema, place + "/" + std::to_string(index));
  }

  std::vector<std::string> problems_ = {};
};

}  // namespace lockstep::testing
