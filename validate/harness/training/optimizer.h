#pragma once

// What is done with gradients: the optimizers of PyTorch, and the scale of a loss in fp16.
//
// Problem:   the last part of a step reads and writes every parameter and its state; in fp16 small gradients
//            vanish unless the loss is multiplied by a scale, and a scale that is too large makes infinities.
// Idea:      one kernel a parameter, state allocated when the optimizer is made. The scaler doubles its scale
//            after many clean steps; a step with a gradient that is not finite is skipped and halves it.
// Invariant: equal gradients give equal parameters on every rank: nothing depends on the rank.
// Errors:    ConfigError for an unknown name.
// Reference: Micikevicius et al., "Mixed precision training", ICLR 2018; torch.optim.SGD, AdamW, GradScaler.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "validate/harness/device/device.h"
#include "validate/harness/layers/module.h"

namespace lockstep::harness {

struct OptimizerOptions {
  std::string name = "sgd";  // sgd, momentum, adamw, none
  float learning_rate = 0.01F;
  float momentum = 0.9F;  // of "momentum"
  float weight_decay = 0;
};

// Parameters must outlive it.
class Optimizer {
 public:
  Optimizer(Device& device, const Parameters& parameters, const OptimizerOptions& options);

  // Gradients are multiplied by `gradient_scale` first.
  void step(float gradient_scale = 1);

 private:
  enum class Rule : std::uint8_t { none, sgd, momentum, adamw };

  static Rule rule_of(const std::string& name);
  Buffer zeros_like(const Parameter& parameter);

  Device& device_;
  const Parameters& parameters_;
  OptimizerOptions options_;
  Rule rule_;
  std::vector<Buffer> first_moments_;  // velocities of momentum
  std::vector<Buffer> second_moments_;
  std::int64_t steps_ = 0;
};

class LossScaler {
 public:
  struct Options {
    float initial_scale = 65536;
    std::int64_t clean_steps_to_double = 2000;
  };

  LossScaler(Device& device, const Parameters& parameters, const Options& options);
  LossScaler(Device& device, const Parameters& parameters) : LossScaler(device, parameters, Options{}) {}

  // What the loss's gradient is to be multiplied by.
  float scale() const { return scale_; }
  // One step of the optimizer with the scale undone, or none where a gradient is not finite: then false.
  // Waits for the device, as PyTorch does.
  bool step(Optimizer& optimizer);

 private:
  bool gradients_are_finite();

  Device& device_;
  const Parameters& parameters_;
  Options options_;
  Buffer found_;
  float scale_;
  std::int64_t clean_steps_ = 0;
};

}  // namespace lockstep::harness
