#include "sim/cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/printable.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Names of files are any bytes; JSON is UTF-8.
std::string text_of(const ordered_json& document, int indent) {
  return document.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// Null where there is none; a pipe is not waited for.
ordered_json schema_named_in(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return {};
  std::ifstream file(path);
  const ordered_json earlier = ordered_json::parse(file, nullptr, false, true);
  return earlier.is_object() ? earlier.value("$schema", ordered_json()) : ordered_json();
}

}  // namespace

void print(std::string_view text) {
  print_coloured(printable(text));
}

void print_coloured(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw EnvironmentError("standard output: writing failed: " + std::generic_category().message(errno));
  }
}

void print_json(const ordered_json& document) {
  print(text_of(document, 2));
}

void write_json(const std::string& path, const ordered_json& document, int indent) {
  write_file_atomically(path, printable(text_of(document, indent)));
}

void write_profile(const std::string& path, const ordered_json& document) {
  const ordered_json schema = schema_named_in(path);
  ordered_json profile = ordered_json::object();
  if (schema.is_string())
    profile["$schema"] = schema;
  profile.update(document);
  write_json(path, profile);
}

void print_diagnostic(std::string_view text) {
  draw_diagnostic(printable(text));
}

void draw_diagnostic(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool wants_colour() {
  const char* refusal = std::getenv("NO_COLOR");
  const bool is_refused = refusal != nullptr && *refusal != '\0';
  return !is_refused && ::isatty(STDOUT_FILENO) != 0;
}

}  // namespace lockstep
