#pragma once

// Every key of a scenario as tables of Markdown, a section for each part.
//
// Idea:      a row is a key of the schema: its values are the schema's, its meaning the schema's description, its default
//            what the reader was found to do without it.
// Invariant: the same text on every run, and nothing in it that is written down a second time.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/load/reading/profile_store.h"

namespace lockstep {

std::string key_reference(const nlohmann::ordered_json& schema, const ProfileStore& store);

}  // namespace lockstep
