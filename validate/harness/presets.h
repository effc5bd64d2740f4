#pragma once

// Sizes that keep a kind of machine busy, under one name.
//
// Problem:   a model's usual sizes suit a laptop; on a GPU a step of them lasts as long as its launches, and
//            what is timed is the host.
// Idea:      a preset is a table of sizes and a batch for each model, and how far the curve of all-reduces
//            goes. What the user says himself wins over it.
// Invariant: in fp32 with AdamW they fit the GPU of their name (80 and 40 GiB; small: 8), as a test weighs.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/models/training_model.h"

namespace lockstep::harness {

struct Preset {
  std::string name;
  std::vector<ModelSpec> models;
  std::int64_t most_curve_bytes = 0;
};

const std::vector<Preset>& presets();

std::vector<std::string> preset_names();

// What the spec does not say itself. A model that the preset does not know stays as it is.
void apply_preset(const Preset& preset, ModelSpec& spec);

// For --help: one line a preset and model.
std::string describe_presets();

}  // namespace lockstep::harness
