#pragma once

// The model of a scenario: a shipped instance, a family by its sizes, stated layers, or a measured one.
//
// Idea:      four ways of saying it become one Model; measured and stated times stand beside it.
// Invariant: gradients of stated layers become ready in the reverse of the order they are written in; work is
//            per sample, stated and measured times are for the whole batch.

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// Whether the object says itself what the model is: by a family, by layers or by what was measured. One with
// a name that says only parts of it changes the model of that name.
bool defines_model(const nlohmann::ordered_json& model);

// `needs_batch`: nothing else says how many samples there are.
ModelUse read_model(const JsonReader& json, const Place& place, bool needs_batch = true);

}  // namespace lockstep
