// Keys, each with one fate.

#include "sim/load/import/key_account.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"

namespace lockstep::key_account_test {

using nlohmann::ordered_json;

KeyAccount account(const char* json) {
  return {ordered_json::parse(json), "settings.json"};
}

TEST_CASE("nested settings are dotted keys, in the file's order") {
  const KeyAccount keys = account(R"({"b": {"c": 1, "a": {}}, "a": [1, 2], "n": null})");
  std::vector<std::string> names;
  for (const KeyUse& use : keys.uses()) names.push_back(use.key);
  CHECK(names == std::vector<std::string>{"b.c", "b.a", "a", "n"});
  CHECK(keys.has_below("b"));
  CHECK_FALSE(keys.has("b"));
  CHECK_FALSE(keys.has("n"));
}

TEST_CASE("a value of a wrong kind is refused, and answers as if it were missing") {
  KeyAccount keys = account(R"({"count": 2.5, "flag": "perhaps", "text": 3, "huge": 1e300, "far": 11})");
  CHECK_FALSE(keys.integer("count", 0, 10));
  CHECK_FALSE(keys.flag("flag"));
  CHECK_FALSE(keys.text("text"));
  CHECK_FALSE(keys.integer("huge", 0, 10));
  CHECK_FALSE(keys.integer("far", 0, 10));
  for (const KeyUse& use : keys.uses()) CHECK(use.fate == KeyFate::refused);
}

TEST_CASE("a refusal stays, whatever is said of the key afterwards") {
  KeyAccount keys = account(R"({"count": "many"})");
  CHECK_FALSE(keys.integer("count", 0, 10));
  keys.used("count", "somewhere");
  keys.leave({{{"count"}, "it does not matter"}});
  CHECK(keys.uses().front().fate == KeyFate::refused);
}

TEST_CASE("numbers and flags may stand in quotes, as launchers write them") {
  KeyAccount keys = account(R"({"count": "5e8", "yes": "True", "no": "no"})");
  CHECK(keys.integer("count", 0, 1'000'000'000) == 500'000'000);
  CHECK(keys.flag("yes") == true);
  CHECK(keys.flag("no") == false);
}

TEST_CASE("what nobody marks is unknown, but for null") {
  KeyAccount keys = account(R"({"save_steps": 1, "save": {"a": 1}, "other": 2, "none": null})");
  keys.leave({{{"save_*", "save"}, "of saving"}});
  CHECK(keys.unknown() == std::vector<std::string>{"other"});
}

TEST_CASE("settings are an object of a bounded number of keys") {
  CHECK_THROWS_AS(account("[1]"), ConfigError);
  ordered_json many = ordered_json::object();
  for (int key = 0; key < 10'001; ++key) many[std::to_string(key)] = key;
  CHECK_THROWS_AS(KeyAccount(many, "settings.json"), ConfigError);
}

}  // namespace lockstep::key_account_test
