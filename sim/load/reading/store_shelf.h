#pragma once

// The profiles of a store, as importers see them.
//
// Problem:   importers stand below the store, which imports files itself, and still ask what is shipped.
// Idea:      whoever holds a store lends it behind the narrow face that importers know.
// Invariant: a profile that is there and cannot be read is not there for importers: its readers say what is wrong.
// Cost:      that of the store.

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
