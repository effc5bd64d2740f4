#pragma once

// LayerNorm over the columns of each row, BatchNorm over the rows of each column.
//
// Idea:      both subtract a mean, divide by a deviation, and scale and shift by column; they differ in what
//            they average over. Images are [batch * height * width, channels], so BatchNorm averages columns.
// Invariant: statistics and parameters are fp32; BatchNorm's running means move in forward and are never
//            read: training uses the batch's own.

#include <cstdint>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

struct NormOptions {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float gain = 1;  // that it begins with
};

// What both kinds hold: gain and shift, in this order registered and completed.
class Norm : public Leaf {
 public:
  Norm(ModuleFactory& factory, const NormOptions& options, std::int64_t statistics);

 protected:
  const Normalisation& shape() const { return shape_; }
  NormalisationGradients gradients(const Step& step) const;

  Buffer output_;
  Buffer input_gradient_;
  Tensor input_;

 private:
  Norm(ModuleFactory& factory, const NormOptions& options, std::int64_t statistics, std::uint32_t gain,
       std::uint32_t shift);

  Parameter& gain_;
  Parameter& shift_;
  Buffer mean_;
  Buffer inverse_deviation_;
  Normalisation shape_;
};

class LayerNorm : public Norm {
 public:
  LayerNorm(ModuleFactory& factory, const NormOptions& options) : Norm(factory, options, options.rows) {}

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;
};

class BatchNorm : public Norm {
 public:
  BatchNorm(ModuleFactory& factory, const NormOptions& options);

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  Tensor running_mean_;
  Tensor running_variance_;
};

}  // namespace lockstep::harness
