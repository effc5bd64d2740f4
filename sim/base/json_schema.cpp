#include "sim/base/json_schema.h"

#include <cmath>
#include <vector>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double largest_bound = 1e15;  // what lies beyond is where integers or doubles end

class SchemaWriter {
 public:
  SchemaWriter(const JsonRecord& record, SchemaOf side) : record_(record), side_(side) {}

  // `is_partial`: may be changes of a profile, or is a part of such.
  ordered_json write(const std::string& place, bool is_optional, bool is_partial) const {
    const auto found = record_.notes().find(place);
    if (found == record_.notes().end() || found->second.kinds.empty())
      return ordered_json::object();
    const JsonNote& note = found->second;
    ordered_json schema;
    const std::vector<std::string> kinds = kinds_of(note, is_optional);
    schema["type"] = kinds.size() == 1 ? ordered_json(kinds.front()) : ordered_json(kinds);
    add_names(note, kinds, schema);
    add_minimum(note, schema);
    if (note.kinds.contains("object"))
      add_members(place, note, is_partial || note.keys.contains("based_on"), schema);
    if (note.kinds.contains("array"))
      schema["items"] = write(place + "/*", false, is_partial);
    return schema;
  }

 private:
  // null takes back what may be left out of a file that is read; every integer is a number.
  std::vector<std::string> kinds_of(const JsonNote& note, bool is_optional) const {
    std::vector<std::string> kinds(note.kinds.begin(), note.kinds.end());
    if (note.kinds.contains("number"))
      std::erase(kinds, "integer");
    if (is_optional && side_ == SchemaOf::read)
      kinds.emplace_back("null");
    return kinds;
  }

  // Names beside which another text may stand are examples.
  static void add_names(const JsonNote& note, const std::vector<std::string>& kinds, ordered_json& schema) {
    for (const std::string& quantity : note.quantities) schema["examples"].push_back(quantity);
    if (note.is_free_text || !note.quantities.empty()) {
      for (const std::string& name : note.choices) schema["examples"].push_back(name);
      return;
    }
    if (note.choices.empty())
      return;
    ordered_json others = ordered_json::array();
    for (const std::string& kind : kinds)
      if (kind != "string")
        others.push_back({{"type", kind}});
    if (others.empty()) {
      schema["enum"] = note.choices;
      return;
    }
    others.push_back({{"enum", note.choices}});
    schema["anyOf"] = others;
  }

  static void add_minimum(const JsonNote& note, ordered_json& schema) {
    if (note.minimum && note.has_minimum && std::abs(*note.minimum) < largest_bound)
      schema["minimum"] = *note.minimum;
  }

  void add_members(const std::string& place, const JsonNote& note, bool is_partial,
                   ordered_json& schema) const {
    ordered_json required = ordered_json::array();
    for (const auto& [key, is_required] : note.keys) {
      schema["properties"][key] = write(place + "/" + key, !is_required, is_partial);
      if (is_required && !is_partial)
        required.push_back(key);
    }
    if (!required.empty())
      schema["required"] = required;
    // All keys of an object also count as read where a mistake elsewhere leaves open which belong there.
    if (note.has_any_key && note.keys.empty())
      schema["additionalProperties"] = write(place + "/*", false, is_partial);
    else if (note.is_closed)
      schema["additionalProperties"] = false;
  }

  const JsonRecord& record_;
  SchemaOf side_;
};

}  // namespace

ordered_json json_schema_of(const JsonRecord& record, const std::string& title, SchemaOf side) {
  ordered_json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(SchemaWriter(record, side).write("", false, false));
  if (side == SchemaOf::read && schema.contains("properties"))
    schema["properties"]["$schema"] = {{"type", "string"}};
  return schema;
}

}  // namespace lockstep
