#pragma once

// The scenarios of scenarios/, by path, in the order of their names.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

inline std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "scenarios"))
    if (file.path().extension() == ".json")
      files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace lockstep
