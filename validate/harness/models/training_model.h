#pragma once

// A network that can be trained: its parameters, its loss, and a task to train it on.
//
// Problem:   the harness times real training; what it trains must be what the simulator calls by that name.
// Idea:      mlp, gpt and resnet50, by their sizes. Parameters have PyTorch's names and registration order,
//            the same as the simulator's model (a test compares them). Samples are a function of their number
//            in the whole data set, so that any split of a batch over ranks trains on the same batch.
// Invariant: equal specs and seeds give equal parameters on every rank.

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "validate/harness/layers/module.h"

namespace lockstep::harness {

struct ModelSpec {
  std::string name = "mlp";                        // mlp, gpt, resnet50
  std::map<std::string, std::int64_t> sizes = {};  // what differs from the model's own defaults
  std::int64_t batch = 0;                          // samples of a micro-batch; 0: the model's default
  Type activations = Type::fp32;
  std::uint64_t seed = 0;
};

class TrainingModel {
 public:
  virtual ~TrainingModel() = default;

  // Forward and loss of the samples [first_sample, first_sample + batch); backward of the same. The loss is
  // the mean over the batch and is read with `loss()`.
  virtual void load_batch(std::int64_t first_sample) = 0;  // to the device; not part of a step's time
  virtual void forward(Step& step) = 0;
  virtual void backward(Step& step) = 0;
  virtual double loss() = 0;  // of the last forward; waits for the device
  // Mixed precision: the half copies of the parameters, made again after each optimizer step.
  virtual void refresh_copies(Step& step) = 0;

  virtual const ModelSpec& spec() const = 0;  // with all sizes and the batch filled in
  virtual const std::vector<std::unique_ptr<Parameter>>& parameters() const = 0;
  virtual const std::vector<LayerRecord>& layers() const = 0;
  virtual const std::vector<Tensor>& buffers() const = 0;
  // As the simulator knows it: {"family": "transformer", ...}; null where it has no such model (mlp).
  virtual nlohmann::ordered_json simulated_as() const = 0;
  virtual double forward_flops() const = 0;  // of a micro-batch's matrix products
};

// Throws ConfigError for an unknown model or size, naming what is valid.
std::unique_ptr<TrainingModel> make_model(Device& device, const ModelSpec& spec);

}  // namespace lockstep::harness
