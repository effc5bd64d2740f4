// Which cells a sweep has: ranges, lists, products, shards, and what is said about mistakes.

#include "sim/study/answers/sweep_grid.h"

#include <doctest/doctest.h>

#include <functional>

#include "sim/base/error.h"

namespace lockstep::sweep_grid_test {

using nlohmann::ordered_json;

ordered_json values_of(const std::string& text) {
  return parse_axis("path=" + text).values;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string message_of_axis(const std::string& text) {
  return message_of([&] { parse_axis(text); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("Values are read as JSON, else as strings") {
  CHECK(values_of("1,2.5,true,null,ring,\"8\"") == ordered_json{1, 2.5, true, nullptr, "ring", "8"});
  CHECK(values_of("25 MiB,1 GiB") == ordered_json{"25 MiB", "1 GiB"});
}

TEST_CASE("Commas inside brackets and quotes separate nothing") {
  CHECK(values_of(R"([1,2],{"a":[3,4]},"x,y")") ==
        ordered_json::array({ordered_json{1, 2}, ordered_json{{"a", {3, 4}}}, "x,y"}));
}

TEST_CASE("A geometric range ends at its last number when hit and before it when not") {
  CHECK(values_of("1:8:x2") == ordered_json{1, 2, 4, 8});
  CHECK(values_of("1:200:x2") == ordered_json{1, 2, 4, 8, 16, 32, 64, 128});
  CHECK(values_of("100:1:x0.1") == ordered_json{100, 10, 1});
}

TEST_CASE("An arithmetic range includes both ends when hit") {
  CHECK(values_of("1:4:+1") == ordered_json{1, 2, 3, 4});
  CHECK(values_of("4:0:+-2") == ordered_json{4, 2, 0});
  CHECK(values_of("7:7:+1") == ordered_json::array({7}));
}

// In doubles 0.1 + 0.1 + 0.1 is 0.30000000000000004, above 0.3.
TEST_CASE("Decimal steps neither miss the end nor show their rounding") {
  CHECK(values_of("0.1:0.3:+0.1").dump() == "[0.1,0.2,0.3]");
}

TEST_CASE("A range keeps the unit of its ends") {
  CHECK(values_of("1 us:4 us:x2") == ordered_json{"1 us", "2 us", "4 us"});
  CHECK(values_of("10 GB/s:30 GB/s:+10 GB/s") == ordered_json{"10 GB/s", "20 GB/s", "30 GB/s"});
}

TEST_CASE("Ranges and values mix") {
  CHECK(values_of("1,3,8:32:x2") == ordered_json{1, 3, 8, 16, 32});
}

TEST_CASE("The last axis varies fastest") {
  const SweepGrid grid = SweepGrid::parse({"a=1,2", "b=x,y,z"});
  REQUIRE(grid.cells() == 2 * 3);
  CHECK(grid.values_at(0) == std::vector<ordered_json>{1, "x"});
  CHECK(grid.values_at(2) == std::vector<ordered_json>{1, "z"});
  CHECK(grid.values_at(3) == std::vector<ordered_json>{2, "x"});
}

TEST_CASE("Shards share every cell of the grid, each exactly once") {
  const SweepGrid grid = SweepGrid::parse({"a=1:11:+1"});
  for (const std::size_t count : {1, 2, 3, 20}) {
    std::vector<int> owners(grid.cells());
    for (std::size_t index = 1; index <= count; ++index) {
      const SweepShard shard{index, count};
      for (std::size_t place = 0; place < shard.size_in(grid.cells()); ++place) {
        const std::size_t cell = shard.cell_at(place);
        CHECK(cell % count == index - 1);
        CHECK(shard.place_of(cell) == place);
        ++owners[cell];
      }
    }
    CHECK(owners == std::vector<int>(grid.cells(), 1));
  }
}

TEST_CASE("A shard is i/n with i from 1 to n, and nothing else") {
  CHECK(parse_shard("2/8").index == 2);
  CHECK(parse_shard("2/8").count == 8);
  for (const char* wrong :
       {"", "2", "0/2", "3/2", "1/0", "1/2/3", "a/b", "-1/2", "1/2 ", "1/99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK(contains(message_of([&] { parse_shard(wrong); }), "expected i/n"));
  }
}

TEST_CASE("A mistake in --vary is named with the path and what was found") {
  CHECK(contains(message_of_axis("nodes"), "expected PATH=V1,V2,..."));
  CHECK(contains(message_of_axis("=1,2"), "expected PATH=V1,V2,..."));
  CHECK(contains(message_of_axis("a="), "--vary a: found an empty value"));
  CHECK(contains(message_of_axis("a=1,,2"), "found an empty value"));
  CHECK(contains(message_of_axis("a=1:64:2"), "the step is \"2\"; expected x and a factor"));
  CHECK(contains(message_of_axis("a=one:64:x2"), "\"one\" is no number"));
  CHECK(contains(message_of_axis("a=1:inf:x2"), "\"inf\" is no number"));
  CHECK(contains(message_of_axis("a=1 us:4 ms:x2"), "expected one unit at both ends"));
  CHECK(contains(message_of_axis("a=1 us:4 us:+1 ms"), "the step is \"+1 ms\""));
}

TEST_CASE("A range that would never end is refused") {
  for (const char* endless : {"1:8:x1", "1:8:x0", "1:8:x-2", "1:8:x0.5", "8:1:x2", "0:8:x2", "-1:8:x2",
                              "1:8:+0", "1:8:+-1", "8:1:+1"}) {
    CAPTURE(endless);
    CHECK(contains(message_of_axis(std::string("a=") + endless), "never lead from the first"));
  }
  CHECK(contains(message_of_axis("a=0:1:+0.000001"), "more than 100000 values"));
}

TEST_CASE("All mistakes of all arguments are reported together, and each path may be there once") {
  const std::string message = message_of([] { SweepGrid::parse({"a=", "b", "c=1"}); });
  CHECK(contains(message, "--vary a"));
  CHECK(contains(message, "\"b\""));
  CHECK(contains(message_of([] { SweepGrid::parse({"a=1", "b=1", "a=2"}); }), "--vary a: found twice"));
}

TEST_CASE("Zipped axes advance together, and are of one length") {
  const SweepGrid grid = SweepGrid::parse({"a=1,2", "b=3,4"}, Pairing::zip);
  CHECK(grid.cells() == 2);
  CHECK(grid.values_at(0) == std::vector<ordered_json>{1, 3});
  CHECK(grid.values_at(1) == std::vector<ordered_json>{2, 4});
  const std::string message = message_of([] {
    SweepGrid::parse({"a=1,2,3", "b=1,2,3", "c=4,5"}, Pairing::zip);
  });
  CHECK(message == "--zip: found 3 values of a and 2 of c, expected lists of one length");
}

TEST_CASE("Cells beyond memory are counted, cells beyond integers refused") {
  const std::vector<std::string> thousands{"a=1:1000:+1", "b=1:1000:+1", "c=1:1000:+1"};
  CHECK(SweepGrid::parse(thousands).cells() == 1'000'000'000);
  std::vector<std::string> more;  // 10^21
  for (const char* path : {"a", "b", "c", "d", "e", "f", "g"})
    more.push_back(std::string(path) + "=1:1000:+1");
  CHECK(contains(message_of([&] { SweepGrid::parse(more); }), "found a grid of more than"));
}

}  // namespace lockstep::sweep_grid_test
