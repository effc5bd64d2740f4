#include "sim/study/measurement_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool holds_measurements(const std::string& file) {
  const JsonDocument document = JsonDocument::from_file(file);
  const nlohmann::ordered_json& value = document.value();
  return value.is_object() && value.contains("schema") && value["schema"] == "lockstep.measurements/1";
}

std::vector<std::string> json_files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json" && entry->is_regular_file(error)) {
      files.push_back(entry->path().string());
    }
  }
  if (error) {
    throw ConfigError(fmt::format("{}: cannot be read ({})", folder, error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void append_folder(const std::string& folder, std::vector<std::string>& files) {
  const std::size_t before = files.size();
  for (const std::string& file : json_files_below(folder)) {
    if (holds_measurements(file)) {
      files.push_back(file);
    }
  }
  if (files.size() == before) {
    throw ConfigError(fmt::format(
        "{}: found no measurements, expected *.json files whose \"schema\" is lockstep.measurements/1",
        folder));
  }
}

}  // namespace

std::vector<std::string> find_measurement_files(const std::vector<std::string>& suites) {
  std::vector<std::string> files;
  for (const std::string& suite : suites) {
    std::error_code ignored;
    if (fs::is_directory(suite, ignored)) {
      append_folder(suite, files);
    } else {
      files.push_back(suite);
    }
  }
  return files;
}

}  // namespace lockstep
