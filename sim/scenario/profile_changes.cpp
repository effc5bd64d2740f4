#include "sim/scenario/profile_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/json_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string shown(const ordered_json& value) {
  return abbreviated(value.is_string() ? value.get_ref<const std::string&>() : value.dump());
}

std::string shown(const ChangedValue& changed) {
  const std::string value = changed.value.is_null() ? "left out" : shown(changed.value);
  const std::string before = changed.before.is_null() ? "not stated" : shown(changed.before);
  return fmt::format("{} {} ({})", changed.path, value, before);
}

}  // namespace

bool ChangedProfile::changes_key(std::string_view key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string text_of(const std::vector<ChangedValue>& values) {
  std::string text;
  for (const ChangedValue& value : values) {
    text += (text.empty() ? "" : ", ") + shown(value);
  }
  return text;
}

std::string text_of(const ChangedProfile& profile) {
  return fmt::format("{} {} with {}", profile.noun, profile.name, text_of(profile.values));
}

std::string text_of(const std::vector<ChangedProfile>& profiles) {
  std::string text;
  for (const ChangedProfile& profile : profiles) {
    if (!profile.values.empty()) {
      text += (text.empty() ? "" : "; ") + text_of(profile);
    }
  }
  return text;
}

}  // namespace lockstep
