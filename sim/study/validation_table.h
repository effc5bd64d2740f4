#pragma once

// How predicted and measured times are shown side by side: as JSON, as text, and as the README's table.
//
// Idea:      one line a group; cases one by one only where they are few enough to read.
// Invariant: groups are never pooled; fitted and held-out cases stand apart.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/study/validation_case.h"

namespace lockstep {

nlohmann::ordered_json to_json(const Validation& validation);
std::string to_text(const Validation& validation);
// The table the README shows, in Markdown.
std::string to_markdown(const Validation& validation);

}  // namespace lockstep
