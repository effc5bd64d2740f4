// lockstep schema scenario --reference: what scenarios/README.md shows, and no key without a meaning.

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/load/key_meanings.h"
#include "tests/support/program.h"
#include "tests/support/shipped_schema.h"

namespace lockstep::key_reference_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::run_program;

// What scenarios/README.md shows of it.
std::string shown_reference() {
  const std::string readme = testing::text_of(LOCKSTEP_SOURCE_DIR "/scenarios/README.md");
  const std::string opening = "<!-- every key -->\n";
  const std::size_t begin = readme.find(opening);
  REQUIRE(begin != readme.npos);
  const std::size_t from = begin + opening.size();
  return readme.substr(from, readme.find("<!-- end of every key -->", from) - from);
}

// "cluster.stragglers[].rank" -> its schema's description; what profiles have of their own is left out.
void collect(const json& schema, const std::string& path, std::map<std::string, std::string>& described) {
  if (is_profile(path))
    return;
  if (schema.contains("items"))
    collect(schema["items"], path + "[]", described);
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, below] : properties.items()) {
    const std::string there = path.empty() ? key : path + "." + key;
    described[there] = below.value("description", "");
    collect(below, there, described);
  }
}

std::map<std::string, std::string> described_keys() {
  std::map<std::string, std::string> described;
  collect(testing::shipped_schema("scenario"), "", described);
  return described;
}

TEST_CASE("the reference of keys in scenarios/README.md is the one that is printed") {
  const Answer answer = run_program("schema scenario --reference");
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  CHECK(shown_reference() == answer.out);
}

TEST_CASE("every key of a scenario has a meaning, and the schema tells it") {
  for (const auto& [path, description] : described_keys()) {
    CAPTURE(path);
    CHECK_FALSE(description.empty());
    CHECK(description == meaning_of(path));
  }
}

TEST_CASE("every meaning is of a key") {
  const std::map<std::string, std::string> described = described_keys();
  for (const KeyMeaning& meaning : key_meanings()) {
    CAPTURE(meaning.path);
    CHECK(described.contains(std::string(meaning.path)));
  }
}

// Measured steps in a list mean what one does.
TEST_CASE("every key has a row of its own in the reference") {
  const std::string text = shown_reference();
  for (const auto& [path, description] : described_keys())
    if (!path.starts_with("compute.anchors[]."))
      CHECK_MESSAGE(testing::contains(text, "\n| `" + path + "` | "), path);
}

TEST_CASE("a row tells values, default, who has the option, and meaning") {
  check_says(
      shown_reference(),
      {"| `cluster.machine` | object, or text | required | ", "| `cluster.nodes` | integer from 1 | `1` | ",
       "| `communication.timeout` | such as `\"3 us\"` |  | ",
       "| `training.bucket_cap_mb` | number from 0.001 | `25`; differs by framework | *ddp*: ",
       "| `training.overlap_comm` | `true`, `false` | `true` (zero3), else `false`; differs by framework "
       "| "});
}

TEST_CASE("a kind without a reference is a mistake that names those with one") {
  check_refused("schema machine --reference", {"machine", "valid with it: scenario"});
}

}  // namespace lockstep::key_reference_test
