#pragma once

// The kernels of one layer: what each pass computes, moves and launches.
//
// Problem:   a layer counts elements and FLOPs of a sample; what its passes take is of a batch, in bytes, and beside its
//            own kernels weights are cast, maps put in another order and gradients added up.
// Idea:      the operators' own kernels (operator_kernels.h) and what stands beside them, each a pass over memory.
//            Products are told by shape and direction, for their time depends on it.
// Invariant: beside a product all of these are passes of their own; in a layer bound by memory they are its own bytes.
//            backward_weights is a part of backward. Modules move together what one of all of them would.
// Reference: NVIDIA, "Convolutional Layers User's Guide" (tensor layouts).

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/run/fp8_scaling.h"
#include "sim/run/gradient_sum.h"
#include "sim/run/loss_operators.h"
#include "sim/run/operator_kernels.h"
#include "sim/training/job.h"

namespace lockstep {

class LayerKernels {
 public:
  explicit LayerKernels(const Scenario& scenario);

  // Modules that a layer is, issued one after another: a mixture's experts that no one product computes.
  std::int64_t modules(const Layer& layer) const;
  // Whether a layer is a formula's operators, which a module calls one by one.
  bool is_formula(const Layer& layer) const { return operators_.is_formula(layer); }

  // `reads_same_input`: as the layer before it.
  KernelWork forward(const Layer& layer, bool reads_same_input) const;
  KernelWork backward(const Layer& layer) const;
  // Of that, the gradients of the weights, where they are a product of their own that can wait.
  std::optional<KernelWork> backward_weights(const Layer& layer) const;

  std::vector<Kernel> forward_products(const Layer& layer) const;
  std::vector<Kernel> backward_products(const Layer& layer) const;
  std::vector<Kernel> input_products(const Layer& layer) const;
  std::vector<Kernel> weights_products(const Layer& layer) const;

 private:
  std::vector<Kernel> products(const Layer& layer, KernelDirection direction) const;
  ProductShape product_of_module(const Layer& layer) const;
  KernelWork loss_by(const LossOperators& operators, const Layer& layer) const;
  MemoryPasses casting(const Layer& layer, std::int64_t elements) const;
  MemoryPasses transposing(const Layer& layer, std::int64_t products) const;
  // Elements, of its gradients.
  std::int64_t added_by_product(const Layer& layer) const;
  MemoryPasses adding_up(const Layer& layer) const;

  OperatorKernels operators_;
  Fp8Scaling scaling_;
  std::int64_t batch_;
  Precision precision_;
  std::int64_t element_bytes_;
  GradientSum sum_;
  bool casts_weights_;
  bool fuses_loss_;
  LossByOperators loss_;
  std::int64_t interleaved_heads_;  // elements of each; 0: heads are matrices of their own
  bool is_channels_last_;
  bool has_tensor_cores_;
  bool groups_experts_;
};

}  // namespace lockstep
