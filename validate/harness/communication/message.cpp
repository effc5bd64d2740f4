#include "validate/harness/communication/message.h"

#include "sim/base/failure.h"
#include "sim/base/printable.h"

namespace lockstep::harness {
namespace {

constexpr std::size_t most_reason_bytes = 4'096;

void append_number(std::string& bytes, std::size_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xffU);
}

void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, text.size());
  bytes += text;
}

std::string_view take(std::string_view& bytes, std::size_t count) {
  if (count > bytes.size())
    throw ProtocolError("a message ends too early");
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

std::uint32_t take_number(std::string_view& bytes) {
  const std::string_view digits = take(bytes, length_bytes);
  std::uint32_t number = 0;
  for (unsigned i = 0; i < length_bytes; ++i)
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(digits[i])) << (8 * i);
  return number;
}

std::string_view take_text(std::string_view& bytes) {
  const std::uint32_t size = take_number(bytes);
  return take(bytes, size);
}

}  // namespace

std::string encode(const Message& message) {
  std::string body(1, static_cast<char>(message.kind));
  append_number(body, message.number);
  append_text(body, message.key);
  append_text(body, message.value);
  std::string bytes;
  append_text(bytes, body);
  return bytes;
}

std::uint32_t decode_length(std::string_view length, std::uint32_t most) {
  const std::uint32_t size = take_number(length);
  if (size > most)
    throw ProtocolError("a message is too long");
  return size;
}

Message decode(std::string_view body) {
  const auto kind = static_cast<std::uint8_t>(take(body, 1).front());
  if (kind > static_cast<std::uint8_t>(Message::Kind::failure))
    throw ProtocolError("a message of no known kind");
  Message message{.kind = static_cast<Message::Kind>(kind)};
  message.number = take_number(body);
  message.key = take_text(body);
  message.value = take_text(body);
  if (!body.empty())
    throw ProtocolError("a message is longer than what it holds");
  return message;
}

int exit_code_of(const Message& message) {
  for (const int code : {exit_wrong_input, exit_check_failed, exit_environment, exit_interrupted})
    if (message.number == static_cast<std::uint32_t>(code))
      return code;
  return exit_environment;
}

std::string reason_of(const Message& message) {
  return printable(std::string_view(message.value).substr(0, most_reason_bytes));
}

std::string join_values(const std::vector<std::string>& values) {
  std::string joined;
  for (const std::string& value : values) append_text(joined, value);
  return joined;
}

std::vector<std::string> split_values(std::string_view joined) {
  std::vector<std::string> values;
  while (!joined.empty()) values.emplace_back(take_text(joined));
  return values;
}

}  // namespace lockstep::harness
