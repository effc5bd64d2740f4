#include "sim/load/reading/library_version.h"

#include <string>

#include "sim/collectives/nccl_tuner.h"

namespace lockstep {

std::int64_t read_library_version(const JsonReader& json) {
  const std::string text = json.text();
  const auto version = parse_nccl_version(text);
  if (!version && json.is_string()) {
    json.expected("a release such as \"2.28\" or \"2.18.3\"");
  }
  return version.value_or(0);
}

}  // namespace lockstep
