#pragma once

// The kinds and keys of a format that is written, found out from examples of it.
//
// Problem:   a description of what a writer writes drifts away from the writer, as one of what a reader reads does.
// Idea:      look at documents that the writer wrote. A key that every example has is always there; a kind that one
//            of them has is possible.
// Invariant: every example is valid by the schema of what was recorded. An object without keys allows any.
// Cost:      one walk through each example; what examples there must be is for who writes them to say.

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/json_record.h"

namespace lockstep {

// All elements of one array have the same keys.
JsonRecord record_of_examples(const std::vector<nlohmann::ordered_json>& examples);

}  // namespace lockstep
