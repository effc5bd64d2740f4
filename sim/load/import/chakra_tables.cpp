#include "sim/load/import/chakra_tables.h"

#include <algorithm>

namespace lockstep {

std::uint32_t ChakraTables::text(const std::string& words) {
  const auto [known, is_new] =
      text_numbers.try_emplace(words, static_cast<std::uint32_t>(program.texts.size()));
  if (is_new)
    program.texts.push_back(words);
  return known->second;
}

std::uint32_t ChakraTables::lane(const ProgramLane& lane) {
  const auto found = std::find(program.lanes.begin(), program.lanes.end(), lane);
  if (found == program.lanes.end()) {
    program.lanes.push_back(lane);
    return static_cast<std::uint32_t>(program.lanes.size() - 1);
  }
  return static_cast<std::uint32_t>(found - program.lanes.begin());
}

}  // namespace lockstep
