#include "sim/cli/size_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 50;

std::optional<int> bits_of_unit(std::string_view unit) {
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b')) {
    unit.remove_suffix(1);
  }
  if (unit.empty()) {
    return 0;
  }
  constexpr std::string_view units = "KMGT";
  const auto place = units.find(static_cast<char>(unit.front() & ~0x20));  // upper case
  return unit.size() == 1 && place != std::string_view::npos ? std::optional(10 * static_cast<int>(place + 1))
                                                             : std::nullopt;
}

}  // namespace

Bytes parse_nccl_tests_size(const std::string& text, const std::string& option) {
  std::int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto bits = bits_of_unit(std::string_view(text).substr(static_cast<std::size_t>(rest - text.data())));
  if (error != std::errc{} || !bits || count <= 0 || count > (largest_size >> *bits)) {
    throw ConfigError(fmt::format(
        "{}: found \"{}\", expected a size of 1 to 1024T, binary as in nccl-tests: 8, 64K, 25M, 8G", option,
        text));
  }
  return Bytes{count << *bits};
}

}  // namespace lockstep
