#pragma once

// The extension point of models: a family turns the keys of models/NAME.json into layers.
//
// Idea:      one function per family, found by the "family" key; it reads its own keys and no others.
// Invariant: a family reads every key it understands, so that finish() rejects the rest.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/json_reader.h"
#include "sim/plan/model.h"

namespace lockstep {

// What the scenario says about a model besides its name.
struct ModelRequest {
  std::optional<std::int64_t> sequence_length;  // replaces the instance's own
};

struct ModelFamily {
  Model (*build)(JsonReader& json, const ModelRequest& request);
  std::string description;
};

// Reads one model object: "name", "source" and "family" here, the rest by the family; rejects unread keys.
Model build_model(JsonReader& json, const ModelRequest& request);

}  // namespace lockstep
