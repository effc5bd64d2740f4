#include "sim/load/reading/profile_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "sim/base/error.h"
#include "sim/base/installed_data.h"
#include "sim/base/json_text.h"
#include "sim/base/other_names.h"
#include "sim/load/import/imported_files.h"
#include "sim/load/reading/lenders.h"
#include "sim/load/reading/store_shelf.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct KindEntry {
  std::string_view noun;
  std::string_view folder;
  std::optional<ImportedThing> imported = {};  // what another tool's file has to be
  std::string_view place = {};                 // where a scenario says more of it
};

// In the order of ProfileKind.
constexpr std::array kinds{
    KindEntry{"GPU", "hw_profiles/gpus"},
    KindEntry{"link", "hw_profiles/links"},
    KindEntry{"machine", "hw_profiles/machines", ImportedThing::machine, "cluster.machine."},
    KindEntry{"fabric", "hw_profiles/fabrics"},
    KindEntry{"calibration", "hw_profiles/calibration"},
    KindEntry{"model", "models", ImportedThing::model, "model."},
    KindEntry{"GPU architecture", "hw_profiles/compute"},
    KindEntry{"error model", "hw_profiles/errors"},
    KindEntry{"part", "hw_profiles/parts"}};

const KindEntry& entry_of(ProfileKind kind) {
  return kinds[static_cast<std::size_t>(kind)];
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The system would read a name up to a NUL.
bool exists(const std::string& path) {
  std::error_code ignored;
  return path.find('\0') == std::string::npos && fs::exists(path, ignored);
}

bool holds_data(const fs::path& folder) {
  constexpr std::array<std::string_view, 3> kept{"hw_profiles", "models", "plots"};
  return std::any_of(kept.begin(), kept.end(),
                     [&](std::string_view name) { return is_directory((folder / name).string()); });
}

// `said`: the option or variable that names it.
void require_data(const std::string& said, const std::string& folder) {
  if (folder.empty())
    return;
  if (!is_directory(folder))
    throw ConfigError(
        fmt::format("{}{}: found no such directory; it holds hw_profiles/ and models/", said, folder));
  if (holds_data(folder))
    return;
  const fs::path above = fs::weakly_canonical(folder).parent_path();
  throw ConfigError(fmt::format("{}{}: found neither hw_profiles/ nor models/ in it{}", said, folder,
                                holds_data(above) ? "; they are in " + above.string() : ""));
}

std::vector<std::string> find_roots(const std::string& data_directory) {
  const char* set = std::getenv("LOCKSTEP_DATA");
  const std::string environment = set == nullptr ? "" : set;
  require_data("--data ", data_directory);
  require_data("LOCKSTEP_DATA=", environment);
  std::vector<std::string> roots;
  for (const std::string& root : {data_directory, environment, installed_data_directory(),
                                  std::string(LOCKSTEP_INSTALL_DATA_DIR), std::string(LOCKSTEP_SOURCE_DIR)}) {
    if (!root.empty() && is_directory(root)) {
      roots.push_back(root);
    }
  }
  return roots;
}

void add_names_in(const std::string& folder, std::set<std::string>& names) {
  std::error_code ignored;
  for (fs::directory_iterator file(folder, ignored), end; !ignored && file != end; file.increment(ignored)) {
    if (file->path().extension() == ".json") {
      names.insert(file->path().stem().string());
    }
  }
}

// What cannot be read is complained about where the profile is asked for.
std::vector<std::string> other_names_in(const std::string& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))
    return {};
  std::ifstream stream(file);
  return other_names_of(ordered_json::parse(stream, nullptr, false));
}

std::string label_of(ProfileKind kind, const std::string& name) {
  return fmt::format("{}/{}.json", entry_of(kind).folder, name);
}

// topo.txt: a name with an ending, which may be a file of another tool.
bool may_be_path(const KindEntry& entry, const std::string& name) {
  return ProfileStore::is_path(name) ||
         (entry.imported && name.find('.') != name.npos && !is_directory(name));
}

}  // namespace

std::string_view noun_of(ProfileKind kind) {
  return entry_of(kind).noun;
}

ProfileStore::ProfileStore(const std::string& data_directory) : ProfileStore(find_roots(data_directory)) {}

ProfileStore::ProfileStore(std::vector<std::string> roots)
    : roots_(std::move(roots)),
      imported_(std::make_unique<ImportedFiles>()),
      lenders_(std::make_unique<Lenders>()) {}

ProfileStore::~ProfileStore() = default;

bool ProfileStore::is_path(std::string_view name_or_path) {
  return name_or_path.ends_with(".json") || name_or_path.find('/') != std::string_view::npos;
}

std::vector<std::string> ProfileStore::names(ProfileKind kind) const {
  const std::scoped_lock lock(mutex_);
  const auto [remembered, is_new] = names_.try_emplace(kind);
  if (is_new) {
    std::set<std::string> found;
    for (const std::string& root : roots_) {
      add_names_in(fmt::format("{}/{}", root, entry_of(kind).folder), found);
    }
    remembered->second.assign(found.begin(), found.end());
  }
  return remembered->second;
}

const nlohmann::ordered_json* ProfileStore::read(const std::string& file) const {
  const std::scoped_lock lock(mutex_);
  auto& remembered = values_[file];
  if (remembered == nullptr) {
    remembered =
        std::make_unique<const nlohmann::ordered_json>(parse_lockstep_file(read_json_file(file), file));
  }
  return remembered.get();
}

std::vector<ReadFile> ProfileStore::files_read() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ReadFile> files;
  for (const auto& [file, state] : imported_->states()) files.push_back({file, &state});
  for (const auto& [file, value] : values_)
    if (value != nullptr)
      files.push_back({file, value.get()});
  return files;
}

ProfileStore::Found ProfileStore::find_file(ProfileKind kind, const std::string& name) const {
  if (name.empty() || is_path(name))
    return {};
  for (const std::string& root : roots_)
    if (std::string file = fmt::format("{}/{}", root, label_of(kind, name)); exists(file))
      return {.file = std::move(file), .name = name};
  return {};
}

// Only where no file has the name: every model is opened to see what else it is called.
const std::map<std::string, std::string>& ProfileStore::other_names_of_models() const {
  const std::scoped_lock lock(mutex_);
  if (!other_names_) {
    std::map<std::string, std::string> found;
    for (const std::string& root : roots_) {
      std::set<std::string> models;
      add_names_in(fmt::format("{}/{}", root, entry_of(ProfileKind::model).folder), models);
      for (const std::string& model : models)
        for (const std::string& other :
             other_names_in(fmt::format("{}/{}", root, label_of(ProfileKind::model, model))))
          found.emplace(other, model);
    }
    other_names_ = std::move(found);
  }
  return *other_names_;
}

ProfileStore::Found ProfileStore::find(ProfileKind kind, const std::string& name) const {
  Found found = find_file(kind, name);
  if (!found.file.empty() || kind != ProfileKind::model || is_path(name))
    return found;
  const auto& others = other_names_of_models();
  const auto other = others.find(name);
  return other == others.end() ? Found{} : find_file(kind, other->second);
}

bool ProfileStore::has(ProfileKind kind, const std::string& name) const {
  return !find(kind, name).file.empty();
}

std::optional<Profile> ProfileStore::open_file(ProfileKind kind, const std::string& file,
                                               const std::string& label, const ordered_json& stated) const {
  const KindEntry& entry = entry_of(kind);
  {
    const std::scoped_lock lock(mutex_);
    if (const NamedImporter* importer = imported_->importer_of(file)) {
      if (entry.imported != importer->second.makes)
        throw ConfigError(fmt::format("{}: found {} ({}), expected a {}", file, importer->first,
                                      importer->second.description, entry.noun));
      const ImportedFile& imported =
          imported_->import(file, *importer, stated, entry.place, StoreShelf(*this));
      return Profile{
          .value = &imported.document, .file = file, .label = label, .warnings = &imported.warnings};
    }
  }
  return Profile{.value = read(file), .file = file, .label = label};
}

std::optional<Profile> ProfileStore::open(ProfileKind kind, const std::string& name_or_path,
                                          const std::string& scenario_folder,
                                          const ordered_json& stated) const {
  if (const auto [file, name] = find(kind, name_or_path); !file.empty())
    return Profile{.value = read(file), .file = file, .label = label_of(kind, name)};
  if (!may_be_path(entry_of(kind), name_or_path))
    return std::nullopt;
  const std::string beside_scenario = (fs::path(scenario_folder) / name_or_path).string();
  for (const std::string& file : {name_or_path, beside_scenario})
    if (exists(file))
      return open_file(kind, file, name_or_path, stated);
  return std::nullopt;
}

ordered_json state_of_file(const std::string& file) {
  return importer_of_file(file) != nullptr ? state_of_bytes(file)
                                           : parse_lockstep_file(read_json_file(file), file);
}

}  // namespace lockstep
