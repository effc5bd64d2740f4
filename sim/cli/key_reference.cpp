#include "sim/cli/key_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/load/key_defaults.h"
#include "sim/load/key_meanings.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view opening =
    "Keys are written as `--set` takes them, `[]` standing for an element of a list. `null` is as good as "
    "leaving a "
    "key out. Where a default is said to differ by framework, the one here is that of the strategy's usual "
    "framework; "
    "`lockstep explain SCENARIO` prints every default of a scenario with its source. The keys of machines, "
    "GPUs and "
    "fabrics are in `hw_profiles/README.md`.\n";

// In the order in which one is written; a part that is not among them comes last.
constexpr std::array parts{"cluster", "model",      "training", "communication", "compute",
                           "input",   "simulation", "compare",  "plan"};

std::string code(std::string_view text) {
  return fmt::format("`{}`", text);
}

std::vector<std::string> codes(const ordered_json& values) {
  std::vector<std::string> texts;
  for (const ordered_json& value : values) texts.push_back(code(value.dump()));
  return texts;
}

// ---- what may stand there ----

std::vector<std::string> kinds_of(const ordered_json& schema) {
  const auto type = schema.find("type");
  if (type == schema.end())
    return {};
  auto kinds =
      type->is_array() ? type->get<std::vector<std::string>>() : std::vector{type->get<std::string>()};
  std::erase(kinds, "null");
  return kinds;
}

std::vector<std::string> names_of(const ordered_json& schema) {
  if (schema.contains("enum"))
    return codes(schema["enum"]);
  for (const ordered_json& choice : schema.value("anyOf", ordered_json::array()))
    if (choice.contains("enum"))
      return codes(choice["enum"]);
  return {};
}

std::string text_values(const ordered_json& schema) {
  if (const std::vector<std::string> names = names_of(schema); !names.empty())
    return fmt::format("{}", fmt::join(names, ", "));
  if (schema.contains("examples"))
    return fmt::format("such as {}", fmt::join(codes(schema["examples"]), ", "));
  return "text";
}

std::string number_values(std::string_view kind, const ordered_json& schema) {
  const auto minimum = schema.find("minimum");
  return minimum == schema.end() ? std::string(kind)
                                 : fmt::format("{} from {}", kind, minimum->get<double>());
}

std::string values_of(const ordered_json& schema) {
  std::vector<std::string> forms;
  for (const std::string& kind : kinds_of(schema)) {
    if (kind == "string")
      forms.push_back(text_values(schema));
    else if (kind == "boolean")
      forms.emplace_back("`true`, `false`");
    else if (kind == "array")
      forms.push_back(fmt::format("list ({})", values_of(schema.value("items", ordered_json::object()))));
    else if (kind == "object")
      forms.emplace_back("object");
    else
      forms.push_back(number_values(kind, schema));
  }
  return fmt::format("{}", fmt::join(forms, ", or "));
}

// ---- what holds where it is left out ----

std::string text_of(const DefaultValue& value) {
  return value.is_why ? value.text : code(value.text);
}

// "`1` (zero3), else `2`": that of the first strategy stands last.
std::string values_by_strategy(const std::vector<StrategyDefault>& values) {
  if (values.empty())
    return "";
  std::vector<std::string> texts;
  for (std::size_t index = 1; index < values.size(); ++index)
    texts.push_back(
        fmt::format("{} ({})", text_of(values[index].value), fmt::join(values[index].strategies, ", ")));
  texts.push_back((texts.empty() ? "" : "else ") + text_of(values.front().value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string default_text(const KeyDefault& found) {
  std::string text = values_by_strategy(found.values);
  if (found.differs_by_framework)
    text += text.empty() ? "by framework" : "; differs by framework";
  return text;
}

// ---- the tables ----

struct Row {
  std::string key;
  std::string values;
  std::string default_value;
  std::string meaning;
};

std::string in_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2))
    text.insert(at, 1, '\\');
  return text;
}

std::string table_of(const std::vector<Row>& rows) {
  std::string text = "| key | values | default | meaning |\n|---|---|---|---|\n";
  for (const Row& row : rows)
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.key, in_cell(row.values), in_cell(row.default_value),
                        in_cell(row.meaning));
  return text;
}

class KeyRows {
 public:
  explicit KeyRows(const ProfileStore& store)
      : defaults_(find_key_defaults(store)), strategies_(strategies_by_option()) {}

  // Of a key and all below it.
  std::vector<Row> rows_of(const std::string& path, const ordered_json& schema, bool is_required) const {
    std::vector<Row> rows{{.key = path,
                           .values = values_of(schema),
                           .default_value = is_required ? "required" : default_of(path),
                           .meaning = meaning(path, schema)}};
    if (!is_profile(path))
      add_members(path, schema, rows);
    return rows;
  }

 private:
  std::string default_of(const std::string& path) const {
    const auto found = defaults_.find(path);
    return found == defaults_.end() ? "" : default_text(found->second);
  }

  // Opens with the strategies that alone have this option.
  std::string meaning(const std::string& path, const ordered_json& schema) const {
    const std::string text = schema.value("description", "");
    const auto owners = strategies_.find(path);
    return owners == strategies_.end() ? text
                                       : fmt::format("*{}*: {}", fmt::join(owners->second, ", "), text);
  }

  // A list of measured steps says nothing that one does not.
  void add_members(const std::string& path, const ordered_json& schema, std::vector<Row>& rows) const {
    if (schema.contains("items") && path != "compute.anchors")
      add_members(path + "[]", schema["items"], rows);
    const ordered_json required = schema.value("required", ordered_json::array());
    const ordered_json properties = schema.value("properties", ordered_json::object());
    for (const auto& [key, member] : properties.items()) {
      const bool is_required = std::find(required.begin(), required.end(), key) != required.end();
      for (Row& row : rows_of(path + "." + key, member, is_required)) rows.push_back(std::move(row));
    }
  }

  std::map<std::string, KeyDefault> defaults_;
  std::map<std::string, std::vector<std::string>> strategies_;
};

bool is_part(std::string_view key) {
  return std::find(parts.begin(), parts.end(), key) != parts.end();
}

}  // namespace

std::string key_reference(const ordered_json& schema, const ProfileStore& store) {
  const KeyRows all(store);
  const ordered_json& properties = schema["properties"];
  std::vector<Row> alone;
  for (const auto& [key, member] : properties.items())
    if (!is_part(key))
      for (Row& row : all.rows_of(key, member, false)) alone.push_back(std::move(row));
  std::string text = fmt::format("{}\n{}", opening, table_of(alone));
  for (const char* part : parts)
    text += fmt::format("\n### `{}`\n\n{}", part, table_of(all.rows_of(part, properties[part], false)));
  return text;
}

}  // namespace lockstep
