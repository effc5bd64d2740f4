#include "sim/load/import/import_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sim/base/nearest_name.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t recognised_bytes = std::size_t{64} << 10;
constexpr std::size_t largest_whole_file = std::size_t{64} << 20;

bool is_answered(const Question& question, const nlohmann::ordered_json& stated) {
  const nlohmann::ordered_json* value = &stated;
  for (std::string_view path = question.path; !path.empty();) {
    const std::string key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (!value->is_object() || !value->contains(key))
      return false;
    value = &(*value)[key];
  }
  return !value->is_null();
}

}  // namespace

std::string_view noun_of(ImportedThing thing) {
  constexpr std::array<std::string_view, 5> nouns{"a model", "a machine", "a scenario", "a plan",
                                                  "what a log says"};
  return nouns[static_cast<std::size_t>(thing)];
}

const NamedImporter& importer_named(const std::string& kind) {
  const auto& all = Registry<Importer>::all();
  if (const auto found = all.find(kind); found != all.end())
    return *found;
  throw ConfigError(
      fmt::format("{}: no such kind of file; {}", kind, describe_choices(kind, Registry<Importer>::names())));
}

const NamedImporter* importer_of(std::string_view beginning) {
  for (const NamedImporter& entry : Registry<Importer>::all())
    if (entry.second.recognises != nullptr && entry.second.recognises(beginning))
      return &entry;
  return nullptr;
}

const NamedImporter* importer_of_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    return nullptr;
  std::string beginning(recognised_bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  return importer_of(beginning);
}

std::ifstream open_import_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw ConfigError(fmt::format("{}: found a folder, expected a file", path));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw ConfigError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  return file;
}

std::string read_whole(const ImportRequest& request) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (request.file.read(piece.data(), piece.size()) || request.file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(request.file.gcount()));
    if (text.size() > largest_whole_file)
      throw ConfigError(
          fmt::format("{}: found more than 64 MiB, expected a file of settings", request.file_name));
  }
  if (request.file.bad())
    throw ConfigError(fmt::format("{}: cannot be read", request.file_name));
  if (text.empty())
    throw ConfigError(fmt::format("{}: found an empty file", request.file_name));
  return text;
}

void refuse_file(std::string_view text, const ImportRequest& request, std::string_view expected) {
  const NamedImporter* other = importer_of(text.substr(0, recognised_bytes));
  throw ConfigError(fmt::format("{}: found {}, expected {}", request.file_name,
                                other == nullptr ? "something else" : other->second.description, expected));
}

ConfigError as_read(const ConfigError& error, const NamedImporter& importer, const std::string& path) {
  const NamedImporter* looks_like = importer_of_file(path);
  if (looks_like == &importer)
    return error;
  std::vector<std::string> problems = error.problems;
  problems.push_back(fmt::format("{}: read as {}: {}", path, importer.first, importer.second.description));
  if (looks_like != nullptr)
    problems.back() +=
        fmt::format("; it looks like {}: {}", looks_like->first, looks_like->second.description);
  return ConfigError(std::move(problems));
}

void require_complete(const Imported& imported, const ImportRequest& request, std::string_view place) {
  std::vector<std::string> problems;
  for (const KeyUse& use : imported.keys)
    if (use.fate == KeyFate::refused)
      problems.push_back(fmt::format("{}: {}: {}", request.file_name, use.key, use.said));
  for (const Question& question : imported.questions)
    if (!is_answered(question, request.stated))
      problems.push_back(fmt::format("{}: {}; state it, for example --set {}{}={}", request.file_name,
                                     question.why, place, question.path, question.example));
  if (!problems.empty())
    throw ConfigError(problems);
}

void add_source(Imported& imported, const NamedImporter& importer, const std::string& file_name) {
  const bool has_source =
      importer.second.makes != ImportedThing::plan && importer.second.makes != ImportedThing::log;
  if (has_source && !imported.document.contains("source"))
    imported.document["source"] =
        fmt::format("{} ({})", fs::path(file_name).filename().string(), importer.second.description);
}

}  // namespace lockstep
