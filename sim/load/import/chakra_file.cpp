#include "sim/load/import/chakra_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "sim/base/error.h"

namespace lockstep {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// AttributeProto: a value's field number says its type, and a list's is one more. Of lists there are those of
// integers and flags; others are told as nothing.
enum AttributeField : std::uint32_t {
  name_field = 1,
  double_field = 3,
  float_field = 5,
  int32_field = 7,
  int64_field = 9,
  int64_list_field = 10,
  uint32_field = 11,
  uint64_field = 13,
  sint32_field = 15,
  sint64_field = 17,
  fixed32_field = 19,
  fixed64_field = 21,
  sfixed32_field = 23,
  sfixed64_field = 25,
  bool_field = 27,
  string_field = 29,
  bytes_field = 31,
};

enum NodeField : std::uint32_t {
  id_field = 1,
  node_name_field = 2,
  type_field = 3,
  control_field = 4,
  data_field = 5,
  start_field = 6,
  duration_field = 7,
  inputs_field = 8,
  attribute_field = 10,
};

// Lists of varints that mean themselves: int32, int64, uint32, uint64, bool.
bool is_list_of_varints(std::uint32_t field) {
  constexpr std::uint32_t lists[] = {8, 10, 12, 14, 28};
  return std::find(std::begin(lists), std::end(lists), field) != std::end(lists);
}

// What a damaged file says of a field need not be what the field is.
const pbf_reader& as(const pbf_reader& reader, pbf_wire_type type) {
  if (reader.wire_type() != type)
    throw protozero::unknown_pbf_wire_type_exception{};
  return reader;
}
pbf_reader& as(pbf_reader& reader, pbf_wire_type type) {
  as(std::as_const(reader), type);
  return reader;
}

std::string read_text(pbf_reader& reader) {
  return as(reader, pbf_wire_type::length_delimited).get_string();
}
pbf_reader read_message(pbf_reader& reader) {
  return as(reader, pbf_wire_type::length_delimited).get_message();
}
std::uint64_t read_number(pbf_reader& reader) {
  return as(reader, pbf_wire_type::varint).get_uint64();
}

pbf_wire_type type_of_value(std::uint32_t field) {
  switch (field) {
    case double_field:
    case fixed64_field:
    case sfixed64_field:
      return pbf_wire_type::fixed64;
    case float_field:
    case fixed32_field:
    case sfixed32_field:
      return pbf_wire_type::fixed32;
    case string_field:
    case bytes_field:
      return pbf_wire_type::length_delimited;
    default:
      return field % 2 == 0 ? pbf_wire_type::length_delimited : pbf_wire_type::varint;
  }
}

// Packed, or one by one as older writers have them.
template <class Into>
void read_varints(pbf_reader& reader, Into& into) {
  if (reader.wire_type() == pbf_wire_type::varint) {
    into.push_back(static_cast<typename Into::value_type>(reader.get_uint64()));
    return;
  }
  for (const std::uint64_t value : as(reader, pbf_wire_type::length_delimited).get_packed_uint64())
    into.push_back(static_cast<typename Into::value_type>(value));
}

std::vector<std::int64_t> read_list(pbf_reader list) {
  std::vector<std::int64_t> values;
  while (list.next())
    if (list.tag() == 1)
      read_varints(list, values);
    else
      list.skip();
  return values;
}

ChakraValue read_value(pbf_reader& reader) {
  const auto integer = [](auto value) {
    return ChakraInteger{.value = static_cast<std::int64_t>(value), .is_narrow = sizeof(value) == 4};
  };
  constexpr std::uint32_t last_field = 32;
  if (reader.tag() <= last_field)
    as(reader, type_of_value(reader.tag()));
  switch (reader.tag()) {
    case double_field:
      return reader.get_double();
    case float_field:
      return static_cast<double>(reader.get_float());
    case int32_field:
      return integer(reader.get_int32());
    case int64_field:
      return integer(reader.get_int64());
    case uint32_field:
      return integer(reader.get_uint32());
    case uint64_field:
      return integer(reader.get_uint64());
    case sint32_field:
      return integer(reader.get_sint32());
    case sint64_field:
      return integer(reader.get_sint64());
    case fixed32_field:
      return integer(reader.get_fixed32());
    case fixed64_field:
      return integer(reader.get_fixed64());
    case sfixed32_field:
      return integer(reader.get_sfixed32());
    case sfixed64_field:
      return integer(reader.get_sfixed64());
    case bool_field:
      return reader.get_bool();
    case string_field:
    case bytes_field:
      return reader.get_string();
    default:
      break;
  }
  if (is_list_of_varints(reader.tag()))
    return read_list(reader.get_message());
  reader.skip();
  return {};
}

ChakraAttribute read_attribute(pbf_reader reader) {
  ChakraAttribute attribute;
  constexpr std::uint32_t description = 2;
  while (reader.next())
    if (reader.tag() == name_field)
      attribute.name = read_text(reader);
    else if (reader.tag() == description)
      reader.skip();
    else
      attribute.value = read_value(reader);
  return attribute;
}

ChakraMetadata read_metadata(pbf_reader reader) {
  ChakraMetadata metadata;
  while (reader.next())
    if (reader.tag() == 1)
      metadata.version = read_text(reader);
    else if (reader.tag() == 2)
      metadata.attributes.push_back(read_attribute(read_message(reader)));
    else
      reader.skip();
  return metadata;
}

std::string read_input_values(pbf_reader reader) {
  std::string values;
  while (reader.next())
    if (reader.tag() == 1)
      values = read_text(reader);
    else
      reader.skip();
  return values;
}

void read_field(pbf_reader& reader, ChakraNode& node) {
  switch (reader.tag()) {
    case id_field:
      node.id = read_number(reader);
      return;
    case node_name_field:
      node.name = read_text(reader);
      return;
    case type_field:
      node.type = static_cast<std::uint32_t>(read_number(reader));
      return;
    case control_field:
      return read_varints(reader, node.control_dependencies);
    case data_field:
      return read_varints(reader, node.data_dependencies);
    case start_field:
      node.start_micros = read_number(reader);
      return;
    case duration_field:
      node.duration_micros = read_number(reader);
      return;
    case inputs_field:
      node.input_values = read_input_values(read_message(reader));
      return;
    case attribute_field:
      node.attributes.push_back(read_attribute(read_message(reader)));
      return;
    default:
      reader.skip();
  }
}

ChakraNode read_node(pbf_reader reader) {
  ChakraNode node;
  while (reader.next()) read_field(reader, node);
  return node;
}

void write_attribute(pbf_writer& into, std::uint32_t field, const ChakraAttribute& attribute) {
  pbf_writer writer(into, field);
  writer.add_string(name_field, attribute.name);
  const auto write = [&](const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>)
      writer.add_bool(bool_field, value);
    else if constexpr (std::is_same_v<Value, ChakraInteger>)
      value.is_narrow ? writer.add_int32(int32_field, static_cast<std::int32_t>(value.value))
                      : writer.add_int64(int64_field, value.value);
    else if constexpr (std::is_same_v<Value, double>)
      writer.add_double(double_field, value);
    else if constexpr (std::is_same_v<Value, std::string>)
      writer.add_string(string_field, value);
    else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>)
      pbf_writer(writer, int64_list_field).add_packed_int64(1, value.begin(), value.end());
  };
  std::visit(write, attribute.value);
}

std::string after_its_length(const std::string& message) {
  std::string bytes;
  protozero::write_varint(std::back_inserter(bytes), message.size());
  return bytes + message;
}

}  // namespace

const ChakraValue* ChakraNode::find(std::string_view attribute) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(),
                   [&](const ChakraAttribute& candidate) { return candidate.name == attribute; });
  return found == attributes.end() ? nullptr : &found->value;
}

void ChakraNode::add(std::string_view attribute, ChakraValue value) {
  attributes.push_back({std::string(attribute), std::move(value)});
}

std::string to_bytes(const ChakraMetadata& metadata) {
  std::string message;
  pbf_writer writer(message);
  writer.add_string(1, metadata.version);
  for (const ChakraAttribute& attribute : metadata.attributes) write_attribute(writer, 2, attribute);
  return after_its_length(message);
}

std::string to_bytes(const ChakraNode& node) {
  std::string message;
  pbf_writer writer(message);
  writer.add_uint64(id_field, node.id);
  writer.add_string(node_name_field, node.name);
  writer.add_enum(type_field, static_cast<std::int32_t>(node.type));
  const auto write_list = [&](NodeField field, const std::vector<std::uint64_t>& ids) {
    writer.add_packed_uint64(field, ids.begin(), ids.end());
  };
  write_list(control_field, node.control_dependencies);
  write_list(data_field, node.data_dependencies);
  writer.add_uint64(start_field, node.start_micros);
  writer.add_uint64(duration_field, node.duration_micros);
  if (!node.input_values.empty())
    pbf_writer(writer, inputs_field).add_string(1, node.input_values);
  for (const ChakraAttribute& attribute : node.attributes)
    write_attribute(writer, attribute_field, attribute);
  return after_its_length(message);
}

bool begins_as_chakra(std::string_view beginning) {
  constexpr char version_tag = 0x0a;  // field 1, a text
  constexpr std::size_t longest_version = 24;
  if (beginning.size() < 4 || beginning[1] != version_tag)
    return false;
  const auto message = static_cast<std::size_t>(static_cast<unsigned char>(beginning[0]));
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(beginning[2]));
  if (length == 0 || length > longest_version || beginning.size() < 3 + length || message < 2 + length)
    return false;
  const std::string_view version = beginning.substr(3, length);
  return std::isdigit(static_cast<unsigned char>(version.front())) != 0 &&
         std::all_of(version.begin(), version.end(), [](char c) {
           return c == '.' || c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
         });
}

ChakraMetadata read_chakra(std::string_view bytes, const std::string& file_name,
                           const std::function<void(ChakraNode)>& visit) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  ChakraMetadata metadata;
  std::size_t record = 0;
  const auto fail = [&](std::string_view why) {
    throw ConfigError(fmt::format("{}: record {} of the trace {}", file_name, record, why));
  };
  try {
    for (; at != end; ++record) {
      const std::uint64_t length = protozero::decode_varint(&at, end);
      if (length > static_cast<std::uint64_t>(end - at))
        fail("is cut off");
      const pbf_reader message(at, static_cast<std::size_t>(length));
      at += length;
      if (record == 0)
        metadata = read_metadata(message);
      else
        visit(read_node(message));
    }
  } catch (const protozero::exception&) {
    fail("is damaged: it is no message of Chakra's schema");
  }
  if (record == 0)
    fail("is missing: expected GlobalMetadata, and then nodes");
  return metadata;
}

}  // namespace lockstep
