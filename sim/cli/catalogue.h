#pragma once

// What is shipped, kind by kind: the lines of `list`, and what `show` finds by name.
//
// Idea:      profiles are read as they stand, without resolving what they name, so that a broken one is
//            still listed; strategies, collectives and importers are whatever registered itself.
// Invariant: sorted by name; every line says where its numbers come from.

#include <optional>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"

namespace lockstep {

struct CatalogueEntry {
  std::string name;
  std::string facts;   // the two or three figures one chooses by
  std::string status;  // machines: "calibrated" or "*uncalibrated*"
  std::string source;  // or description
};

// The kinds in the order they are listed: "machines", "gpus", ...
const std::vector<std::string>& catalogue_kinds();
// "machine" and "machines" alike. Throws ConfigError with the nearest kind.
std::string parse_catalogue_kind(const std::string& text);

std::vector<CatalogueEntry> list_entries(const std::string& kind, const ProfileStore& store);
std::vector<std::string> entry_names(const std::string& kind, const ProfileStore& store);

// Which files a kind is kept in; nothing for those that register themselves.
std::optional<ProfileKind> profile_kind_of(const std::string& kind);

}  // namespace lockstep
