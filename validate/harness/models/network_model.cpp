#include "validate/harness/models/network_model.h"

#include <utility>

namespace lockstep::harness {

namespace {

template <class Value>
std::span<Value> sample_of(std::vector<Value>& values, std::int64_t index, std::int64_t per_sample) {
  if (values.empty())
    return {};
  return std::span(values).subspan(static_cast<std::size_t>(index * per_sample),
                                   static_cast<std::size_t>(per_sample));
}

}  // namespace

NetworkModel::NetworkModel(Device& device, const ModelKind& kind, ModelSpec spec)
    : NetworkModel(device, kind, spec, ModuleFactory(device, spec.activations, spec.seed)) {}

NetworkModel::NetworkModel(Device& device, const ModelKind& kind, ModelSpec spec, ModuleFactory factory)
    : device_(device),
      spec_(std::move(spec)),
      network_(kind.build(factory, spec_)),
      memory_(factory.take_memory()),
      parameters_(factory.take_parameters()),
      layers_(factory.take_layers()),
      buffers_(factory.take_buffers()),
      simulated_as_(kind.simulated_as(spec_)),
      forward_flops_(factory.forward_flops()) {
  const TaskShape shape = network_.task->shape();
  const std::int64_t inputs = spec_.batch * shape.inputs;
  const bool has_tokens = shape.input_type == Type::int32;
  host_numbers_.resize(has_tokens ? 0 : static_cast<std::size_t>(inputs));
  host_tokens_.resize(has_tokens ? static_cast<std::size_t>(inputs) : 0);
  host_targets_.resize(static_cast<std::size_t>(spec_.batch * shape.targets));
  uploaded_ = Buffer(device, inputs, shape.input_type);
  if (!has_tokens && spec_.activations != Type::fp32)
    inputs_ = factory.make_activation(inputs);
  targets_ = Buffer(device, spec_.batch * shape.targets, Type::int32);
}

void NetworkModel::write_samples(std::int64_t first_sample) {
  const TaskShape shape = network_.task->shape();
  for (std::int64_t index = 0; index < spec_.batch; ++index) {
    network_.task->write(first_sample + index, {.numbers = sample_of(host_numbers_, index, shape.inputs),
                                                .tokens = sample_of(host_tokens_, index, shape.inputs),
                                                .targets = sample_of(host_targets_, index, shape.targets)});
  }
}

void NetworkModel::load_batch(std::int64_t first_sample) {
  write_samples(first_sample);
  if (host_tokens_.empty()) {
    device_.upload(uploaded_.tensor(), host_numbers_.data());
  } else {
    device_.upload(uploaded_.tensor(), host_tokens_.data());
  }
  device_.upload(targets_.tensor(), host_targets_.data());
  if (!inputs_.tensor().is_empty())
    device_.cast(inputs_.tensor(), uploaded_.tensor());
}

void NetworkModel::forward(Step& step) {
  const Tensor inputs = inputs_.tensor().is_empty() ? uploaded_.tensor() : inputs_.tensor();
  network_.loss->forward(step, network_.body->forward(step, inputs), targets_.tensor());
}

void NetworkModel::backward(Step& step) {
  network_.body->backward(step, network_.loss->backward(step));
}

double NetworkModel::loss() {
  float loss = 0;
  device_.download(&loss, network_.loss->loss());
  return static_cast<double>(loss);
}

void NetworkModel::refresh_copies(Step& step) {
  for (const auto& parameter : parameters_) {
    if (parameter->multiplied.data != parameter->value.data)
      step.device.cast(parameter->multiplied, parameter->value);
  }
}

}  // namespace lockstep::harness
