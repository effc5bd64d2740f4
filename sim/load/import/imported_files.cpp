#include "sim/load/import/imported_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/fingerprint.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

ordered_json answers_in(const ordered_json& stated, const Importer& importer) {
  ordered_json answers = ordered_json::object();
  for (const std::string& key : importer.asks_for)
    if (stated.is_object() && stated.contains(key) && !stated[key].is_null())
      answers[key] = stated[key];
  return answers;
}

bool is_among(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

ImportedFile import_alone(const std::string& file, const NamedImporter& importer, const ordered_json& answers,
                          std::string_view place, const ProfileShelf& shelf) {
  std::ifstream opened = open_import_file(file);
  const ImportRequest request{.file_name = file, .file = opened, .stated = answers, .profiles = &shelf};
  Imported imported = importer.second.import(request);
  require_complete(imported, request, place);
  add_source(imported, importer, file);
  for (const auto& [key, value] : answers.items())
    if (!imported.document.contains(key) && !is_among(imported.answered, key))
      imported.document[key] = value;
  ImportedFile made{
      .document = std::move(imported.document),
      .warnings = {fmt::format("{} is read as {}: {}", file, importer.first, importer.second.description)}};
  for (const std::string& warning : imported.warnings)
    made.warnings.push_back(fmt::format("{}: {}", file, warning));
  return made;
}

}  // namespace

const NamedImporter* ImportedFiles::importer_of(const std::string& file) {
  const auto [known, is_new] = importers_.try_emplace(file, nullptr);
  if (is_new)
    known->second = importer_of_file(file);
  return known->second;
}

const ImportedFile& ImportedFiles::import(const std::string& file, const NamedImporter& importer,
                                          const ordered_json& stated, std::string_view place,
                                          const ProfileShelf& shelf) {
  const ordered_json answers = answers_in(stated, importer.second);
  auto& known = files_[{file, answers.dump()}];
  if (known == nullptr)
    known = std::make_unique<const ImportedFile>(import_alone(file, importer, answers, place, shelf));
  return *known;
}

const std::map<std::string, ordered_json>& ImportedFiles::states() {
  for (const auto& [key, imported] : files_)
    if (imported != nullptr && !states_.contains(key.first))
      states_.emplace(key.first, state_of_bytes(key.first));
  return states_;
}

ordered_json state_of_bytes(const std::string& file) {
  std::ifstream opened = open_import_file(file);
  Fingerprint fingerprint;
  std::array<char, 1 << 16> piece;
  while (opened.read(piece.data(), piece.size()) || opened.gcount() > 0)
    fingerprint.add({piece.data(), static_cast<std::size_t>(opened.gcount())});
  return fingerprint.text();
}

}  // namespace lockstep
