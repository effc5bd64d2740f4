#pragma once

// Files of other tools that a scenario names, imported where they stand.
//
// Problem:   "model": "config.json" is read by every cell of a sweep, and a trace may have a gigabyte.
// Idea:      a file is imported once for each answer to what its importer asks for; all else that a scenario says
//            beside the name is laid over what was made, as over any profile.
// Invariant: what is returned stays where it is; the same file and answers give the same document. Not safe to share:
//            the store that owns it holds a lock.
// Errors:    ConfigError with the file's name.

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/load/import/import_file.h"

namespace lockstep {

struct ImportedFile {
  nlohmann::ordered_json document;
  std::vector<std::string> warnings;
};

class ImportedFiles {
 public:
  // Null: the file is no other tool's.
  const NamedImporter* importer_of(const std::string& file);

  // `place`: where a scenario states the answers, "cluster.machine."; `stated` may be null; `shelf`: what is shipped.
  const ImportedFile& import(const std::string& file, const NamedImporter& importer,
                             const nlohmann::ordered_json& stated, std::string_view place,
                             const ProfileShelf& shelf);

  // Of each imported file, what its bytes are: they may be too many to keep.
  const std::map<std::string, nlohmann::ordered_json>& states();

 private:
  std::map<std::string, const NamedImporter*> importers_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<const ImportedFile>> files_;
  std::map<std::string, nlohmann::ordered_json> states_;
};

// A fingerprint of the file's bytes, read piece by piece.
nlohmann::ordered_json state_of_bytes(const std::string& file);

}  // namespace lockstep
