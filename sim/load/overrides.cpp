#include "sim/load/overrides.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/load/read_model.h"
#include "sim/load/reading/changed_profile.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string_view last_name_of(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

// Where a profile may stand by its name, apart from the model.
bool is_place_of_profile(std::string_view path) {
  constexpr std::array names{"machine", "gpu", "fabric", "calibration", "link", "pcie", "socket_link"};
  return path.starts_with("cluster.") &&
         std::find(names.begin(), names.end(), last_name_of(path)) != names.end();
}

// As JsonDocument::set will read it.
ordered_json value_of(const std::string& text) {
  try {
    return parse_json_text(text, "--set");
  } catch (const ConfigError&) {
    return text;
  }
}

// Releases are texts: as a number 2.10 would be 2.1.
bool is_release(std::string_view path, const ordered_json& said) {
  const std::string_view key = last_name_of(path);
  return said.is_number() && (key == "framework_version" || key == "library_version");
}

// Places of names come first, from the outside in; all others stay in their order behind them.
std::size_t turn_of(const std::pair<std::string, std::string>& override_) {
  const auto& [path, value] = override_;
  const bool names = path == "model" || path == "model.name" || is_place_of_profile(path);
  return names && value != "null" ? static_cast<std::size_t>(std::count(path.begin(), path.end(), '.'))
                                  : std::string::npos;
}

Overrides in_turn(Overrides overrides) {
  std::stable_sort(overrides.begin(), overrides.end(),
                   [](const auto& left, const auto& right) { return turn_of(left) < turn_of(right); });
  return overrides;
}

// "4" and "link" are told apart, so that the elements of a list can be changed as well.
bool is_index(std::string_view name) {
  constexpr std::size_t longest = 6;
  return !name.empty() && name.size() <= longest && name.find_first_not_of("0123456789") == name.npos;
}

const ordered_json* member_at(const ordered_json& value, const std::string& name) {
  if (value.is_array()) {
    const std::size_t index = is_index(name) ? std::stoul(name) : value.size();
    return index < value.size() ? &value[index] : nullptr;
  }
  const auto member = value.is_object() ? value.find(name) : value.end();
  return value.is_object() && member != value.end() ? &*member : nullptr;
}

const ordered_json* value_at(const ordered_json& value, std::string_view path) {
  const ordered_json* found = &value;
  while (found != nullptr && !path.empty()) {
    const std::string name(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    found = member_at(*found, name);
  }
  return found;
}

void name_model(JsonDocument& document) {
  const ordered_json* model = value_at(document.value(), "model");
  if (model != nullptr && model->is_string()) {
    document.set("model", ordered_json{{"name", *model}}.dump());
  }
}

void open_way(JsonDocument& document, const std::string& path) {
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
    const std::string above = path.substr(0, dot);
    const ordered_json* value = value_at(document.value(), above);
    if (value == nullptr) {
      return;
    }
    if (value->is_string() && is_place_of_profile(above)) {
      document.set(above, ordered_json{{std::string(base_key), *value}}.dump());
    } else if (value->is_array() && last_name_of(above) == "nics") {
      const std::string_view next = std::string_view(path).substr(dot + 1);
      const ordered_json nics = short_form_of_nics(*value);
      if (!is_index(next.substr(0, next.find('.'))) && !nics.is_null()) {
        document.set(above, nics.dump());
      }
    }
  }
}

// The model's use stays: what the batch is does not depend on its name.
std::string renamed_model(const ordered_json& model, const ordered_json& name) {
  ordered_json renamed = defines_model(model) ? ordered_json::object() : model;
  for (const char* key : {"batch_per_gpu", "precision", "sequence_length"}) {
    if (model.contains(key)) {
      renamed[key] = model[key];
    }
  }
  renamed["name"] = name;
  return renamed.dump();
}

void apply(JsonDocument& document, const std::string& path, const std::string& value) {
  open_way(document, path);
  const ordered_json* current = value_at(document.value(), path);
  const ordered_json said = is_utf8(value) ? value_of(value) : ordered_json();
  const bool renames = said.is_string() && current != nullptr && current->is_object();
  if (said.is_string() && path == "model") {
    document.set(path, renamed_model(renames ? *current : ordered_json::object(), said));
  } else if (renames && current->contains(base_key)) {
    document.set(path + "." + std::string(base_key), said.dump());
  } else {
    document.set(path, is_release(path, said) ? ordered_json(value).dump() : value);
  }
}

}  // namespace

std::string as_set(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string describe(const Overrides& changes) {
  std::string text;
  for (const auto& [path, value] : changes) text += (text.empty() ? "" : " ") + path + "=" + value;
  return text;
}

void apply_overrides(JsonDocument& document, const Overrides& overrides) {
  name_model(document);
  std::vector<std::string> problems;
  for (const auto& [path, value] : in_turn(overrides)) {
    try {
      apply(document, path, value);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems.begin(), error.problems.end());
    }
  }
  name_model(document);
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
}

Overrides overrides_of(const LibraryChoice& choice) {
  Overrides overrides;
  if (!choice.calibration.empty()) {
    overrides.emplace_back(calibration_path, ordered_json(choice.calibration).dump());
  }
  if (!choice.library_version.empty()) {
    overrides.emplace_back(library_version_path, ordered_json(choice.library_version).dump());
  }
  return overrides;
}

}  // namespace lockstep
