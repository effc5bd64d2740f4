#pragma once

// How frameworks, and the scripts that are measured most, compute on one GPU.
//
// Problem:   the same layers are other kernels in each framework: who fuses, who updates the weights, how feature maps
//            lie and who runs attention are six options of which few users know the values of their own framework.
// Idea:      a row of a table for each (compute.preset): its values and where each was read. What the scenario states
//            is read over them; left out, the preset is that of training.framework.
// Invariant: every option has a value and a note; a release that changed a default is told by its number.
// Reference: each default names the file it was read from. NVIDIA's scripts are those of DeepLearningExamples.

#include <string_view>
#include <vector>

#include "sim/load/training/framework_presets.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// What the defaults depend on beside the preset.
struct ComputeFacts {
  const TrainingSpec& training;
  Precision precision = Precision::fp32;
  bool has_convolutions = false;
  std::int64_t compute_capability = 0;  // 90 is 9.0; 0: not a CUDA device
};

// Either is what others mean by amp_fp16, and a transformer's step is another.
inline constexpr std::string_view guessed_autocast =
    "assumed: the model is cast as a whole (apex O2); true: torch.autocast, with norms and sums in fp32";

struct ComputeDefaults {
  Default<KernelStyle> kernels{KernelStyle::eager, ""};
  Default<OptimizerKernels> optimizer{OptimizerKernels::foreach, ""};
  Default<MemoryFormat> memory_format{MemoryFormat::contiguous, ""};
  Default<AttentionBackend> attention{AttentionBackend::flash_attention, ""};
  Default<bool> autocast{false, "assumed: all of the model is in half precision (apex O2, FSDP, DeepSpeed)"};
  Default<Fp8Recipe> fp8_recipe{Fp8Recipe::tensorwise, "torchao, float8/config.py: tensorwise, dynamic"};
  Default<RotaryEmbedding> rotary_embedding{RotaryEmbedding::real, "pairs of numbers"};
  Default<ModuleStyle> modules{ModuleStyle::torch, "modules without a host's work of their own"};
  Default<bool> loss_fusion{true, "the framework's own loss"};
  // Where kernels are written by hand.
  Default<bool> accumulation_fusion{false,
                                    "PyTorch, autograd/functions/accumulate_grad.h: a kernel that adds"};
  Default<bool> moe_grouped_gemm{true, "assumed: a rank's experts in one product"};
  Default<bool> moe_fusions{true, "assumed: kernels of their own"};
};

std::vector<std::string> compute_preset_names();

// Of a framework.
std::string_view usual_compute_preset(std::string_view framework);

// `preset` is one of the names.
ComputeDefaults compute_defaults(std::string_view preset, const ComputeFacts& facts);

// Kernels written by hand come with optimizers of one pass, whoever trains; others leave the optimizer alone.
Default<OptimizerKernels> usual_optimizer_kernels(KernelStyle kernels, const ComputeDefaults& defaults);

// Whether the loss is a kernel or few, not an operator after another; `modules` and `kernels` as they are stated.
Default<bool> usual_loss_fusion(const ComputeDefaults& defaults, ModuleStyle modules, KernelStyle kernels);

// Whether products add to the sum of gradients as they write; `kernels` as they are stated.
Default<bool> usual_accumulation_fusion(const ComputeDefaults& defaults, KernelStyle kernels);

}  // namespace lockstep
