#include "sim/scenario/load_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/base/nearest_name.h"

namespace lockstep {
namespace {

void refuse_name(const JsonReader& json, const std::string& name, ProfileKind kind,
                 const LoadContext& context) {
  if (ProfileStore::is_path(name)) {
    json.problem(
        fmt::format("found {}: no such file, neither from the working directory nor beside the scenario",
                    describe_value(json.value())));
    return;
  }
  json.problem(fmt::format("found {}: no such {}; {}; a path ends in .json or holds a /",
                           describe_value(json.value()), noun_of(kind),
                           describe_choices(name, context.store.names(kind))));
}

std::string origin_of(const Profile& profile) {
  const auto source = profile.value->is_object() ? profile.value->find("source") : profile.value->end();
  const bool has_source = profile.value->is_object() && source != profile.value->end() && source->is_string();
  return has_source ? fmt::format("profile {}: {}", profile.label, source->get<std::string>())
                    : fmt::format("profile {}", profile.label);
}

}  // namespace

void LoadContext::add_problems(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (std::find(problems.begin(), problems.end(), line) == problems.end()) {
      problems.push_back(line);
    }
  }
}

Place Place::operator/(std::string_view key) const {
  return {context, extended_pointer(pointer, key)};
}

std::optional<JsonDocument> open_profile(const JsonReader& json, const Place& place, ProfileKind kind) {
  LoadContext& context = place.context;
  const std::string name = json.text();
  try {
    const std::optional<Profile> profile = context.store.open(kind, name, context.folder);
    if (!profile) {
      refuse_name(json, name, kind, context);
      return std::nullopt;
    }
    place.note(origin_of(*profile));
    return JsonDocument::from_value(*profile->value, profile->file);
  } catch (const ConfigError& error) {
    context.add_problems(error.problems);
    return std::nullopt;
  }
}

}  // namespace lockstep
