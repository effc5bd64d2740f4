#pragma once

// Where the time of one collective goes, and on what that rests.
//
// Problem:   a time alone does not say whether a launch, the steps of a ring or the bytes are to blame, nor how well
//            any of that is known.
// Idea:      the same collective is predicted again with one cost after another taken away: the host's launches, the
//            kernels' starts, steps over links in a node, steps between nodes, what channels and copies cost; what is
//            left is bytes on wires. Beside it the parts of the machine, with the tables behind each and how uncertain
//            its constants are.
// Invariant: the pieces add up to the time; the library's choice is that of the whole.
// Cost:      a prediction a piece.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"
#include "sim/study/bench/collective_table.h"

namespace lockstep {

struct AccountPiece {
  std::string what;
  Duration time;
};

struct AccountPart {
  std::string part;  // "gpu", "in_node", "network"
  std::string name;  // "hopper"
  std::int64_t tables = 0;
  std::int64_t machines = 0;
  double spread = 0;  // typical, of the logarithm of a constant on the next machine with this part
};

struct CollectiveAccount {
  CollectiveRow row;
  std::vector<AccountPiece> pieces;
  std::vector<AccountPart> parts;    // empty where the library has none (Gloo)
  std::vector<std::string> remarks;  // which part stands in for which
  std::string source;                // of the calibration
};

CollectiveAccount account_of(const Scenario& scenario, const CollectiveQuery& query,
                             const ProfileStore& store);

std::string to_text(const CollectiveAccount& account);
nlohmann::ordered_json to_json(const CollectiveAccount& account);

}  // namespace lockstep
