#include "sim/base/fingerprint.h"

#include <fmt/format.h>

namespace lockstep {

void Fingerprint::add(std::string_view text) {
  for (const char letter : text) {
    hash_ = (hash_ ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
}

std::string Fingerprint::text() const {
  return fmt::format("{:016x}", hash_);
}

std::string fingerprint_of(std::string_view text) {
  Fingerprint fingerprint;
  fingerprint.add(text);
  return fingerprint.text();
}

}  // namespace lockstep
