#include "sim/training/parameter_slice.h"

#include "sim/base/units.h"

namespace lockstep {
namespace {

void set_extent(ParameterTensor& tensor, std::size_t dimension, std::int64_t extent) {
  tensor.elements = tensor.elements / tensor.shape[dimension] * extent;
  tensor.shape[dimension] = extent;
}

// A bias has one extent, a weight two, those of many experts three.
void take_outputs_of(ParameterTensor& tensor, const SideExtent& outputs) {
  const std::size_t first = tensor.shape.size() > 2 ? 1 : 0;
  for (std::size_t dimension = first; dimension < tensor.shape.size(); ++dimension)
    if (tensor.shape[dimension] == outputs.whole)
      return set_extent(tensor, dimension, outputs.part);
}

}  // namespace

void ParameterSlicer::take_outputs(const Layer& layer, const SideExtent& outputs) {
  for (const std::uint32_t parameter : layer.parameters) take_outputs_of(tensors_[parameter], outputs);
}

void ParameterSlicer::take_inputs(const Layer& layer, const SideExtent& inputs) {
  for (const std::uint32_t parameter : layer.parameters) take_inputs_of(parameter, inputs);
}

void ParameterSlicer::take_inputs_of(std::uint32_t parameter, const SideExtent& inputs) {
  ParameterTensor& tensor = tensors_[parameter];
  if (tensor.shape.size() == 1) {
    roles_[parameter].is_replicated = true;
    roles_[parameter].is_partial = degrees_.sequence_parallel;
    return;
  }
  for (std::size_t dimension = tensor.shape.size(); dimension-- > 0;)
    if (tensor.shape[dimension] == inputs.whole)
      return set_extent(tensor, dimension, inputs.part);
}

std::int64_t ParameterSlicer::take_words(const Layer& layer, std::int64_t vocabulary) {
  std::int64_t elements = 0;
  for (const std::uint32_t parameter : layer.parameters) {
    ParameterTensor& table = tensors_[parameter];
    if (table.shape.front() == vocabulary)
      set_extent(table, 0, words_of_rank(vocabulary, degrees_));
    else
      roles_[parameter].is_replicated = true;
    elements += table.elements;
  }
  return elements;
}

void ParameterSlicer::take_experts(const Layer& layer) {
  for (const std::uint32_t parameter : layer.parameters) {
    ParameterTensor& tensor = tensors_[parameter];
    set_extent(tensor, 0, divided_up(tensor.shape.front(), degrees_.expert));
    roles_[parameter].is_expert = true;
  }
}

void ParameterSlicer::replicate(const Layer& layer, bool is_partial) {
  for (const std::uint32_t parameter : layer.parameters)
    roles_[parameter] = {.is_replicated = true, .is_partial = is_partial};
}

}  // namespace lockstep
