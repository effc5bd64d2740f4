#pragma once

// A strategy's list of options, from JSON and to JSON.
//
// Invariant: what is written reads back to the same values; what has no meaning is not written, and refused
//            where it is stated.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/training/option_list.h"

namespace lockstep {

// Every key, also those that are written only where they are stated.
std::vector<std::string> keys_of(const OptionList& options);

// Over the values that stand there.
void read_options(const JsonReader& json, const Place& place, const OptionList& options);

void write_options(const OptionList& options, nlohmann::ordered_json& into);

}  // namespace lockstep
