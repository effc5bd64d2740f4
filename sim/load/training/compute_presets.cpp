#include "sim/load/training/compute_presets.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/training/megatron.h"
#include "sim/training/strategy.h"
#include "sim/training/torch_version.h"

namespace lockstep {
namespace {

using Facts = ComputeFacts;
using Defaults = ComputeDefaults;

bool is_half(Precision precision) {
  return operand_bytes(precision) == 2;
}

bool is_float16(Precision precision) {
  return half_or_full(precision) == Precision::fp16;
}

// ---- PyTorch and what runs on it ----

Default<OptimizerKernels> torch_optimizer(const Facts& facts) {
  if (is_torch_before(facts.training, 2, 0))
    return {OptimizerKernels::for_loop, "torch.optim before 2.0: tensor by tensor"};
  return {OptimizerKernels::foreach,
          "torch/optim/optimizer.py, _default_to_fused_or_foreach: lists of tensors on CUDA since 2.0"};
}

bool is_b200(const Facts& facts) {
  return facts.compute_capability >= 100 && facts.compute_capability < 110;
}

bool takes_cudnn_first(const Facts& facts) {
  const bool is_hopper = facts.compute_capability == 90;
  return (is_hopper || is_b200(facts)) && facts.training.framework.starts_with("pytorch") &&
         !is_torch_before(facts.training, 2, 11);
}

// PyTorch takes FlashAttention first (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, order of priority), its
// second version since 2.2 (release notes), and DeepSpeed's examples take it too. The wheels of 2.11 are the first whose
// cuDNN is new enough to stand before it there (check_prefer_cudnn_attention; huggingface/transformers pull request
// 48163); torchtitan asks for that on B200.
Default<AttentionBackend> torch_attention(const Facts& facts) {
  if (is_torch_before(facts.training, 2, 2))
    return {AttentionBackend::flash_attention_1, "PyTorch before 2.2: FlashAttention's first version"};
  if (takes_cudnn_first(facts))
    return {AttentionBackend::cudnn_attention,
            "PyTorch from 2.11 on Hopper and B200, sdp_utils.cpp: cuDNN first"};
  return {AttentionBackend::flash_attention, "PyTorch, sdp_utils.cpp: FlashAttention first"};
}

// Who cuts the weights casts them as well. A whole model cast, as apex does it, is fp16.
Default<bool> torch_autocast(const Facts& facts) {
  const bool cuts_weights = strategy_named(facts.training.strategy).partition >= Partition::weights;
  if (facts.precision == Precision::amp_bf16 && !cuts_weights)
    return {true, "torch.autocast: nothing else in PyTorch mixes bfloat16 into a model that is whole"};
  if (facts.precision == Precision::amp_fp16 && !cuts_weights)
    return {false, guessed_autocast};
  return Defaults{}.autocast;
}

const Default<bool> torch_loss_fusion{false, "PyTorch, native/LossNLL.cpp: log_softmax, then nll_loss"};
const Default<bool> megatron_loss_fusion{false, "Megatron-LM, training/arguments.py: false"};

Defaults pytorch(const Facts& facts) {
  return {.kernels = {KernelStyle::eager, "PyTorch: a kernel for each operator"},
          .optimizer = torch_optimizer(facts),
          .memory_format = {MemoryFormat::contiguous, "torch.contiguous_format: NCHW"},
          .attention = torch_attention(facts),
          .autocast = torch_autocast(facts),
          .loss_fusion = torch_loss_fusion};
}

// The optimizer stays outside what is compiled. Inductor turns feature maps whatever their type, but not in networks
// whose groups hold several channels (_inductor/graph.py, decide_layout_opt), which is left to who states it.
Defaults pytorch_compile(const Facts& facts) {
  Defaults defaults = pytorch(facts);
  defaults.kernels = {KernelStyle::compiled, "torch.compile: pointwise operators and norms are fused"};
  defaults.memory_format = {MemoryFormat::channels_last,
                            "torch/_inductor/config.py: layout_optimization, since 2.1"};
  return defaults;
}

Defaults torchtitan(const Facts& facts) {
  Defaults defaults = pytorch(facts);
  if (is_b200(facts))
    defaults.attention = {AttentionBackend::cudnn_attention,
                          "torchtitan, models/attention.py: cuDNN first on compute capability 10.0"};
  defaults.optimizer = {OptimizerKernels::fused, "torchtitan, config/job_config.py: implementation fused"};
  defaults.rotary_embedding = {RotaryEmbedding::complex_numbers,
                               "torchtitan, models/llama3/model.py: apply_rotary_emb, view_as_complex"};
  return defaults;
}

Defaults deepspeed(const Facts& facts) {
  Defaults defaults = pytorch(facts);
  const Optimizer optimizer = facts.training.optimizer;
  const bool is_own =
      optimizer == Optimizer::adam || optimizer == Optimizer::adamw || optimizer == Optimizer::lamb;
  if (is_own)
    defaults.optimizer = {OptimizerKernels::fused,
                          "DeepSpeed, runtime/engine.py, _configure_basic_optimizer: FusedAdam, FusedLamb"};
  defaults.autocast = {false, "DeepSpeed, runtime/engine.py: the model is cast as a whole"};
  // It leaves it to the model to be cut, as Megatron-DeepSpeed's is.
  if (facts.training.layout.is_cut()) {
    defaults.modules = {ModuleStyle::megatron, "a model that DeepSpeed trains cut is Megatron-DeepSpeed's"};
    defaults.loss_fusion = megatron_loss_fusion;
  }
  return defaults;
}

Defaults hf_trainer(const Facts& facts) {
  constexpr Version first_fused{4, 54};
  Defaults defaults = pytorch(facts);
  const bool is_fused = facts.training.framework == "hf_trainer" &&
                        parse_version(facts.training.framework_version).value_or(Version{}) >= first_fused;
  if (is_fused)
    defaults.optimizer = {OptimizerKernels::fused,
                          "transformers, pull request 37358: adamw_torch_fused with PyTorch 2.8 (release "
                          "4.54 from memory)"};
  if (strategy_named(facts.training.strategy).partition < Partition::weights)
    defaults.autocast = {true, "transformers, trainer.py: a step runs under accelerate's autocast"};
  return defaults;
}

// Transformer Engine takes cuDNN's attention on Hopper and later, which is who runs it in Megatron-LM.
Defaults megatron(const Facts&) {
  return {.kernels = {KernelStyle::fused,
                      "Megatron-LM, arguments.py: bias-GELU, bias-dropout, masked softmax and layer norm are "
                      "fused unless refused"},
          .optimizer = {OptimizerKernels::fused,
                        "Megatron-LM, core/optimizer/__init__.py: Transformer Engine's or apex' FusedAdam"},
          .memory_format = {MemoryFormat::contiguous, "no convolutions"},
          .attention = {AttentionBackend::cudnn_attention,
                        "transformer_engine/pytorch/attention, get_attention_backend"},
          .fp8_recipe = {Fp8Recipe::delayed, "Megatron-LM, training/arguments.py: --fp8-recipe delayed"},
          .modules = {ModuleStyle::megatron_core, "Megatron Core's modules"},
          .loss_fusion = megatron_loss_fusion,
          .accumulation_fusion = {true, "Megatron-LM, training/arguments.py: fused unless refused"},
          .moe_grouped_gemm = {false, "Megatron-LM, training/arguments.py: SequentialMLP unless asked for"},
          .moe_fusions = {false, "Megatron-LM, training/arguments.py: off unless asked for"}};
}

// Mixtures are trained there with what Megatron-LM has to be asked for.
Defaults nemo(const Facts& facts) {
  Defaults defaults = megatron(facts);
  defaults.loss_fusion = {true, "NeMo, collections/llm/gpt/model/base.py: cross_entropy_loss_fusion true"};
  defaults.moe_grouped_gemm = {true, "Megatron-Bridge, providers of its mixtures: moe_grouped_gemm true"};
  defaults.moe_fusions = {
      true,
      "Megatron-Bridge, providers of its mixtures: moe_permute_fusion true; its changelog, "
      "25.09: the router's operators are fused"};
  return defaults;
}

// Convolutional networks run operator by operator with torch.optim (ConvNets: main.py, optimizers.py); BERT is
// scripted whole (run_pretraining.py, disable_jit_fusions false) and updated by FusedLAMB.
Defaults nvidia_pytorch(const Facts& facts) {
  Defaults defaults = pytorch(facts);
  if (facts.has_convolutions) {
    if (is_half(facts.precision))
      defaults.memory_format = {MemoryFormat::channels_last, "ConvNets/configs.yml: memory_format nhwc"};
    return defaults;
  }
  defaults.kernels = {KernelStyle::compiled,
                      "LanguageModeling/BERT/run_pretraining.py: scripted unless disable_jit_fusions"};
  defaults.optimizer = {OptimizerKernels::fused, "LanguageModeling/BERT/run_pretraining.py: FusedLAMB"};
  return defaults;
}

// ---- TensorFlow ----

// Grappler turns networks whose convolutions are of float16, after mixed precision was put in; bfloat16 and TF32 stay
// (generic_layout_optimizer.cc, GetNumGPUs and NumConvOnDeviceWithDataTypeOverThreshold).
Default<MemoryFormat> tensorflow_format(const Facts& facts) {
  constexpr std::string_view source = "tensorflow/core/grappler/optimizers/generic_layout_optimizer.cc";
  return {is_float16(facts.precision) ? MemoryFormat::channels_last : MemoryFormat::contiguous, source};
}

// Norms, GELU, dropout and biases are formulas there (keras' LayerNormalization takes the fused kernel of batch norm
// for an epsilon above 1.001e-5 alone).
Defaults tensorflow(const Facts& facts) {
  return {.kernels = {KernelStyle::primitives,
                      "TensorFlow, python/ops/nn_impl.py, nn_ops.py: formulas of primitives"},
          .optimizer = {OptimizerKernels::per_tensor,
                        "TensorFlow, core/kernels/training_ops.cc: a kernel for each variable's update"},
          .memory_format = tensorflow_format(facts),
          .attention = {AttentionBackend::flash_attention, "TensorFlow has none of its own: ours"},
          .loss_fusion = {false, "TensorFlow, core/kernels/sparse_xent_op.h: expressions one by one"}};
}

// XLA lays convolutions out itself: since Hopper all of them NHWC.
Defaults tensorflow_xla(const Facts& facts) {
  constexpr std::int64_t hopper = 90;
  Defaults defaults = tensorflow(facts);
  defaults.kernels = {KernelStyle::compiled, "XLA fuses formulas into loops and reductions"};
  defaults.memory_format.why = "openxla/xla, service/gpu/transforms/layout_assignment.cc";
  if (facts.compute_capability >= hopper || is_half(facts.precision))
    defaults.memory_format.value = MemoryFormat::channels_last;
  return defaults;
}

// BERT's launch scripts ask for XLA (run_pretraining_lamb_phase1.sh), those of ResNet-50 do not.
Defaults nvidia_tensorflow(const Facts& facts) {
  return facts.has_convolutions ? tensorflow(facts) : tensorflow_xla(facts);
}

// ---- others ----

// SGD takes four weights a call (MXNET_OPTIMIZER_AGGREGATION_SIZE), nearer to one than to lists.
Defaults mxnet(const Facts&) {
  return {.kernels = {KernelStyle::eager, "MXNet: a kernel for each operator"},
          .optimizer = {OptimizerKernels::per_tensor,
                        "MXNet, python/mxnet/optimizer: adam_update, sgd_mom_update"},
          .memory_format = {MemoryFormat::contiguous, "MXNet, gluon/nn/conv_layers.py: NCHW"},
          .attention = {AttentionBackend::flash_attention, "MXNet has none of its own: ours"},
          .loss_fusion = {false, "MXNet, gluon/loss.py: log_softmax, then pick"}};
}

Defaults nvidia_mxnet(const Facts& facts) {
  Defaults defaults = mxnet(facts);
  defaults.optimizer = {OptimizerKernels::fused, "RN50v1.5/runner: MXNET_OPTIMIZER_AGGREGATION_SIZE 60"};
  if (!is_half(facts.precision))
    return defaults;
  defaults.kernels = {KernelStyle::fused, "RN50v1.5/runner: fuse-bn-relu and fuse-bn-add-relu in fp16"};
  defaults.memory_format = {MemoryFormat::channels_last, "RN50v1.5/runner: NHWC in fp16"};
  return defaults;
}

// PaddlePaddle turns feature maps only where asked (set_config: layout autotune), OneFlow by ONEFLOW_ENABLE_NHWC.
Defaults kernel_a_tensor(std::string_view framework_optimizer) {
  return {.kernels = {KernelStyle::eager, "a kernel for each operator (from memory)"},
          .optimizer = {OptimizerKernels::per_tensor, framework_optimizer},
          .memory_format = {MemoryFormat::contiguous, "NCHW unless asked"},
          .attention = {AttentionBackend::flash_attention, "none of its own: ours"}};
}

Defaults paddle(const Facts&) {
  return kernel_a_tensor("PaddlePaddle, python/paddle/optimizer/adamw.py: adamw_ for each tensor");
}

Defaults oneflow(const Facts&) {
  return kernel_a_tensor("OneFlow, nn/optimizer/adamw.py: adam_update for each tensor");
}

Defaults mindspore(const Facts& facts) {
  Defaults defaults = kernel_a_tensor("MindSpore: an operator for each parameter (from memory)");
  if (is_float16(facts.precision))
    defaults.memory_format = {MemoryFormat::channels_last,
                              "MindSpore, gpu/hal/device/kernel_info_setter.cc: float16 in graphs"};
  return defaults;
}

struct ComputePreset {
  std::string_view name;
  Defaults (*defaults)(const Facts& facts);
};

constexpr std::array compute_presets{ComputePreset{"pytorch", pytorch},
                                     ComputePreset{"pytorch_compile", pytorch_compile},
                                     ComputePreset{"torchtitan", torchtitan},
                                     ComputePreset{"deepspeed", deepspeed},
                                     ComputePreset{"hf_trainer", hf_trainer},
                                     ComputePreset{"megatron", megatron},
                                     ComputePreset{"nemo", nemo},
                                     ComputePreset{"nvidia_pytorch", nvidia_pytorch},
                                     ComputePreset{"nvidia_tensorflow", nvidia_tensorflow},
                                     ComputePreset{"nvidia_mxnet", nvidia_mxnet},
                                     ComputePreset{"tensorflow", tensorflow},
                                     ComputePreset{"tensorflow_xla", tensorflow_xla},
                                     ComputePreset{"mxnet", mxnet},
                                     ComputePreset{"paddle", paddle},
                                     ComputePreset{"oneflow", oneflow},
                                     ComputePreset{"mindspore", mindspore}};

const ComputePreset* find_compute_preset(std::string_view name) {
  const auto* found = std::find_if(compute_presets.begin(), compute_presets.end(),
                                   [&](const ComputePreset& preset) { return preset.name == name; });
  return found == compute_presets.end() ? nullptr : found;
}

}  // namespace

std::vector<std::string> compute_preset_names() {
  std::vector<std::string> names;
  for (const ComputePreset& preset : compute_presets) names.emplace_back(preset.name);
  return names;
}

// Horovod, BytePS and ColossalAI hold PyTorch's modules here.
std::string_view usual_compute_preset(std::string_view framework) {
  if (framework.starts_with("tensorflow"))
    return "tensorflow";
  const ComputePreset* own = find_compute_preset(framework);
  return own == nullptr ? "pytorch" : own->name;
}

ComputeDefaults compute_defaults(std::string_view preset, const ComputeFacts& facts) {
  const ComputePreset* found = find_compute_preset(preset);
  LOCKSTEP_CHECK(found != nullptr, "a preset of computing was read by its name");
  return found->defaults(facts);
}

Default<OptimizerKernels> usual_optimizer_kernels(KernelStyle kernels, const ComputeDefaults& defaults) {
  if (kernels == KernelStyle::fused && defaults.kernels.value != KernelStyle::fused)
    return {OptimizerKernels::fused, "kernels written by hand: optimizers of one pass"};
  return defaults.optimizer;
}

Default<bool> usual_accumulation_fusion(const ComputeDefaults& defaults, KernelStyle kernels) {
  return kernels == KernelStyle::fused ? defaults.accumulation_fusion : ComputeDefaults{}.accumulation_fusion;
}

Default<bool> usual_loss_fusion(const ComputeDefaults& defaults, ModuleStyle modules, KernelStyle kernels) {
  const bool is_torch = modules == ModuleStyle::torch;
  if (is_torch && !runs_operators(kernels))
    return {true, "a loss that a compiler fuses, or who writes kernels by hand"};
  if (is_torch == (defaults.modules.value == ModuleStyle::torch))
    return defaults.loss_fusion;
  return is_torch ? torch_loss_fusion : megatron_loss_fusion;
}

}  // namespace lockstep
