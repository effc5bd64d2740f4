#include "sim/load/reading/library_version.h"

#include <string>

#include "sim/collectives/nccl_tuner.h"

namespace lockstep {

std::int64_t read_library_version(const JsonReader& json) {
  const std::string text = json.text();
  constexpr std::int64_t first_of_major_3 = 30'000;  // which NCCL and RCCL have not come to
  const auto version = parse_nccl_version(text);
  const bool is_release = version && *version < first_of_major_3;
  if (!is_release && json.is_string()) {
    json.expected("a release such as \"2.28\" or \"2.18.3\"");
  }
  return is_release ? *version : 0;
}

}  // namespace lockstep
