#include "sim/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sim/base/json_text.h"

namespace lockstep {
namespace {

constexpr std::uint32_t replacement = 0xfffd;  // for bytes that are no UTF-8

// Of the well-formed sequence `text`: its length tells how many bits of the first byte count.
std::uint32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  std::uint32_t code = text.size() == 1 ? byte(0) : byte(0) & (0x7fU >> text.size());
  for (std::size_t i = 1; i < text.size(); ++i) code = code << 6U | (byte(i) & 0x3fU);
  return code;
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

bool turns_text(std::uint32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

// How much of it, from its beginning, anybody may print.
std::size_t plain_length(std::string_view text) {
  const auto is_plain = [](char byte) { return byte >= 0x20 && byte < 0x7f; };
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
}

std::string written_out(std::string_view text, std::string_view kept) {
  std::string result;
  while (true) {
    const std::size_t plain = plain_length(text);
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty())
      return result;
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const std::uint32_t code = length == 0 ? replacement : code_point(character);
    const bool is_kept = kept.find(character) != kept.npos;
    if (length == 0 || (!is_kept && (is_control(code) || turns_text(code))))
      result += fmt::format("\\u{:04x}", code);
    else
      result += character;
    text.remove_prefix(character.size());
  }
}

}  // namespace

std::string printable(std::string_view text) {
  return written_out(text, "\n\t");
}

std::string printable_name(std::string_view text) {
  return written_out(text, "");
}

}  // namespace lockstep
