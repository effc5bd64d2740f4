#include "sim/load/import/chakra_file.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/support/import_samples.h"

namespace lockstep::chakra_file_test {

std::vector<ChakraNode> nodes_in(const std::string& bytes, ChakraMetadata* metadata = nullptr) {
  std::vector<ChakraNode> nodes;
  const ChakraMetadata read =
      read_chakra(bytes, "row.0.et", [&](ChakraNode node) { nodes.push_back(std::move(node)); });
  if (metadata != nullptr)
    *metadata = read;
  return nodes;
}

TEST_CASE("what is written is read back") {
  ChakraNode node{.id = 1'234'567'890'123, .name = "kernel", .type = 4};
  node.control_dependencies = {3, 300};
  node.data_dependencies = {70'000};
  node.start_micros = 5;
  node.duration_micros = 6;
  node.input_values = "values";
  node.attributes = {{"flag", true},
                     {"large", ChakraInteger{std::int64_t{1} << 60, false}},
                     {"small", ChakraInteger{-7, true}},
                     {"ratio", 1.5},
                     {"words", std::string("a b")},
                     {"list", std::vector<std::int64_t>{1, -2, 1 << 20}}};
  const std::string bytes =
      to_bytes(ChakraMetadata{.version = "1.0", .attributes = {{"n", ChakraInteger{4}}}}) + to_bytes(node);
  ChakraMetadata metadata;
  const std::vector<ChakraNode> read = nodes_in(bytes, &metadata);
  REQUIRE(read.size() == 1);
  CHECK(metadata.version == "1.0");
  CHECK(metadata.attributes == std::vector<ChakraAttribute>{{"n", ChakraInteger{4}}});
  CHECK(read[0].id == node.id);
  CHECK(read[0].name == node.name);
  CHECK(read[0].type == node.type);
  CHECK(read[0].control_dependencies == node.control_dependencies);
  CHECK(read[0].data_dependencies == node.data_dependencies);
  CHECK(read[0].start_micros == 5);
  CHECK(read[0].duration_micros == 6);
  CHECK(read[0].input_values == "values");
  CHECK(read[0].attributes == node.attributes);
  CHECK(begins_as_chakra(bytes));
}

// mlcommons/chakra, src/generator/generator.py, one_metadata_node_all_types: every kind of value that the schema knows.
TEST_CASE("every kind of attribute of the public generator is read") {
  const std::vector<ChakraNode> nodes =
      nodes_in(testing::bytes_of(testing::sample_named("one_metadata_node_all_types.0.et")));
  REQUIRE(nodes.size() == 1);
  const ChakraNode& node = nodes.front();
  CHECK(node.attributes.size() == 30);
  const auto is = [&](std::string_view name, const ChakraValue& value) {
    INFO(name);
    REQUIRE(node.find(name) != nullptr);
    CHECK(*node.find(name) == value);
  };
  is("double", 1.2345);
  is("float", static_cast<double>(1.2345f));
  is("int32", ChakraInteger{12345, true});
  is("int64", ChakraInteger{9876543210});
  is("uint32", ChakraInteger{12345, true});
  is("uint64", ChakraInteger{9876543210});
  is("sint32", ChakraInteger{-12345, true});
  is("sint64", ChakraInteger{-9876543210});
  is("fixed32", ChakraInteger{12345, true});
  is("fixed64", ChakraInteger{9876543210});
  is("sfixed32", ChakraInteger{-12345, true});
  is("sfixed64", ChakraInteger{-9876543210});
  is("bool", true);
  is("string", std::string("12345"));
  is("bytes", std::string("12345"));
  is("int32_list", std::vector<std::int64_t>{12345, 23456});
  is("bool_list", std::vector<std::int64_t>{1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
  is("string_list", std::monostate{});
}

TEST_CASE("a file that is cut off says at which record") {
  const std::string bytes = to_bytes(ChakraMetadata{.version = "0.0.4"}) +
                            to_bytes(ChakraNode{.id = 1, .name = "kernel", .type = 4});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length);
    const bool is_whole = length == to_bytes(ChakraMetadata{.version = "0.0.4"}).size();
    if (is_whole)
      CHECK(nodes_in(bytes.substr(0, length)).empty());
    else
      CHECK_THROWS_AS(nodes_in(bytes.substr(0, length)), ConfigError);
  }
}

TEST_CASE("a field of another wire type is refused") {
  const std::string id_as_text{"\x0a\x03\x0a\x01x", 5};  // field 1 of a node as a text
  CHECK_THROWS_AS(nodes_in(to_bytes(ChakraMetadata{.version = "1.0"}) + std::string("\x03\x0a\x01x", 4)),
                  ConfigError);
  CHECK_THROWS_AS(nodes_in(id_as_text), ConfigError);
}

TEST_CASE("texts of other formats are no traces") {
  for (const char* text : {"", "{}", "\n\n5.0", "[1, 2, 3]",
                           "\x7f"
                           "ELF",
                           "\x07\x0a\x05"
                           "a.b.c"})
    CHECK_FALSE(begins_as_chakra(text));
}

}  // namespace lockstep::chakra_file_test
