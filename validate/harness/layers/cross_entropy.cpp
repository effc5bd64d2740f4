#include "validate/harness/layers/cross_entropy.h"

namespace lockstep::harness {

CrossEntropy::CrossEntropy(ModuleFactory& factory, const std::string& name, std::int64_t rows,
                           std::int64_t classes)
    : layer_(factory.add_layer(name, {})),
      classes_(classes),
      loss_(factory.device(), 1, Type::fp32),
      logits_gradient_(factory.make_activation(rows * classes)) {}

void CrossEntropy::forward(Step& step, Tensor logits, Tensor targets) {
  within_layer(step, layer_, Pass::forward, [&] {
    step.device.cross_entropy(loss_.tensor(), logits_gradient_.tensor(), logits, targets, classes_,
                              step.loss_scale);
    return loss_.tensor();
  });
}

Tensor CrossEntropy::backward(Step& step) {
  return within_layer(step, layer_, Pass::backward, [&] { return logits_gradient_.tensor(); });
}

}  // namespace lockstep::harness
