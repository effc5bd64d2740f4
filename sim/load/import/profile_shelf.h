#pragma once

// What is shipped, for importers that recognise it.
//
// Problem:   a dump of a machine names a GPU as its driver does and a NIC by its rate; what these are called here, and
//            which shipped machine is built alike, stands in profiles, whose store itself imports files.
// Idea:      whoever imports lends the profiles behind a narrow face: names of a kind, and the JSON of a name.
// Invariant: nothing is opened but by name; a profile that cannot be read is not there.
// Cost:      one file each, read once by the store behind it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep {

enum class ShelfKind { gpu, link, machine, calibration };

class ProfileShelf {
 public:
  virtual ~ProfileShelf() = default;
  virtual std::vector<std::string> names(ShelfKind kind) const = 0;
  // Null: there is none.
  virtual const nlohmann::ordered_json* find(ShelfKind kind, const std::string& name) const = 0;
};

}  // namespace lockstep
