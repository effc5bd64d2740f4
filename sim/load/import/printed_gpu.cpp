#include "sim/load/import/printed_gpu.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/other_names.h"

namespace lockstep {
namespace {

// Letters and digits, in small letters.
std::string bare(std::string_view name) {
  std::string letters;
  for (const char letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return letters;
}

bool is_also_known_as(const nlohmann::ordered_json& profile, const std::string& wanted) {
  const std::vector<std::string> names = other_names_of(profile);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return bare(name) == wanted; });
}

}  // namespace

bool is_gpu_named(std::string_view printed, const nlohmann::ordered_json& profile) {
  const std::string wanted = bare(printed);
  const auto name = profile.find("name");
  return (name != profile.end() && name->is_string() && bare(name->get<std::string>()) == wanted) ||
         is_also_known_as(profile, wanted);
}

}  // namespace lockstep
