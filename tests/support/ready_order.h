#pragma once

// The order in which the gradients of a model become ready in backward, by its parameters' indices.

#include <cstdint>
#include <vector>

#include "sim/plan/model.h"

namespace lockstep::testing {

inline std::vector<std::uint32_t> gradient_ready_order(const Model& model) {
  std::vector<std::uint32_t> order;
  for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer)
    order.insert(order.end(), layer->parameters.begin(), layer->parameters.end());
  return order;
}

}  // namespace lockstep::testing
