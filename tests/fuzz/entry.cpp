#include "tests/fuzz/entry.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace lockstep::fuzz {

namespace fs = std::filesystem;

const Entry* find_entry(const std::string& name) {
  const auto found = std::find_if(entries().begin(), entries().end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == entries().end() ? nullptr : &*found;
}

std::vector<std::string> seed_files(const Entry& entry) {
  std::vector<std::string> files;
  for (const std::string& seed : entry.seeds) {
    const fs::path path = fs::path(LOCKSTEP_SOURCE_DIR) / seed;
    const bool is_pattern = path.stem() == "*";
    const fs::path folder = is_pattern ? path.parent_path() : path;
    if (!fs::is_directory(folder))
      files.push_back(path.string());
    else
      for (const auto& file : fs::directory_iterator(folder))
        if (file.is_regular_file() && (!is_pattern || file.path().extension() == path.extension()))
          files.push_back(file.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Answer read_bytes(const Entry& entry, const std::string& bytes) {
  try {
    entry.read(bytes);
    return Answer::taken;
  } catch (const ConfigError& error) {
    LOCKSTEP_CHECK(!error.problems.empty(), "who refuses says why");
    return Answer::refused;
  } catch (const OverflowError&) {  // of numbers that are possible one by one
    return Answer::refused;
  }
}

}  // namespace lockstep::fuzz
