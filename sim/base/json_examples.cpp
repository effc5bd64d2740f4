#include "sim/base/json_examples.h"

#include <string>
#include <string_view>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string_view kind_of(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::object:
      return "object";
    case ordered_json::value_t::array:
      return "array";
    case ordered_json::value_t::string:
      return "string";
    case ordered_json::value_t::boolean:
      return "boolean";
    case ordered_json::value_t::number_float:
      return "number";
    case ordered_json::value_t::number_integer:
    case ordered_json::value_t::number_unsigned:
      return "integer";
    default:
      return "null";
  }
}

void record_value(const ordered_json& value, const std::string& pointer, JsonRecord& record) {
  record.note_kind(pointer, kind_of(value));
  if (value.is_object())
    record.at(pointer).is_closed = !value.empty();
  std::size_t index = 0;
  for (const auto& item : value.items()) {
    if (value.is_object())
      record.note_key(pointer, item.key(), true);
    if (value.is_structured())
      record_value(item.value(), pointer + "/" + (value.is_array() ? std::to_string(index++) : item.key()),
                   record);
  }
}

}  // namespace

JsonRecord record_of_examples(const std::vector<ordered_json>& examples) {
  JsonRecord all;
  for (const ordered_json& example : examples) {
    JsonRecord record;
    record_value(example, "", record);
    all.merge(record);
  }
  return all;
}

}  // namespace lockstep
