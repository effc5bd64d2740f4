#pragma once

// What else a profile is called.
//
// Problem:   a driver prints, a library or a data set says a name of its own for a GPU or a model that is shipped.
// Idea:      the profile lists such names as data ("also_known_as"); nothing that is computed depends on them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"

namespace lockstep {

// Complains of what is no list of texts.
void read_other_names(const JsonReader& profile);

// Those that are texts; none of what is no list.
std::vector<std::string> other_names_of(const nlohmann::ordered_json& profile);

}  // namespace lockstep
