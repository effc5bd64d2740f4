#pragma once

// A file of what was printed before, against what is printed now.
//
// LOCKSTEP_UPDATE_GOLDEN=1 rewrites it: look at the difference, then commit it with the change.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace lockstep::testing {

inline bool is_updating_golden_files() {
  const char* wanted = std::getenv("LOCKSTEP_UPDATE_GOLDEN");
  return wanted != nullptr && std::string(wanted) == "1";
}

// A long document's first difference is what a person wants to see.
inline std::string first_difference(const std::string& expected, const std::string& found) {
  std::istringstream left(expected);
  std::istringstream right(found);
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool has_left = static_cast<bool>(std::getline(left, a));
    const bool has_right = static_cast<bool>(std::getline(right, b));
    if (!has_left && !has_right)
      return "";
    if (has_left != has_right || a != b)
      return "line " + std::to_string(line) + ": expected " + (has_left ? a : "the end") + ", found " +
             (has_right ? b : "the end");
  }
}

inline void check_golden_file(const std::filesystem::path& golden, const std::string& found) {
  if (is_updating_golden_files()) {
    std::filesystem::create_directories(golden.parent_path());
    std::ofstream(golden, std::ios::binary) << found;
  }
  REQUIRE_MESSAGE(std::filesystem::exists(golden), "no golden file yet: run with LOCKSTEP_UPDATE_GOLDEN=1");
  std::ifstream file(golden, std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  CHECK(first_difference(expected, found) == "");
}

}  // namespace lockstep::testing
