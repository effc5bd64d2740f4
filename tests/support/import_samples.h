#pragma once

// Files of other tools, one folder a kind: tests/load/import/samples/KIND/NAME.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/load/import/import_file.h"
#include "sim/load/reading/store_shelf.h"
#include "tests/support/scenarios.h"

namespace lockstep::testing {

inline std::filesystem::path samples_folder() {
  return std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/load/import/samples";
}

inline std::vector<std::filesystem::path> samples_of(const std::string& kind) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(samples_folder() / kind))
    for (const auto& file : std::filesystem::directory_iterator(samples_folder() / kind))
      files.push_back(file.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Whatever its kind: names are given once.
inline std::filesystem::path sample_named(const std::string& name) {
  for (const auto& kind : std::filesystem::directory_iterator(samples_folder()))
    if (std::filesystem::exists(kind.path() / name))
      return kind.path() / name;
  return samples_folder() / name;
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// As if it lay in a file of that name.
inline Imported import_text(const std::string& kind, const std::string& text,
                            const nlohmann::ordered_json& stated = nlohmann::ordered_json::object(),
                            const std::string& file_name = "sample") {
  const StoreShelf shelf(shipped_profiles());
  std::istringstream stream(text);
  return importer_named(kind).second.import(
      {.file_name = file_name, .file = stream, .stated = stated, .profiles = &shelf});
}

inline Imported import_sample(const std::filesystem::path& path) {
  return import_text(path.parent_path().filename().string(), bytes_of(path), nlohmann::ordered_json::object(),
                     path.filename().string());
}

}  // namespace lockstep::testing
