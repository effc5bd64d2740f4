#include <algorithm>
#include <utility>

#include "sim/base/random.h"
#include "validate/harness/layers/draws.h"
#include "validate/harness/layers/module.h"

namespace lockstep::harness {

namespace {

float draw(InitialValues initial, std::uint64_t bits) {
  switch (initial.kind) {
    case InitialValues::Kind::normal:
      return initial.value * normal_draw(bits);
    case InitialValues::Kind::uniform:
      return initial.value * uniform_draw(bits);
    case InitialValues::Kind::constant:
      break;
  }
  return initial.value;
}

// In pieces, so that the host never holds a large parameter whole.
void upload_initial_values(Device& device, const Parameter& parameter, std::uint64_t seed,
                           std::uint32_t index) {
  constexpr std::int64_t piece = 1 << 20;
  std::vector<float> values(static_cast<std::size_t>(std::min(piece, parameter.elements)));
  for (std::int64_t first = 0; first < parameter.elements; first += piece) {
    const std::int64_t count = std::min(piece, parameter.elements - first);
    for (std::int64_t element = 0; element < count; ++element) {
      values[static_cast<std::size_t>(element)] =
          draw(parameter.initial, keyed_random(seed, index, static_cast<std::uint64_t>(first + element)));
    }
    device.upload(parameter.value.part(first, count), values.data());
  }
}

}  // namespace

Tensor ModuleFactory::allocate(std::int64_t elements, Type type) {
  memory_.emplace_back(device_, elements, type);
  return memory_.back().tensor();
}

std::uint32_t ModuleFactory::add_parameter(std::string name, std::int64_t elements, InitialValues initial,
                                           bool is_multiplied) {
  const auto index = static_cast<std::uint32_t>(parameters_.size());
  auto parameter = std::make_unique<Parameter>(Parameter{.name = std::move(name),
                                                         .elements = elements,
                                                         .initial = initial,
                                                         .is_multiplied = is_multiplied,
                                                         .value = allocate(elements, Type::fp32),
                                                         .multiplied = {},
                                                         .gradient = allocate(elements, Type::fp32)});
  upload_initial_values(device_, *parameter, seed_, index);
  device_.fill_zero(parameter->gradient);
  parameter->multiplied = parameter->value;
  if (is_multiplied && activations_ != Type::fp32) {
    parameter->multiplied = allocate(elements, activations_);
    device_.cast(parameter->multiplied, parameter->value);
  }
  parameters_.push_back(std::move(parameter));
  return index;
}

std::uint32_t ModuleFactory::add_layer(std::string name, std::vector<std::uint32_t> parameters) {
  layers_.push_back({.name = std::move(name), .parameters = std::move(parameters)});
  return static_cast<std::uint32_t>(layers_.size() - 1);
}

Tensor ModuleFactory::add_buffer(std::int64_t elements, float value) {
  const Tensor buffer = allocate(elements, Type::fp32);
  device_.upload(buffer, std::vector<float>(static_cast<std::size_t>(elements), value).data());
  buffers_.push_back(buffer);
  return buffer;
}

}  // namespace lockstep::harness
