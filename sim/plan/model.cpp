#include "sim/plan/model.h"

#include <algorithm>
#include <ranges>

namespace lockstep {

std::int64_t parameter_count(const Model& model) {
  std::int64_t count = 0;
  for (const ParameterTensor& parameter : model.parameters) count += parameter.elements;
  return count;
}

std::int64_t buffer_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const BufferTensor& buffer : model.buffers) bytes += buffer.elements * buffer.element_bytes;
  return bytes;
}

std::int64_t forward_flops(const Model& model) {
  std::int64_t flops = 0;
  for (const Layer& layer : model.layers) flops += layer.forward_flops;
  return flops;
}

std::int64_t backward_flops(const Model& model) {
  std::int64_t flops = 0;
  for (const Layer& layer : model.layers) flops += layer.backward_input_flops + layer.backward_weight_flops;
  return flops;
}

int block_count(const Model& model) {
  int last = -1;
  for (const Layer& layer : model.layers) last = std::max(last, layer.block);
  return last + 1;
}

std::vector<std::uint32_t> gradient_ready_order(const Model& model) {
  std::vector<std::uint32_t> order;
  order.reserve(model.parameters.size());
  for (const Layer& layer : model.layers | std::views::reverse) {
    order.insert(order.end(), layer.parameters.begin(), layer.parameters.end());
  }
  return order;
}

}  // namespace lockstep
