// Whatever stands in a file, load either answers or says what is wrong with it.

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/base/random.h"
#include "tests/scenario/lab.h"

namespace lockstep::load_fuzz_test {

using nlohmann::ordered_json;

std::vector<std::string> seeds() {
  return {testing::lab_text, testing::resnet_text};
}

// True when it loads; anything but a ConfigError escapes and fails the test.
bool loads(const std::string& text, const ProfileStore& store) {
  try {
    load_value(JsonDocument::from_text(text, "scenario").value(), {.store = store});
    return true;
  } catch (const ConfigError& error) {
    CHECK_FALSE(error.problems.empty());
    return false;
  }
}

std::string mutated(std::string text, std::uint64_t draw) {
  constexpr std::string_view letters = "\"{}[]:,0123456789-.eE ntfs/\\\x01\x80\xff";
  const std::uint64_t changes = 1 + keyed_random(1, draw, 0) % 4;
  for (std::uint64_t change = 0; change < changes; ++change) {
    const std::uint64_t bits = keyed_random(2, draw, change);
    const std::size_t place = (bits >> 16U) % text.size();
    const char letter = letters[(bits >> 4U) % letters.size()];
    switch (bits % 4) {
      case 0:
        text[place] = letter;
        break;
      case 1:
        text.erase(place, 1 + (bits >> 40U) % 8);
        break;
      case 2:
        text.insert(place, 1, letter);
        break;
      default:
        text.insert(place, text.substr((bits >> 32U) % text.size(), (bits >> 48U) % 32));
    }
  }
  return text;
}

TEST_CASE("random changes of bytes only ever load or fail as the user's mistake") {
  const ProfileStore store;
  int loaded = 0;
  for (std::uint64_t draw = 0; draw < 4'000; ++draw) {
    const std::vector<std::string> texts = seeds();
    CAPTURE(draw);
    loaded += loads(mutated(texts[draw % texts.size()], draw), store) ? 1 : 0;
  }
  CHECK(loaded > 0);  // changes inside names and numbers leave valid scenarios too
}

void collect_pointers(const ordered_json& json, const std::string& pointer,
                      std::vector<std::string>& pointers) {
  pointers.push_back(pointer);
  if (!json.is_structured()) {
    return;
  }
  for (const auto& item : json.items()) {
    collect_pointers(item.value(), pointer + "/" + item.key(), pointers);
  }
}

TEST_CASE("every value of a resolved scenario may be replaced by any odd value") {
  const std::array<const char*, 12> odd{"null", "true", "-1", "0",        "1e300",     "9223372036854775807",
                                        "\"\"", "[]",   "{}", "\"0 us\"", "\"4 EiB\"", "\"53 days\""};
  const ProfileStore store;
  const ordered_json resolved = testing::load_lab().resolved;
  std::vector<std::string> pointers;
  collect_pointers(resolved, "", pointers);
  for (const std::string& pointer : pointers) {
    for (const char* value : odd) {
      CAPTURE(pointer);
      CAPTURE(value);
      ordered_json changed = resolved;
      changed[ordered_json::json_pointer(pointer)] = ordered_json::parse(value);
      CHECK_NOTHROW(loads(changed.dump(), store));
    }
  }
}

}  // namespace lockstep::load_fuzz_test
