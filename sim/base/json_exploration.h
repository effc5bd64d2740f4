#pragma once

// All that a reader may ask, found out by showing it documents.
//
// Problem:   what a reader asks depends on what it reads: a key's kind shows only where the key is there, the options
//            of a strategy only where that strategy is chosen.
// Idea:      read the seeds; then for every key that was asked for, the same document with bytes there, which JSON has
//            none of, so that a value of every valid kind is looked for; with one of each of these kinds there; and for
//            every list of valid names with each of them; and so on with what those documents bring up, until nothing
//            new is asked. That a document is wrong does not matter: readers go on to its end.
// Invariant: every place is tried in a document in which it was asked for.
// Cost:      a reading or two a place, and one a valid name.

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/json_record.h"

namespace lockstep {

// Reads a document, whose questions go into the record. May throw ConfigError.
using RecordedReading = std::function<void(const nlohmann::ordered_json& document, JsonRecord& record)>;

JsonRecord explore(const RecordedReading& read, const std::vector<nlohmann::ordered_json>& seeds);

}  // namespace lockstep
