#pragma once

// What the command line says about one value: --set, --vary, --what-if, --calibration, an anchor's `set`.
//
// Problem:   "cluster.machine.nics.count" leads through a name: "dgx_a100_80gb" holds no NICs, its file does.
// Idea:      a name on the way becomes {"based_on": name} (a model's stays {"name": name}), which may be
//            changed and which the readers lay over the profile (changed_profile.h); nothing is opened here.
// Invariant: names come first and what changes the named comes after, whatever the order it is said in, so
//            that `--set cluster.machine.nics.count=4 --vary cluster.machine=A,B` changes both machines.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/json_reader.h"

namespace lockstep {

using Overrides =
    std::vector<std::pair<std::string, std::string>>;  // dotted path and value, as --set has them

// A value as --set would say it.
std::string as_set(const nlohmann::ordered_json& value);

// "training.recompute=full model.batch_per_gpu=4"
std::string describe(const Overrides& changes);

// Throws ConfigError with every override that cannot be applied.
void apply_overrides(JsonDocument& document, const Overrides& overrides);

inline constexpr const char* calibration_path = "cluster.machine.calibration";
inline constexpr const char* library_version_path = "communication.library_version";

// What --calibration and --library-version say; empty: not given.
struct LibraryChoice {
  std::string calibration = {};  // a name or a path
  std::string library_version = {};
};
Overrides overrides_of(const LibraryChoice& choice);

}  // namespace lockstep
