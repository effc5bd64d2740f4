#include "sim/plan/model.h"

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

}  // namespace lockstep
