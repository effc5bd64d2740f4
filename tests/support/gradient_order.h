// In which order backward completes the gradients of a model.
#pragma once

#include <cstdint>
#include <ranges>
#include <vector>

#include "sim/plan/model.h"

namespace lockstep {

// Parameter indices: layers backwards, and each layer's as autograd adds them.
inline std::vector<std::uint32_t> gradient_ready_order(const Model& model) {
  std::vector<std::uint32_t> order;
  for (const Layer& layer : model.layers | std::views::reverse)
    order.insert(order.end(), layer.parameters.begin(), layer.parameters.end());
  return order;
}

}  // namespace lockstep
