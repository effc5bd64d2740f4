#include "sim/report/page/page_text.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/quantity_text.h"

namespace lockstep {

std::string duration_text(double seconds) {
  return format_duration(Duration::picoseconds(std::llround(seconds * 1e12)));
}

std::string bytes_text(double bytes) {
  return format_bytes(Bytes(std::llround(bytes)));
}

std::string count_text(double count) {
  const std::string digits = fmt::format("{:.0f}", count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

std::string rate_text(double rate) {
  return rate >= 100 ? count_text(rate) : fmt::format("{:.3g}", rate);
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string percent_text(double percent) {
  return fmt::format("{:+.1f} %", percent);
}

std::string plain_text(double value) {
  return fmt::format("{:.6g}", value);
}

}  // namespace lockstep
