// A model of alike layers whose times a test states.
#pragma once

#include <cstdint>
#include <string>

#include "sim/scenario/scenario.h"

namespace lockstep {

// One gradient of `elements` each.
struct StatedLayers {
  std::uint32_t count = 1;
  std::int64_t elements = 1;
  StatedTimes times;
};

// In place of the scenario's own.
inline void give_layers(Scenario& scenario, const StatedLayers& layers) {
  Model& model = scenario.model.model;
  model.parameters.clear();
  model.layers.clear();
  scenario.model.stated.assign(layers.count, layers.times);
  for (std::uint32_t index = 0; index < layers.count; ++index) {
    model.parameters.push_back({"p" + std::to_string(index), {}, layers.elements});
    Layer layer;
    layer.name = "l" + std::to_string(index);
    layer.parameters = {index};
    model.layers.push_back(layer);
  }
}

}  // namespace lockstep
