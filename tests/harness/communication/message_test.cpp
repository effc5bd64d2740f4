#include "validate/harness/communication/message.h"

#include <doctest/doctest.h>

#include "sim/base/failure.h"

namespace lockstep::harness::message_test {

TEST_CASE("What was encoded is decoded, whatever bytes it holds") {
  const std::string any_bytes("\0\xff\n", 3);
  const Message message{Message::Kind::answer, 0x89abcdef, any_bytes, std::string(70'000, 'x')};
  const std::string bytes = encode(message);
  CHECK(decode_length(bytes.substr(0, length_bytes), most_message_bytes) == bytes.size() - length_bytes);
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
  CHECK_THROWS_AS(decode_length("GET ", most_message_bytes), ProtocolError);
  CHECK_THROWS_AS(decode_length("SSH-", most_message_bytes), ProtocolError);
  CHECK_THROWS_AS(decode(std::string(13, '\x7f')), ProtocolError);
}

TEST_CASE("Whoever is not known yet may say no more than a hello is long") {
  const std::string hello = encode({Message::Kind::hello, 0xffffffff, protocol, std::string(200, 'x')});
  CHECK(decode_length(hello.substr(0, length_bytes), most_first_bytes) == hello.size() - length_bytes);
  const std::string longer = encode({Message::Kind::hello, 0, "", std::string(most_first_bytes, 'x')});
  CHECK_THROWS_AS(decode_length(longer.substr(0, length_bytes), most_first_bytes), ProtocolError);
}

TEST_CASE("No message ends a process as if all were well, nor as if it were a bug") {
  for (const std::uint32_t code : {2U, 3U, 4U, 130U})
    CHECK(exit_code_of({.kind = Message::Kind::failure, .number = code}) == static_cast<int>(code));
  for (const std::uint32_t code : {0U, 1U, 5U, 127U, 256U, 258U, 0x80000002U, 0xffffffffU})
    CHECK(exit_code_of({.kind = Message::Kind::failure, .number = code}) == exit_environment);
}

TEST_CASE("Why a rank failed is short and controls no terminal") {
  const std::string why = "\x1b]0;title\x07" + std::string(100'000, 'x');
  const std::string reason = reason_of({.kind = Message::Kind::failure, .value = why});
  CHECK(reason.starts_with("\\u001b]0;title\\u0007xxx"));
  CHECK(reason.size() < 5'000);
}

TEST_CASE("Several values become one and are parted again, empty ones too") {
  const std::vector<std::string> values{"", "a", std::string("\0b", 2), ""};
  CHECK(split_values(join_values(values)) == values);
  CHECK(split_values("").empty());
}

}  // namespace lockstep::harness::message_test
