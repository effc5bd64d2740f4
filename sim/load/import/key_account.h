#pragma once

// Each key of a file of settings, and what became of it.
//
// Problem:   files of other tools hold dozens of keys of which a few matter here; none may be dropped silently, and a
//            value of a wrong kind must be said of its key.
// Idea:      the file is flattened to dotted keys ("zero_optimization.stage"); a typed look-up marks its key as used, two
//            others as left aside or refused. What nobody asked for is left aside with a warning.
// Invariant: `uses` has every key of the file once, in the file's order. Null counts as not said. A value that is no
//            finite number, flag or text where one is asked for is refused, and the look-up answers as if it were missing.
// Cost:      linear in the file, times the length of a key.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/load/import/importer.h"

namespace lockstep {

class KeyAccount {
 public:
  // `whole`: keys that are not flattened. Throws ConfigError above 10,000 keys: no file of settings has as many.
  KeyAccount(const nlohmann::ordered_json& object, const std::string& file_name,
             const std::vector<std::string>& whole = {});

  // Said, and not null. Marks nothing.
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const nlohmann::ordered_json* find(std::string_view key) const;
  // Any key below, or the key itself.
  bool has_below(std::string_view key) const;

  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
  std::optional<double> number(std::string_view key, double least, double most);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string> text(std::string_view key);

  // What became of a key, and of all below it. The last word holds, but a refusal stays.
  void used(std::string_view key, std::string said) { mark(key, KeyFate::used, std::move(said)); }
  void left(std::string_view key, std::string why) { mark(key, KeyFate::left_aside, std::move(why)); }
  void refused(std::string_view key, std::string why) { mark(key, KeyFate::refused, std::move(why)); }
  // Leaves aside what of these nobody has marked; a name that ends in * stands for all that begin so.
  struct Reason {
    std::vector<std::string_view> keys;
    std::string_view why;
  };
  void leave(const std::vector<Reason>& reasons);

  // That nobody has marked.
  std::vector<std::string> unknown() const;
  void leave_unknown(const std::string& why);

  std::vector<KeyUse> uses() const;

 private:
  struct Entry {
    std::string key;
    nlohmann::ordered_json value;
    std::optional<KeyUse> use = {};
  };

  void flatten(const std::string& prefix, const nlohmann::ordered_json& value,
               const std::vector<std::string>& whole);
  void mark(std::string_view key, KeyFate fate, std::string said);
  void mistake(std::string_view key, const nlohmann::ordered_json& found, std::string_view expected);

  std::vector<Entry> entries_;
};

// A JSON value as one line of a message.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace lockstep
