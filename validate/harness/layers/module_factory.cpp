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

std::vector<float> initial_values(std::uint64_t seed, std::uint32_t parameter, std::int64_t elements,
                                  InitialValues initial) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (std::size_t index = 0; index < values.size(); ++index)
    values[index] = draw(initial, keyed_random(seed, parameter, index));
  return values;
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
  device_.upload(parameter->value, initial_values(seed_, index, elements, initial).data());
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
