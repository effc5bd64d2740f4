// Which dimension of a tensor is cut, and what its gradient is to the group.

#include "sim/training/parameter_slice.h"

#include <doctest/doctest.h>

#include <functional>
#include <numeric>

namespace lockstep::parameter_slice_test {

ParameterTensor tensor_of(std::vector<std::int64_t> shape) {
  const std::int64_t elements =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  return {.name = "weight", .shape = std::move(shape), .elements = elements};
}

Model model_of(std::vector<std::vector<std::int64_t>> shapes) {
  Model model;
  for (std::vector<std::int64_t>& shape : shapes) model.parameters.push_back(tensor_of(std::move(shape)));
  return model;
}

Layer layer_of(std::vector<std::uint32_t> parameters) {
  return {.name = "layer", .parameters = std::move(parameters)};
}

using Shape = std::vector<std::int64_t>;

TEST_CASE("columns take the outputs of a weight and of its bias; elements follow the shape") {
  const ParallelDegrees degrees{.tensor = 4};
  ParameterSlicer slicer(model_of({{1024, 256}, {1024}}), degrees);
  slicer.take_outputs(layer_of({0, 1}), {.whole = 1024, .part = 256});
  CHECK(slicer.take_roles() == std::vector<ParameterRole>(2));
  const auto tensors = slicer.take_tensors();
  CHECK(tensors[0].shape == Shape{256, 256});
  CHECK(tensors[0].elements == 256 * 256);
  CHECK(tensors[1].shape == Shape{256});
  CHECK(tensors[1].elements == 256);
}

TEST_CASE("of a square weight columns take the front, rows the back") {
  const ParallelDegrees degrees{.tensor = 2};
  ParameterSlicer columns(model_of({{512, 512}}), degrees);
  columns.take_outputs(layer_of({0}), {.whole = 512, .part = 256});
  CHECK(columns.take_tensors()[0].shape == Shape{256, 512});
  ParameterSlicer rows(model_of({{512, 512}}), degrees);
  rows.take_inputs(layer_of({0}), {.whole = 512, .part = 256});
  CHECK(rows.take_tensors()[0].shape == Shape{512, 256});
}

TEST_CASE("the experts of one tensor are no outputs, however many they are") {
  const ParallelDegrees degrees{.tensor = 2};
  ParameterSlicer slicer(model_of({{64, 64, 32}}), degrees);
  slicer.take_outputs(layer_of({0}), {.whole = 64, .part = 32});
  CHECK(slicer.take_tensors()[0].shape == Shape{64, 32, 32});
}

TEST_CASE("the bias of rows stays whole, and is partial where each rank saw its own tokens") {
  for (const bool is_sequence_parallel : {false, true}) {
    const ParallelDegrees degrees{.tensor = 2, .sequence_parallel = is_sequence_parallel};
    ParameterSlicer slicer(model_of({{256, 1024}, {256}}), degrees);
    slicer.take_inputs(layer_of({0, 1}), {.whole = 1024, .part = 512});
    const auto roles = slicer.take_roles();
    CHECK(roles[0] == ParameterRole{});
    CHECK(roles[1] == ParameterRole{.is_replicated = true, .is_partial = is_sequence_parallel});
    CHECK(slicer.take_tensors()[1].shape == Shape{256});
  }
}

// 50,257 words over four ranks, each a multiple of 128: 12,565 of 50,257 / 4 become 99 x 128 = 12,672.
TEST_CASE("words are cut and padded, positions are not") {
  const ParallelDegrees degrees{.tensor = 4, .vocabulary_multiple = 128};
  ParameterSlicer slicer(model_of({{50257, 64}, {1024, 64}}), degrees);
  CHECK(slicer.take_words(layer_of({0, 1}), 50257) == (12672 + 1024) * 64);
  const auto roles = slicer.take_roles();
  CHECK(roles[0] == ParameterRole{});
  CHECK(roles[1] == ParameterRole{.is_replicated = true});
}

TEST_CASE("experts are dealt out by number") {
  const ParallelDegrees degrees{.expert = 8};
  ParameterSlicer slicer(model_of({{64, 96, 32}}), degrees);
  slicer.take_experts(layer_of({0}));
  CHECK(slicer.take_roles()[0].is_expert);
  const auto tensors = slicer.take_tensors();
  CHECK(tensors[0].shape == Shape{8, 96, 32});
  CHECK(tensors[0].elements == 8 * 96 * 32);
}

}  // namespace lockstep::parameter_slice_test
