#include "sim/load/import/key_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/json_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_keys = 10'000;

bool is_at_or_below(std::string_view path, std::string_view key) {
  return path == key || (path.starts_with(key) && path[key.size()] == '.');
}

bool is_meant(std::string_view path, std::string_view pattern) {
  return pattern.ends_with('*') ? path.starts_with(pattern.substr(0, pattern.size() - 1))
                                : is_at_or_below(path, pattern);
}

// YAML and arguments hold numbers as text; 1e5 is one as well, and "5e8" in a JSON of DeepSpeed.
std::optional<double> number_in(const ordered_json& value) {
  if (value.is_number())
    return value.get<double>();
  if (!value.is_string())
    return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && rest == text.data() + text.size() && !text.empty();
  return is_number ? std::optional(number) : std::nullopt;
}

std::optional<bool> flag_in(const ordered_json& value) {
  if (value.is_boolean())
    return value.get<bool>();
  if (!value.is_string())
    return std::nullopt;
  std::string text = value.get<std::string>();
  std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  if (text == "true" || text == "yes")
    return true;
  return text == "false" || text == "no" ? std::optional(false) : std::nullopt;
}

}  // namespace

std::string shown(const ordered_json& value) {
  return describe_value(value);
}

KeyAccount::KeyAccount(const ordered_json& object, const std::string& file_name,
                       const std::vector<std::string>& whole) {
  if (!object.is_object())
    throw ConfigError(fmt::format("{}: found {}, expected settings by name", file_name, shown(object)));
  flatten("", object, whole);
  if (entries_.size() > most_keys)
    throw ConfigError(
        fmt::format("{}: found more than {} keys, expected a file of settings", file_name, most_keys));
}

void KeyAccount::flatten(const std::string& prefix, const ordered_json& value,
                         const std::vector<std::string>& whole) {
  const bool is_whole = std::find(whole.begin(), whole.end(), prefix) != whole.end();
  if (is_whole || !value.is_object() || value.empty()) {
    if (!prefix.empty() && entries_.size() <= most_keys)
      entries_.push_back({.key = prefix, .value = value});
    return;
  }
  for (const auto& [key, member] : value.items())
    flatten(prefix.empty() ? key : prefix + "." + key, member, whole);
}

const ordered_json* KeyAccount::find(std::string_view key) const {
  for (const Entry& entry : entries_)
    if (entry.key == key && !entry.value.is_null())
      return &entry.value;
  return nullptr;
}

bool KeyAccount::has_below(std::string_view key) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return is_at_or_below(entry.key, key) && !entry.value.is_null();
  });
}

std::optional<double> KeyAccount::number(std::string_view key, double least, double most) {
  const ordered_json* value = find(key);
  if (value == nullptr)
    return std::nullopt;
  const std::optional<double> number = number_in(*value);
  if (!number || !std::isfinite(*number) || *number < least || *number > most) {
    mistake(key, *value, fmt::format("a number from {} to {}", least, most));
    return std::nullopt;
  }
  used(key, "read");
  return number;
}

std::optional<std::int64_t> KeyAccount::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const ordered_json* value = find(key);
  if (value == nullptr)
    return std::nullopt;
  const std::optional<double> number = number_in(*value);
  const bool is_whole = number && std::isfinite(*number) && *number == std::floor(*number) &&
                        *number >= static_cast<double>(least) && *number <= static_cast<double>(most);
  if (!is_whole) {
    mistake(key, *value, fmt::format("a whole number from {} to {}", least, most));
    return std::nullopt;
  }
  used(key, "read");
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> KeyAccount::flag(std::string_view key) {
  const ordered_json* value = find(key);
  if (value == nullptr)
    return std::nullopt;
  const std::optional<bool> flag = flag_in(*value);
  if (flag)
    used(key, "read");
  else
    mistake(key, *value, "true or false");
  return flag;
}

std::optional<std::string> KeyAccount::text(std::string_view key) {
  const ordered_json* value = find(key);
  if (value == nullptr)
    return std::nullopt;
  if (!value->is_string()) {
    mistake(key, *value, "a text");
    return std::nullopt;
  }
  used(key, "read");
  return value->get<std::string>();
}

void KeyAccount::mark(std::string_view key, KeyFate fate, std::string said) {
  const auto is_open = [&](const Entry& entry) { return !entry.use || entry.use->fate != KeyFate::refused; };
  for (Entry& entry : entries_)
    if (is_at_or_below(entry.key, key) && is_open(entry))
      entry.use = KeyUse{.key = entry.key, .fate = fate, .said = said};
}

void KeyAccount::mistake(std::string_view key, const ordered_json& found, std::string_view expected) {
  refused(key, fmt::format("found {}, expected {}", shown(found), expected));
}

void KeyAccount::leave(const std::vector<Reason>& reasons) {
  for (Entry& entry : entries_)
    for (const Reason& reason : reasons)
      if (!entry.use && std::any_of(reason.keys.begin(), reason.keys.end(),
                                    [&](std::string_view key) { return is_meant(entry.key, key); }))
        entry.use = KeyUse{.key = entry.key, .fate = KeyFate::left_aside, .said = std::string(reason.why)};
}

std::vector<std::string> KeyAccount::unknown() const {
  std::vector<std::string> keys;
  for (const Entry& entry : entries_)
    if (!entry.use && !entry.value.is_null())
      keys.push_back(entry.key);
  return keys;
}

void KeyAccount::leave_unknown(const std::string& why) {
  for (Entry& entry : entries_)
    if (!entry.use && !entry.value.is_null())
      entry.use = KeyUse{.key = entry.key, .fate = KeyFate::left_aside, .said = why};
}

std::vector<KeyUse> KeyAccount::uses() const {
  std::vector<KeyUse> uses;
  for (const Entry& entry : entries_)
    uses.push_back(
        entry.use.value_or(KeyUse{.key = entry.key, .fate = KeyFate::left_aside, .said = "null: not said"}));
  return uses;
}

}  // namespace lockstep
