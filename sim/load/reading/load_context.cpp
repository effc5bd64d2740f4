#include "sim/load/reading/load_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/base/nearest_name.h"
#include "sim/load/import/import_file.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

void refuse_name(const JsonReader& json, const std::string& name, ProfileKind kind,
                 const LoadContext& context) {
  if (ProfileStore::is_path(name)) {
    json.problem(
        fmt::format("found {}: no such file, neither from the working directory nor beside the scenario",
                    describe_value(json.value())));
    return;
  }
  json.problem(fmt::format(
      "found {}: no such {}; {}; a path ends in .json, holds a / or is a file that is there",
      describe_value(json.value()), noun_of(kind), describe_choices(name, context.store.names(kind))));
}

std::string origin_of(const Profile& profile) {
  const auto source = profile.value->is_object() ? profile.value->find("source") : profile.value->end();
  const bool has_source = profile.value->is_object() && source != profile.value->end() && source->is_string();
  return has_source ? fmt::format("profile {}: {}", profile.label, source->get<std::string>())
                    : fmt::format("profile {}", profile.label);
}

constexpr const char* planned_bandwidth = "nccl_bandwidth";

// What a library takes a link for belongs to the bandwidth it was stated for.
void forget_plans(const ordered_json& changes, ProfileKind kind, ordered_json& value) {
  if (kind == ProfileKind::link && changes.contains("bandwidth") && !changes.contains(planned_bandwidth)) {
    value.erase(planned_bandwidth);
  }
}

// The source speaks of the profile as it is in its file.
void label_source(const std::vector<ChangedValue>& changes, ordered_json& value) {
  const auto source = value.find("source");
  if (!changes.empty() && source != value.end() && source->is_string()) {
    *source = fmt::format("{}; changed: {}", source->get<std::string>(), text_of(changes));
  }
}

// A machine that states no calibration has the one of its name, if there is one.
ordered_json with_own_calibration(ordered_json machine, const ProfileStore& store) {
  const auto name = machine.find("name");
  if (!machine.contains("calibration") && name != machine.end() && name->is_string() &&
      store.has(ProfileKind::calibration, name->get_ref<const std::string&>())) {
    machine["calibration"] = *name;
  }
  return machine;
}

std::vector<std::string> keys_of(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) {
    keys.push_back(item.key());
  }
  return keys;
}

}  // namespace

const ChangedProfile* LoadContext::changes_at(std::string_view pointer) const {
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const ChangedProfile& profile) { return profile.pointer == pointer; });
  return found == changes.end() ? nullptr : &*found;
}

void LoadContext::add_problems(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (std::find(problems.begin(), problems.end(), line) == problems.end()) {
      problems.push_back(line);
    }
  }
}

void LoadContext::add_warnings(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    if (std::find(warnings.begin(), warnings.end(), line) == warnings.end())
      warnings.push_back(line);
}

Place Place::operator/(std::string_view key) const {
  return {context, extended_pointer(pointer, key)};
}

void Place::note_stand_in(const std::string& sentence) const {
  note(sentence);
  context.warnings.push_back(sentence);
}

std::optional<JsonDocument> open_profile(const JsonReader& json, const Place& place, ProfileKind kind,
                                         const ordered_json& stated) {
  LoadContext& context = place.context;
  const std::string name = json.text();
  try {
    const std::optional<Profile> profile = context.store.open(kind, name, context.folder, stated);
    if (!profile) {
      refuse_name(json, name, kind, context);
      return std::nullopt;
    }
    place.note(origin_of(*profile));
    if (profile->warnings != nullptr)
      context.add_warnings(*profile->warnings);
    return JsonDocument::over(*profile->value, profile->file);
  } catch (const ConfigError& error) {
    context.add_problems(error.problems);
    return std::nullopt;
  }
}

bool has_base(const JsonReader& json) {
  return json.is_object() && json.value().contains(base_key);
}

ordered_json changes_in(const JsonReader& json) {
  ordered_json changes = json.value();
  changes.erase(std::string(base_key));
  return changes;
}

// What answered an importer's questions and is no key of what it made: it has had its effect.
ordered_json without_answers(const ProfileChange& change, const JsonReader& json,
                             const LoadContext& context) {
  ordered_json changes = change.changes;
  const std::optional<Profile> opened =
      context.store.open(change.kind, change.name, context.folder, json.value());
  const bool is_imported = opened && opened->warnings != nullptr;
  const NamedImporter* importer = is_imported ? importer_of_file(opened->file) : nullptr;
  if (importer != nullptr)
    for (const std::string& key : importer->second.asks_for)
      if (!change.profile.contains(key))
        changes.erase(key);
  return changes;
}

std::optional<JsonDocument> change_profile(const JsonReader& json, const ProfileChange& change,
                                           const Place& place) {
  const auto& [kind, name, profile, stated] = change;
  const ordered_json changes = without_answers(change, json, place.context);
  const ordered_json base = kind == ProfileKind::machine && changes.contains("calibration")
                                ? with_own_calibration(profile, place.context.store)
                                : profile;
  ChangedDocument changed = lay_over(base, changes);
  forget_plans(changes, kind, changed.value);
  for (const std::string& problem : changed.problems) {
    place.context.add_problems({fmt::format("{}: {}{}", json.file_name(), json.pointer(), problem)});
  }
  if (!changes.contains("source")) {
    label_source(changed.values, changed.value);
  }
  place.context.changes.push_back({.noun = std::string(noun_of(kind)),
                                   .name = name,
                                   .pointer = place.pointer,
                                   .keys = keys_of(changes),
                                   .values = std::move(changed.values)});
  return changed.problems.empty()
             ? std::optional(JsonDocument::from_value(changed.value, json.file_name(), json.pointer()))
             : std::nullopt;
}

}  // namespace lockstep
