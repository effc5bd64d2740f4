#include "sim/base/other_names.h"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

constexpr const char* key = "also_known_as";

}  // namespace

void read_other_names(const JsonReader& profile) {
  if (const auto names = profile.optional(key))
    for (const JsonReader& name : names->elements()) name.text();
}

std::vector<std::string> other_names_of(const nlohmann::ordered_json& profile) {
  std::vector<std::string> names;
  const auto listed = profile.find(key);
  if (listed != profile.end() && listed->is_array())
    for (const nlohmann::ordered_json& name : *listed)
      if (name.is_string())
        names.push_back(name.get<std::string>());
  return names;
}

}  // namespace lockstep
