#pragma once

// The three models, small enough that a step takes milliseconds.

#include "validate/harness/models/training_model.h"

namespace lockstep::harness {

inline ModelSpec tiny_mlp() {
  return {.name = "mlp",
          .sizes = {{"inputs", 16}, {"hidden", 24}, {"layers", 3}, {"classes", 4}},
          .batch = 16,
          .seed = 5};
}

inline ModelSpec tiny_gpt() {
  return {.name = "gpt",
          .sizes = {{"layers", 2}, {"hidden", 24}, {"heads", 3}, {"sequence", 12}, {"vocabulary", 13}},
          .batch = 8,
          .seed = 5};
}

// Its depth and widths are fixed.
inline ModelSpec tiny_resnet50() {
  return {.name = "resnet50", .sizes = {{"image_size", 32}, {"classes", 4}}, .batch = 8, .seed = 5};
}

}  // namespace lockstep::harness
