#pragma once

// The options that belong to some strategies only.
//
// Problem:   a dozen strategies have seventy options between them, each of which is read, printed, and must
//            be refused where it belongs to another strategy.
// Idea:      each family's keys stand in one list (in the .cpp); reading, writing and naming walk it.
// Invariant: a key that a strategy does not have is refused with the strategies that do; what is written
//            reads back to the same options.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/load/training/framework_presets.h"
#include "sim/training/options.h"

namespace lockstep {

// The keys of a strategy with these options, in the order in which they are printed.
std::vector<std::string> option_keys(const TrainingSpec& training);

// Over the defaults that stand in `training`.
void read_family_options(const JsonReader& json, const Place& place, const TrainingFacts& facts,
                         TrainingSpec& training);

void write_family_options(const TrainingSpec& training, nlohmann::ordered_json& into);

}  // namespace lockstep
