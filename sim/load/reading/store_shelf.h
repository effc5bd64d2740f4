#pragma once

// The profiles of a store, as importers see them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/load/import/profile_shelf.h"
#include "sim/load/reading/profile_store.h"

namespace lockstep {

class StoreShelf : public ProfileShelf {
 public:
  explicit StoreShelf(const ProfileStore& store) : store_(store) {}

  std::vector<std::string> names(ShelfKind kind) const override;
  const nlohmann::ordered_json* find(ShelfKind kind, const std::string& name) const override;

 private:
  const ProfileStore& store_;
};

}  // namespace lockstep
