#include "sim/study/fit/measurement_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/study/bench/kernel_table.h"
#include "sim/study/bench/launch_table.h"
#include "sim/study/harness/harness_run.h"
#include "sim/study/validation_case.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view table_schema = "lockstep.collective_tables/1";

bool has_schema(const std::string& file, std::string_view schema) {
  const JsonDocument document = JsonDocument::from_file(file);
  const nlohmann::ordered_json& value = document.value();
  return value.is_object() && value.contains("schema") && value["schema"] == schema;
}

std::vector<std::string> files_below(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ending && entry->is_regular_file(error)) {
      files.push_back(entry->path().string());
    }
  }
  if (error) {
    throw ConfigError(fmt::format("{}: cannot be read ({})", folder, error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A folder's files, or the suite itself.
std::vector<std::string> files_of(const std::string& suite, std::string_view ending) {
  std::error_code ignored;
  return fs::is_directory(suite, ignored) ? files_below(suite, ending) : std::vector<std::string>{suite};
}

bool is_kernel_table(const std::string& file) {
  return !kernel_table_kind(file).empty();
}

std::vector<std::string> find_tables(const std::vector<std::string>& suites,
                                     bool (*is_table)(const std::string& file)) {
  std::vector<std::string> tables;
  for (const std::string& suite : suites) {
    for (const std::string& file : files_of(suite, ".csv")) {
      if (is_table(file)) {
        tables.push_back(file);
      }
    }
  }
  return tables;
}

// Files of the schema among the suites; folders are searched through.
std::vector<std::string> find_files(const std::vector<std::string>& suites, std::string_view schema) {
  std::vector<std::string> files;
  for (const std::string& suite : suites) {
    for (const std::string& file : files_of(suite, ".json")) {
      if (!is_kernel_table(file) && has_schema(file, schema)) {
        files.push_back(file);
      }
    }
  }
  return files;
}

}  // namespace

std::vector<std::string> find_measurement_files(const std::vector<std::string>& suites) {
  std::vector<std::string> files;
  for (const std::string& suite : suites) {
    std::error_code ignored;
    const bool is_folder = fs::is_directory(suite, ignored);
    std::vector<std::string> cases = find_files({suite}, measurements_schema);
    const bool holds_others = !find_files({suite}, table_schema).empty() ||
                              !find_files({suite}, harness_run_schema).empty() ||
                              !find_kernel_tables({suite}).empty();
    if (is_folder && cases.empty() && !holds_others) {
      throw ConfigError(
          fmt::format("{}: found no measurements, expected *.json files whose \"schema\" is {}, {} or {}, or "
                      "tables of kernels (gemm.csv, attention.csv, ...)",
                      suite, measurements_schema, table_schema, harness_run_schema));
    }
    // A file of no known schema is read as cases, which says what is wrong with it.
    if (!is_folder && !holds_others) {
      cases = {suite};
    }
    files.insert(files.end(), cases.begin(), cases.end());
  }
  return files;
}

std::vector<std::string> find_harness_runs(const std::vector<std::string>& suites) {
  return find_files(suites, harness_run_schema);
}

std::vector<std::string> find_kernel_tables(const std::vector<std::string>& suites) {
  return find_tables(suites, is_kernel_table);
}

std::vector<std::string> find_launch_tables(const std::vector<std::string>& suites) {
  return find_tables(suites, is_launch_table);
}

std::vector<std::string> find_table_indexes(const std::vector<std::string>& suites) {
  return find_files(suites, table_schema);
}

}  // namespace lockstep
