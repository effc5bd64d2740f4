#pragma once

// Where named profiles lie: GPUs, links, machines, fabrics, calibrations, models, architectures of GPUs, and errors.
//
// Problem:   a name in a scenario may mean a shipped file, a user's own data directory, or a path.
// Idea:      a list of roots, first hit wins: --data, LOCKSTEP_DATA, the install prefix, the source tree.
//            What ends in .json or holds a '/' is a path, and so is what no profile is called and a file is:
//            from the working directory, else from the scenario's folder. A file of another tool is imported where
//            it stands. A model may list other names ("also_known_as": timm's vit_base_patch16_224 is vit_b_16).
// Invariant: read-only and safe to share between threads; a file is read once and then remembered.
// Cost:      one parse a file, then a map look-up: sweeps load thousands of scenarios from one store.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

class ImportedFiles;
class Lenders;

enum class ProfileKind : std::uint8_t {
  gpu,
  link,
  machine,
  fabric,
  calibration,
  model,
  architecture,
  errors,
  part
};

// "GPU", "link", ...: the kind as a message says it.
std::string_view noun_of(ProfileKind kind);

struct Profile {
  const nlohmann::ordered_json* value;                 // lives as long as the store
  std::string file;                                    // for errors: where it was found
  std::string label;                                   // for results: the same on every machine
  const std::vector<std::string>* warnings = nullptr;  // of what was imported
};

struct ReadFile {
  std::string file;
  const nlohmann::ordered_json* value;  // lives as long as the store
};

class ProfileStore {
 public:
  // `data_directory` is --data; empty: none. Throws ConfigError when it is not a directory.
  explicit ProfileStore(const std::string& data_directory = "");
  // Only these folders; each holds hw_profiles/ and models/.
  explicit ProfileStore(std::vector<std::string> roots);
  ~ProfileStore();
  ProfileStore(const ProfileStore&) = delete;
  ProfileStore& operator=(const ProfileStore&) = delete;

  // Of all roots, sorted, without duplicates.
  std::vector<std::string> names(ProfileKind kind) const;
  // Whether `name` is one of them, or another name of one.
  bool has(ProfileKind kind, const std::string& name) const;
  // Empty when there is no such name or file. Throws ConfigError when it is there and cannot be read. `stated`: what a
  // scenario says beside the name, which may answer what a file of another tool leaves open.
  std::optional<Profile> open(ProfileKind kind, const std::string& name_or_path,
                              const std::string& scenario_folder = "",
                              const nlohmann::ordered_json& stated = nullptr) const;

  // All that was read so far, in the order of their names; of imported files what their bytes are.
  std::vector<ReadFile> files_read() const;

  // What its machines that were measured were read as (lenders.h).
  Lenders& lenders() const { return *lenders_; }

  static bool is_path(std::string_view name_or_path);

 private:
  // What is found under a name: of the first root that has it, and what it is called there. Empty: none has.
  struct Found {
    std::string file;
    std::string name;
  };
  Found find(ProfileKind kind, const std::string& name) const;
  Found find_file(ProfileKind kind, const std::string& name) const;
  const std::map<std::string, std::string>& other_names_of_models() const;
  std::optional<Profile> open_file(ProfileKind kind, const std::string& file, const std::string& label,
                                   const nlohmann::ordered_json& stated) const;
  const nlohmann::ordered_json* read(const std::string& file) const;

  std::vector<std::string> roots_;
  // Guards what is remembered. Recursive: an importer looks up what is shipped while its file is read.
  mutable std::recursive_mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<const nlohmann::ordered_json>> values_;
  mutable std::map<ProfileKind, std::vector<std::string>> names_;
  mutable std::optional<std::map<std::string, std::string>> other_names_;
  std::unique_ptr<ImportedFiles> imported_;
  std::unique_ptr<Lenders> lenders_;
};

// As `files_read` tells it of a file, read now: what it says, not how it is spaced.
nlohmann::ordered_json state_of_file(const std::string& file);

}  // namespace lockstep
