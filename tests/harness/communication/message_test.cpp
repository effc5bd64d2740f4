#include "validate/harness/communication/message.h"

#include <doctest/doctest.h>

namespace lockstep::harness::message_test {

TEST_CASE("What was encoded is decoded, whatever bytes it holds") {
  const std::string any_bytes("\0\xff\n", 3);
  const Message message{Message::Kind::answer, 0x89abcdef, any_bytes, std::string(70'000, 'x')};
  const std::string bytes = encode(message);
  CHECK(decode_length(bytes.substr(0, length_bytes)) == bytes.size() - length_bytes);
  const Message read = decode(std::string_view(bytes).substr(length_bytes));
  CHECK(read.kind == message.kind);
  CHECK(read.number == message.number);
  CHECK(read.key == message.key);
  CHECK(read.value == message.value);
}

TEST_CASE("Every message that is cut short or too long is refused") {
  const std::string body = encode({Message::Kind::set, 1, "key", "value"}).substr(length_bytes);
  for (std::size_t size = 0; size < body.size(); ++size)
    CHECK_THROWS_AS(decode(std::string_view(body).substr(0, size)), ProtocolError);
  CHECK_THROWS_AS(decode(body + "x"), ProtocolError);
}

TEST_CASE("What another program says is refused before memory is taken for it") {
  CHECK_THROWS_AS(decode_length("GET "), ProtocolError);
  CHECK_THROWS_AS(decode_length("SSH-"), ProtocolError);
  CHECK_THROWS_AS(decode(std::string(13, '\x7f')), ProtocolError);
}

TEST_CASE("Several values become one and are parted again, empty ones too") {
  const std::vector<std::string> values{"", "a", std::string("\0b", 2), ""};
  CHECK(split_values(join_values(values)) == values);
  CHECK(split_values("").empty());
}

}  // namespace lockstep::harness::message_test
