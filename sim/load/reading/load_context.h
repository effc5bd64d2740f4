#pragma once

// What the readers of one scenario share: where profiles are, what went wrong, and where each value came
// from.
//
// Problem:   a scenario is spread over several files, but its mistakes are reported together and its origins
//            are printed for the one resolved scenario.
// Idea:      a reader gets two positions: a JsonReader in the file it reads, and a Place in the resolved
//            scenario it fills. Notes and problems of every file end up in one context.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/changed_profile.h"
#include "sim/load/reading/profile_store.h"

namespace lockstep {

struct LoadContext {
  const ProfileStore& store;
  std::string folder;                      // of the scenario, for relative paths
  std::vector<std::string> problems = {};  // of the other files, each line once
  std::vector<std::string> warnings = {};
  std::map<std::string, std::string> origins = {};  // JSON pointer in the resolved scenario -> where from
  std::vector<ChangedProfile> changes = {};

  // The changes to what stands at `pointer`; null: there are none.
  const ChangedProfile* changes_at(std::string_view pointer) const;
  void add_problems(const std::vector<std::string>& lines);
  void add_warnings(const std::vector<std::string>& lines);
};

struct Place {
  LoadContext& context;
  std::string pointer;

  Place operator/(std::string_view key) const;
  void note(std::string origin) const { context.origins[pointer] = std::move(origin); }
  // Beside the value and among the warnings: something other than what was asked for is used.
  void note_stand_in(const std::string& sentence) const;
};

// The file that the string `json` names. Records what is wrong: no such name at `json`, bad JSON in the file.
// `stated` stands beside the name.
std::optional<JsonDocument> open_profile(const JsonReader& json, const Place& place, ProfileKind kind,
                                         const nlohmann::ordered_json& stated = nullptr);

// Whether the object states changes of a profile, and is not whole by itself.
bool has_base(const JsonReader& json);

struct ProfileChange {
  ProfileKind kind;
  std::string name;
  const nlohmann::ordered_json& profile;
  nlohmann::ordered_json changes;
};

// What stands at `json`, laid over the profile; notes what was changed. Empty: there is a problem, recorded.
std::optional<JsonDocument> change_profile(const JsonReader& json, const ProfileChange& change,
                                           const Place& place);

// An object without the key that says what it is based on.
nlohmann::ordered_json changes_in(const JsonReader& json);

// The profile is read as it is first, so that its own mistakes are said of its own file.
template <class T>
T read_changed(const JsonReader& json, const Place& place, ProfileKind kind,
               T (*read)(const JsonReader&, const Place&)) {
  const JsonReader name = json.required(base_key);
  if (!name.is_string()) {
    name.expected(std::string("the name of a ") + std::string(noun_of(kind)) + " or a path");
    return T{};
  }
  std::optional<JsonDocument> profile = open_profile(name, place, kind, json.value());
  if (!profile) {
    return T{};
  }
  LoadContext apart{.store = place.context.store, .folder = place.context.folder};
  read(profile->root(), {apart, place.pointer});
  apart.add_problems(profile->problems());
  if (!apart.problems.empty()) {
    place.context.add_problems(apart.problems);
    return T{};
  }
  std::optional<JsonDocument> document = change_profile(
      json, {.kind = kind, .name = name.text(), .profile = profile->value(), .changes = changes_in(json)},
      place);
  if (!document) {
    return T{};
  }
  T value = read(document->root(), place);
  place.context.add_problems(document->problems());
  return value;
}

// A name, a path, an inline object, or changes of what is named.
template <class T>
T read_named(const JsonReader& json, const Place& place, ProfileKind kind,
             T (*read)(const JsonReader&, const Place&)) {
  if (json.is_object()) {
    return has_base(json) ? read_changed(json, place, kind, read) : read(json, place);
  }
  if (!json.is_string()) {
    json.expected(std::string("the name of a ") + std::string(noun_of(kind)) + ", a path or an object");
    return T{};
  }
  std::optional<JsonDocument> document = open_profile(json, place, kind);
  if (!document) {
    return T{};
  }
  T value = read(document->root(), place);
  place.context.add_problems(document->problems());
  return value;
}

// The profile of this name, as if `place` had named it.
template <class T>
T open_named(const std::string& name, const Place& place, ProfileKind kind,
             T (*read)(const JsonReader&, const Place&)) {
  JsonDocument document = JsonDocument::from_value(name, std::string(noun_of(kind)));
  T value = read_named(document.root(), place, kind, read);
  place.context.add_problems(document.problems());
  return value;
}

}  // namespace lockstep
