#pragma once

// The TrainingModel of any ModelKind.
//
// Idea:      what a kind builds is run as modules, then the loss. A batch is made on the host, uploaded as
//            fp32 or tokens and, in mixed precision, turned into half on the device.
// Cost:      all device memory is allocated here, none in a step.

#include "validate/harness/models/model_kind.h"

namespace lockstep::harness {

class NetworkModel : public TrainingModel {
 public:
  // `spec` is complete.
  NetworkModel(Device& device, const ModelKind& kind, ModelSpec spec);

  void load_batch(std::int64_t first_sample) override;
  void forward(Step& step) override;
  void backward(Step& step) override;
  double loss() override;
  void refresh_copies(Step& step) override;

  const ModelSpec& spec() const override { return spec_; }
  const std::vector<std::unique_ptr<Parameter>>& parameters() const override { return parameters_; }
  const std::vector<LayerRecord>& layers() const override { return layers_; }
  const std::vector<Tensor>& buffers() const override { return buffers_; }
  nlohmann::ordered_json simulated_as() const override { return simulated_as_; }
  double forward_flops() const override { return forward_flops_; }

 private:
  NetworkModel(Device& device, const ModelKind& kind, ModelSpec spec, ModuleFactory factory);
  void write_samples(std::int64_t first_sample);

  Device& device_;
  ModelSpec spec_;
  Network network_;
  std::vector<Buffer> memory_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<LayerRecord> layers_;
  std::vector<Tensor> buffers_;
  nlohmann::ordered_json simulated_as_;
  double forward_flops_;

  // Of a batch; one of the two kinds of inputs is empty.
  std::vector<float> host_numbers_;
  std::vector<std::int32_t> host_tokens_;
  std::vector<std::int32_t> host_targets_;
  Buffer uploaded_;  // inputs as they come
  Buffer inputs_;    // in half, in mixed precision; else empty
  Buffer targets_;
};

}  // namespace lockstep::harness
