#include "sim/base/json_reader.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/json_text.h"

namespace lockstep::json_reader_test {

constexpr double infinity = std::numeric_limits<double>::infinity();

JsonDocument parse(std::string_view text) {
  return JsonDocument::from_text(text, "s.json");
}

// The whole message of the refusal, or "accepted".
std::string refusal(std::string_view text) {
  try {
    parse(text);
    return "accepted";
  } catch (const ConfigError& error) {
    CHECK(error.problems.size() == 1);
    return error.what();
  }
}

// The problems after one function has read the document.
template <class Read>
std::vector<std::string> problems_after(std::string_view text, Read read) {
  JsonDocument document = parse(text);
  read(document.root());
  return document.problems();
}

using Lines = std::vector<std::string>;

TEST_CASE("Values are read by key, with comments and the file's order of keys") {
  JsonDocument document = parse(R"({ // a comment
    "zeta": 3, /* another */ "alpha": ["x", true], "size": "25 MiB" })");
  const JsonReader root = document.root();
  CHECK(root.required("zeta").integer(0, 10) == 3);
  CHECK(root.required("alpha").elements().at(0).text() == "x");
  CHECK(root.required("alpha").elements().at(1).boolean());
  CHECK(root.required("size").bytes() == Bytes{25 * 1024 * 1024});
  CHECK_FALSE(root.optional("absent").has_value());
  root.finish();
  CHECK(document.problems().empty());
  document.throw_if_problems();
  CHECK(root.members().at(0).first == "zeta");
  CHECK(root.members().at(1).second.pointer() == "/alpha");
}

TEST_CASE("Text that is not JSON is refused at its line and column") {
  CHECK(refusal("") == "s.json:1:1: found an empty file, expected a JSON object");
  CHECK(refusal(" \n\t ") == "s.json:1:1: found an empty file, expected a JSON object");
  CHECK(refusal("{\"a\": 1,\n  b}").starts_with("s.json:2:3: syntax error while parsing object key"));
  CHECK(refusal("{\"a\": [1, 2").find("unexpected end of input") != std::string::npos);
  CHECK(refusal("{} {}").starts_with("s.json:1:4: "));
  CHECK(refusal("// only a comment").find("unexpected end of input") != std::string::npos);
}

TEST_CASE("Binary data is refused at its first byte, columns counting characters") {
  CHECK(refusal(std::string_view("{\n \0}", 5)) ==
        "s.json:2:2: found binary data, expected JSON as UTF-8 text");
  CHECK(refusal("{\"\xC3\xA9\xFF\": 1}") == "s.json:1:4: found binary data, expected JSON as UTF-8 text");
  CHECK(refusal("// \xE9t\xE9\n{}").starts_with("s.json:1:4: found binary data"));
  for (const std::string_view ill_formed :
       {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    CHECK_FALSE(is_utf8(ill_formed));
  }
  CHECK(is_utf8("\xF0\x9F\x9A\x80 \xE2\x82\xAC \xC3\xA9"));
}

TEST_CASE("A key that appears twice is named with its pointer") {
  CHECK(refusal("{\"a\": [{}, {\"b/c\": 1,\n \"b/c\": 2}]}") ==
        "s.json:2:6: found the key \"b/c\" twice (/a/1/b~1c), expected each key once");
  CHECK(refusal(R"({"a": {"x": 1}, "b": {"x": 1}})") == "accepted");
}

TEST_CASE("Sixty-four levels are accepted, sixty-five and a million are refused") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(refusal(nested(64)) == "accepted");
  CHECK(refusal(nested(65)) == "s.json:1:65: found nesting deeper than 64 levels, expected at most 64");
  CHECK(refusal(nested(1'000'000)).starts_with("s.json:1:65: found nesting deeper"));
  CHECK(refusal(std::string(1'000'000, '[')).starts_with("s.json:1:65: found nesting deeper"));
}

TEST_CASE("Numbers that would be rounded on the way in are refused") {
  CHECK(refusal("[9223372036854775807, -9223372036854775808]") == "accepted");
  CHECK(refusal("[9223372036854775808]").find("an integer of at most 64 bits") != std::string::npos);
  CHECK(refusal("[-9223372036854775809]").find("an integer of at most 64 bits") != std::string::npos);
  CHECK(refusal("[99999999999999999999999]").find("an integer of at most 64 bits") != std::string::npos);
  CHECK(refusal("[1e999]").find("number overflow") != std::string::npos);
  CHECK(refusal("[1e300]") == "accepted");
}

TEST_CASE("An object with a hundred thousand keys loads in linear time") {
  std::string text = "{";
  for (int key = 0; key < 100'000; ++key) {
    text += (key == 0 ? "\"" : ",\"") + std::to_string(key) + "\":0";
  }
  CHECK(parse(text + "}").value().size() == 100'000);
}

TEST_CASE("A file that cannot be read is refused by name, with the nearest name in its folder") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "lockstep-json-reader-test";
  fs::create_directories(folder);
  const std::string present = (folder / "cluster.json").string();
  const std::string missing = (folder / "clutser.json").string();
  write_file_atomically(present, "{\"a\": 1}");
  CHECK(JsonDocument::from_file(present).value().at("a") == 1);
  CHECK(JsonDocument::from_file(present).file_name() == present);
  CHECK_THROWS_WITH_AS(
      JsonDocument::from_file(missing),
      (missing + ": found no such file, expected a readable JSON file; did you mean \"cluster.json\"?")
          .c_str(),
      ConfigError);
  CHECK_THROWS_WITH_AS(JsonDocument::from_file(folder.string()), doctest::Contains("found a directory"),
                       ConfigError);
  CHECK_THROWS_AS(JsonDocument::from_file(""), ConfigError);
  write_file_atomically(present, std::string((64 << 20) + 1, ' '));
  CHECK_THROWS_WITH_AS(JsonDocument::from_file(present), doctest::Contains("more than 64 MiB"), ConfigError);
  fs::remove_all(folder);
}

TEST_CASE("A wrong type names the file, the pointer, what was found and what is valid") {
  CHECK(problems_after(R"({"training": {"bucket_cap_mb": "25 MiB"}})", [](JsonReader root) {
          root.required("training").required("bucket_cap_mb").number(-infinity, infinity, "MiB");
        }) == Lines{"s.json: /training/bucket_cap_mb: found \"25 MiB\", expected a number (MiB)"});
  CHECK(problems_after("[1]", [](JsonReader root) { root.required("a").text(); }) ==
        Lines{"s.json: found an array, expected an object"});
}

TEST_CASE("Every typed read refuses each other type and returns something harmless") {
  constexpr std::string_view wrong = "{\"v\": [{}]}";
  CHECK(problems_after(wrong,
                       [](JsonReader root) {
                         const JsonReader v = root.required("v");
                         CHECK(v.text().empty());
                         CHECK_FALSE(v.boolean());
                         CHECK(v.integer(3, 5) == 3);
                         CHECK(v.number(0.5, 1.0) == 0.5);
                         CHECK(v.bytes() == Bytes{0});
                         CHECK(share(v.bandwidth(), 1) == Bandwidth{1});
                         CHECK(v.duration() == Duration::zero());
                         CHECK(v.flops() == Flops{0});
                         CHECK(time_to_compute(Flops{0}, v.flop_rate()) == Duration::zero());
                         CHECK(v.milliwatts() == 0);
                         CHECK(v.horizon() == Horizon{0});
                       }) ==
        Lines{"s.json: /v: found an array, expected a string",
              "s.json: /v: found an array, expected true or false",
              "s.json: /v: found an array, expected an integer from 3 to 5",
              "s.json: /v: found an array, expected a number from 0.5 to 1",
              "s.json: /v: found an array, expected a quantity with a unit such as \"25 MiB\"",
              "s.json: /v: found an array, expected a quantity with a unit such as \"450 GB/s\"",
              "s.json: /v: found an array, expected a quantity with a unit such as \"3 us\"",
              "s.json: /v: found an array, expected a quantity with a unit such as \"2.1 GFLOP\"",
              "s.json: /v: found an array, expected a quantity with a unit such as \"312 TFLOP/s\"",
              "s.json: /v: found an array, expected a quantity with a unit such as \"300 W\"",
              "s.json: /v: found an array, expected a quantity with a unit such as \"30 days\""});
}

TEST_CASE("A bare number for a quantity is refused with an example") {
  CHECK(problems_after("{\"v\": 25}", [](JsonReader root) { root.required("v").bytes(); }) ==
        Lines{"s.json: /v: found 25, expected a quantity with a unit such as \"25 MiB\""});
  CHECK(problems_after("{\"v\": \"9 Gb/s\"}", [](JsonReader root) { root.required("v").bandwidth(); }) ==
        Lines{"s.json: /v: found \"9 Gb/s\": Gb/s is ambiguous: Gbit/s or GB/s"});
}

TEST_CASE("Integers may be written as whole doubles, and bounds are inclusive") {
  JsonDocument document = parse("[3e11, 8.0, 8.5, 7]");
  const auto numbers = document.root().elements();
  CHECK(numbers[0].integer(0, INT64_MAX) == 300'000'000'000);
  CHECK(numbers[1].integer(8, 8) == 8);
  CHECK(document.problems().empty());
  numbers[2].integer(0, 10);
  numbers[3].integer(8, INT64_MAX);
  CHECK(document.problems() == Lines{"s.json: /2: found 8.5, expected an integer from 0 to 10",
                                     "s.json: /3: found 7, expected an integer of at least 8"});
}

TEST_CASE("An unknown name is answered with the nearest valid one") {
  const std::vector<std::string> valid{"auto", "ring", "tree"};
  CHECK(problems_after("{\"v\": \"rign\"}",
                       [&](JsonReader root) { CHECK(root.required("v").one_of(valid) == "auto"); }) ==
        Lines{"s.json: /v: found \"rign\", expected a valid name; did you mean \"ring\"? valid: auto, ring, "
              "tree"});
  CHECK(problems_after("{\"v\": \"tree\"}", [&](JsonReader root) {
          CHECK(root.required("v").one_of(valid) == "tree");
        }).empty());
}

TEST_CASE("Keys that nobody asked for are refused with the nearest that was") {
  CHECK(
      problems_after(R"({"nodes": 1, "machin": "x"})", [](JsonReader root) {
        root.required("nodes");
        root.optional("machine");
        root.finish();
      }) == Lines{"s.json: /machin: found an unknown key; did you mean \"machine\"? valid: nodes, machine"});
}

TEST_CASE("Reading all members leaves nothing unknown") {
  CHECK(problems_after(R"({"a": 1, "b": 2})", [](JsonReader root) {
          CHECK(root.members().size() == 2);
          root.finish();
        }).empty());
}

TEST_CASE("A missing required key is one problem, however much is read through it") {
  CHECK(problems_after("{}", [](JsonReader root) {
          const JsonReader cluster = root.required("cluster");
          CHECK(cluster.is_missing());
          CHECK(cluster.required("nodes").integer(1, 9) == 1);
          CHECK_FALSE(cluster.optional("fabric").has_value());
          CHECK(cluster.elements().empty());
          CHECK(cluster.members().empty());
          cluster.problem("not seen");
          cluster.finish();
        }) == Lines{"s.json: found no \"cluster\", which is required"});
}

TEST_CASE("An optional null is the same as an absent key") {
  CHECK(problems_after("{\"a\": null}", [](JsonReader root) {
          CHECK_FALSE(root.optional("a").has_value());
          root.finish();
        }).empty());
}

TEST_CASE("All problems are thrown together in the order they were found, each once") {
  JsonDocument document = parse(R"({"a": 1, "b": 2})");
  for (int repetition = 0; repetition < 2; ++repetition) {
    document.root().required("b").text();
    document.root().required("a").text();
  }
  try {
    document.throw_if_problems();
    FAIL("nothing was thrown");
  } catch (const ConfigError& error) {
    CHECK(error.problems ==
          Lines{"s.json: /b: found 2, expected a string", "s.json: /a: found 1, expected a string"});
    CHECK(std::string(error.what()) == error.problems[0] + "\n" + error.problems[1]);
  }
}

TEST_CASE("Fifty problems are listed and the others counted") {
  std::string text = "{";
  for (int key = 0; key < 73; ++key) {
    text += (key == 0 ? "\"key" : ",\"key") + std::to_string(key) + "\":0";
  }
  const Lines lines = problems_after(text + "}", [](JsonReader root) { root.finish(); });
  CHECK(lines.size() == 50 + 1);
  CHECK(lines.back() == "... and " + std::to_string(73 - 50) + " more");
}

TEST_CASE("A problem stays one readable line whatever the file holds") {
  const std::string key = "a\\n" + std::string(100'000, 'k');
  const Lines lines = problems_after("{\"" + key + "\": 0}", [](JsonReader root) { root.finish(); });
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() < 1'000);
  CHECK(lines[0].find('\n') == std::string::npos);
}

TEST_CASE("An override replaces a value, or makes the objects on the way to it") {
  JsonDocument document = parse(R"({"cluster": {"nodes": 1, "stragglers": [{"rank": 3}]}, "name": "x"})");
  document.set("cluster.nodes", "4");
  document.set("cluster.stragglers.0.rank", "7");
  document.set("training.optimizer", "adam");
  document.set("training.caps", "[1, 2]");
  document.set("name", "\"4\"");
  document.set("note", "");
  CHECK(document.value() == nlohmann::ordered_json::parse(
                                R"({"cluster": {"nodes": 4, "stragglers": [{"rank": 7}]}, "name": "4",
                                    "training": {"optimizer": "adam", "caps": [1, 2]}, "note": ""})"));
}

TEST_CASE("An override that leads through a scalar or past an array is refused") {
  JsonDocument document = parse(R"({"cluster": {"nodes": 1, "list": [1]}})");
  CHECK_THROWS_WITH_AS(document.set("cluster.nodes.x", "3"),
                       "s.json: --set cluster.nodes.x=3: /cluster/nodes is 1, which has no \"x\" inside; "
                       "expected an object or an array",
                       ConfigError);
  CHECK_THROWS_WITH_AS(document.set("cluster.list.1", "3"),
                       "s.json: --set cluster.list.1=3: /cluster/list is an array of 1; found \"1\", "
                       "expected an index below 1",
                       ConfigError);
  CHECK_THROWS_AS(document.set("cluster.list.-1", "3"), ConfigError);
  CHECK_THROWS_AS(document.set("cluster.list.x", "3"), ConfigError);
  CHECK_THROWS_AS(document.set("", "3"), ConfigError);
  CHECK_THROWS_AS(document.set("a..b", "3"), ConfigError);
  CHECK_THROWS_AS(document.set("a\xFF", "3"), ConfigError);
  std::string endless = "a";
  for (int name = 0; name < 100'000; ++name) {
    endless += ".a";
  }
  CHECK_THROWS_AS(document.set(endless, "3"), ConfigError);
  CHECK(document.value() == nlohmann::ordered_json::parse(R"({"cluster": {"nodes": 1, "list": [1]}})"));
}

TEST_CASE("A part of a document keeps its place in it") {
  JsonDocument whole = parse(R"({"cases": [{"scenario": {"nodes": "x"}}]})");
  const JsonReader part = whole.root().required("cases").elements().at(0).required("scenario");
  JsonDocument document = JsonDocument::from_value(part.value(), part.file_name(), part.pointer());
  document.root().required("nodes").integer(1, 2);
  CHECK(document.problems() ==
        Lines{"s.json: /cases/0/scenario/nodes: found \"x\", expected an integer from 1 to 2"});
}

// Text made of the pieces JSON is made of: nearly always wrong, sometimes deep, now and then right.
rc::Gen<std::string> json_like_text() {
  const auto piece = rc::gen::element<std::string>("{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "1", "-",
                                                   "1e9", "2.5", "true", "null", "//", "/*", "*/", "\n", "\"",
                                                   "\\", "\xC3\xA9", "\xFF", "\\ud800");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& part : pieces) {
                          text += part;
                        }
                        return text;
                      });
}

TEST_CASE("Random text either parses or is refused as the user's mistake") {
  const auto parses_or_is_refused = [](const std::string& text) {
    try {
      JsonDocument document = parse(text);
      document.root().finish();
      static_cast<void>(document.problems());
    } catch (const ConfigError& error) {
      RC_ASSERT(std::string(error.what()).starts_with("s.json:"));
    }
  };
  CHECK(rc::check("pieces of JSON", [&] { parses_or_is_refused(*json_like_text()); }));
  CHECK(rc::check("any bytes", [&](const std::string& text) { parses_or_is_refused(text); }));
}

TEST_CASE("Every prefix of a document is refused, and no one-byte change of it crashes") {
  const std::string text = R"({"a": [1, -2.5e3, "x\u00e9"], "b": {"c": null, "d": true}} )";
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    CHECK(refusal(text.substr(0, length)) != "accepted");
  }
  for (std::size_t offset = 0; offset < text.size(); ++offset) {
    for (const char byte : {'\0', '"', '{', ']', '\\', '9', '\xFF'}) {
      std::string changed = text;
      changed[offset] = byte;
      static_cast<void>(refusal(changed));
    }
  }
}

}  // namespace lockstep::json_reader_test
