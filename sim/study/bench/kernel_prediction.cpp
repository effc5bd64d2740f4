#include "sim/study/bench/kernel_prediction.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/base/check.h"
#include "sim/compute/kernel_time.h"
#include "sim/load/load.h"
#include "sim/load/reading/spelling.h"
#include "sim/report/prediction.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Passes over the operator's tensor and kernels, each way; a backward of nothing launches nothing.
struct MemoryBoundCost {
  std::string_view op;
  std::int64_t forward_passes;
  std::int64_t backward_passes;
  std::int64_t forward_kernels;
  std::int64_t backward_kernels;
};

// As models/ counts them; an optimizer's passes are those of its fp32 numbers (scenario/describe_job.cpp).
constexpr std::array costs{MemoryBoundCost{"copy", 2, 2, 1, 1},
                           MemoryBoundCost{"contiguous", 2, 2, 1, 1},
                           MemoryBoundCost{"cast", 2, 2, 1, 1},
                           MemoryBoundCost{"add", 3, 0, 1, 0},
                           MemoryBoundCost{"sub", 3, 0, 1, 0},
                           MemoryBoundCost{"addu", 2, 0, 1, 0},
                           MemoryBoundCost{"add_bias", 2, 0, 1, 0},
                           MemoryBoundCost{"sum_columns", 1, 0, 1, 0},
                           MemoryBoundCost{"mul", 3, 5, 1, 2},
                           MemoryBoundCost{"truediv", 2, 2, 1, 1},
                           MemoryBoundCost{"pow", 2, 3, 1, 1},
                           MemoryBoundCost{"tanh", 2, 3, 1, 1},
                           MemoryBoundCost{"relu", 2, 3, 1, 1},
                           MemoryBoundCost{"gelu", 2, 3, 1, 1},
                           MemoryBoundCost{"silu", 2, 3, 1, 1},
                           MemoryBoundCost{"activation_fn", 2, 3, 1, 1},
                           MemoryBoundCost{"masked_fill", 2, 2, 1, 1},
                           MemoryBoundCost{"where", 2, 2, 1, 1},
                           MemoryBoundCost{"softmax", 2, 3, 1, 2},
                           MemoryBoundCost{"causal_softmax", 2, 3, 1, 1},
                           MemoryBoundCost{"cross_entropy", 2, 2, 2, 2},
                           MemoryBoundCost{"dropout", 2, 2, 1, 1},
                           MemoryBoundCost{"attn_dropout", 2, 2, 1, 1},
                           MemoryBoundCost{"resid_dropout", 2, 2, 1, 1},
                           MemoryBoundCost{"drop", 2, 2, 1, 1},
                           MemoryBoundCost{"embedding", 2, 2, 1, 2},
                           MemoryBoundCost{"batch_norm", 3, 5, 2, 2},
                           MemoryBoundCost{"ln", 2, 5, 1, 2},
                           MemoryBoundCost{"ln_1", 2, 5, 1, 2},
                           MemoryBoundCost{"ln_2", 2, 5, 1, 2},
                           MemoryBoundCost{"ln_f", 2, 5, 1, 2},
                           MemoryBoundCost{"layernorm", 2, 5, 1, 2},
                           MemoryBoundCost{"layer_norm", 2, 5, 1, 2},
                           MemoryBoundCost{"self_attn_layer_norm", 2, 5, 1, 2},
                           MemoryBoundCost{"final_layer_norm", 2, 5, 1, 2},
                           MemoryBoundCost{"rms_norm", 2, 5, 1, 2},
                           MemoryBoundCost{"sgd", 3, 0, 1, 0},
                           MemoryBoundCost{"momentum", 5, 0, 1, 0},
                           MemoryBoundCost{"adam", 7, 0, 1, 0},
                           MemoryBoundCost{"adamw", 7, 0, 1, 0}};

bool goes_back(KernelDirection direction) {
  return direction != KernelDirection::forward;
}

// A backward that is not parted into that of the data and of the weights is both.
std::int64_t products_of(KernelDirection direction) {
  return direction == KernelDirection::backward ? 2 : 1;
}

KernelWork product_work(const KernelCase& kernel, std::int64_t flops, std::int64_t elements) {
  const std::int64_t products = products_of(kernel.direction);
  return {.work_class = WorkClass::matmul,
          .flops = flops * products,
          .bytes = elements * kernel.element_bytes * products,
          .launches = products};
}

std::optional<KernelWork> work_of_shape(const KernelCase& kernel, const GemmShape& shape) {
  const std::int64_t flops = 2 * shape.batch * shape.m * shape.n * shape.k;
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  return product_work(kernel, flops, shape.batch * elements);
}

std::optional<KernelWork> work_of_shape(const KernelCase& kernel, const ConvolutionShape& shape) {
  const std::int64_t outputs = shape.batch * shape.out_channels * shape.out_height() * shape.out_width();
  const std::int64_t fan_in = shape.in_channels * shape.filter_height * shape.filter_width;
  const std::int64_t inputs = shape.batch * shape.in_channels * shape.height * shape.width;
  return product_work(kernel, 2 * outputs * fan_in, inputs + shape.out_channels * fan_in + outputs);
}

std::optional<KernelWork> work_of_shape(const KernelCase& kernel, const AttentionShape& shape) {
  const std::int64_t positions = shape.batch * shape.sequence;
  const std::int64_t square = positions * shape.sequence * shape.heads;
  const std::int64_t widths = shape.query_width + shape.value_width;
  const std::int64_t elements = positions * (shape.heads + shape.kv_heads) * widths;
  const bool is_back = goes_back(kernel.direction);
  // Forward multiplies queries by keys and weights by values; backward five times, once of them again.
  const std::int64_t flops = 2 * square * widths;
  return KernelWork{.work_class = WorkClass::matmul,
                    .flops = is_back ? flops / 2 * 5 : flops,
                    .bytes = (is_back ? 2 : 1) * elements * kernel.element_bytes,
                    .launches = is_back ? 3 : 1};
}

// As models/ count them, but that the tables' PyTorch reads a softmax's rows again where they are too long for a warp.
// It multiplies the gradient by the weights in a kernel before the backward one; the harness's own causal_softmax is one
// kernel each way, which reads its rows again.
std::int64_t eager_passes(const MemoryBoundShape& shape, bool is_back) {
  const std::string_view op = shape.op;
  const bool is_norm = op.starts_with("ln") || op.ends_with("norm") || op == "layernorm";
  if (is_norm && op != "batch_norm")
    return is_back ? 3 : 1;
  if (op == "softmax")
    return is_back ? 3 : (shape.width > 1'024 ? 1 : 0);
  return op == "causal_softmax" ? 1 : 0;
}

std::optional<KernelWork> work_of_shape(const KernelCase& kernel, const MemoryBoundShape& shape) {
  const auto found = std::find_if(costs.begin(), costs.end(),
                                  [&](const MemoryBoundCost& cost) { return cost.op == shape.op; });
  const bool is_back = goes_back(kernel.direction);
  std::int64_t passes = found == costs.end() ? 0 : (is_back ? found->backward_passes : found->forward_passes);
  if (passes > 0 && !shape.is_fused)
    passes += eager_passes(shape, is_back);
  if (passes == 0)
    return std::nullopt;
  return KernelWork{.work_class = WorkClass::vector,
                    .bytes = passes * shape.elements * kernel.element_bytes,
                    .launches = is_back ? found->backward_kernels : found->forward_kernels};
}

std::optional<KernelWork> work_of_shape(const KernelCase&, const StepShape&) {
  return std::nullopt;
}

// The pass of a linear layer that multiplies so.
Kernel pass_with_product(const GemmShape& product, KernelDirection pass) {
  GemmShape layer = product;
  if (pass == KernelDirection::by_data)
    std::swap(layer.n, layer.k);
  if (pass == KernelDirection::by_weights)
    std::swap(layer.m, layer.k);
  return {.shape = layer, .direction = pass};
}

// The mean of some fifty kernels that a benchmark runs one after another: until the limiter has seen some fifty
// milliseconds of them the clock is that of boost.
Duration in_a_row(Duration boost, Duration held) {
  constexpr Duration unlimited = Duration::milliseconds(1);
  const Duration late = std::max(boost - unlimited, Duration::zero());
  return std::min(boost, unlimited) + scaled(held, late.picoseconds(), boost.picoseconds());
}

Json lone_gpu(const Json& gpu) {
  Json machine{{"name", "one_gpu"}, {"source", "alone"}, {"gpu", gpu}, {"gpus", 1}, {"library", "nccl"}};
  machine["gpu_links"]["kind"] = "none";
  return machine;
}

Json step_scenario(const Json& gpu, const Json& model) {
  Json scenario{{"name", "step"}, {"model", model}};
  scenario["cluster"]["machine"] = lone_gpu(gpu);
  scenario["training"]["strategy"] = one_gpu_strategy();
  return scenario;
}

}  // namespace

std::optional<KernelWork> work_of(const KernelCase& kernel) {
  return std::visit([&](const auto& shape) { return work_of_shape(kernel, shape); }, kernel.shape);
}

std::optional<Kernel> product_of(const KernelCase& kernel) {
  return std::visit(
      [&]<class Shape>(const Shape& shape) -> std::optional<Kernel> {
        if constexpr (std::is_same_v<Shape, GemmShape>)
          if (kernel.direction == KernelDirection::forward)
            return pass_with_product(shape, kernel.operands);
        if constexpr (std::is_constructible_v<ProductShape, Shape>)
          return Kernel{.shape = shape, .direction = kernel.direction};
        else
          return std::nullopt;
      },
      kernel.shape);
}

namespace {

std::optional<Duration> predict_known(const GpuSpec& gpu, const KernelCase& kernel) {
  const auto timed_at = [&](Clock clock, const Kernel& product) {
    return product_time(gpu, {kernel.multiplied, kernel.element_bytes, clock, !kernel.is_cold}, product);
  };
  if (const auto product = product_of(kernel); product && gpu.kernels)
    return in_a_row(timed_at(Clock::boost, *product), timed_at(Clock::held, *product));
  const std::optional<KernelWork> work = work_of(kernel);
  if (!work)
    return std::nullopt;
  const Pricing pricing{.gpu = gpu, .precision = kernel.multiplied, .copy = {}};
  return kernel_time(pricing, *work);
}

bool tells_servers_apart(const GpuSpec& gpu) {
  return gpu.kernels && gpu.kernels->server_attention != gpu.kernels->attention;
}

}  // namespace

std::optional<Duration> predict_kernel(const GpuSpec& gpu, const KernelCase& kernel) {
  const std::optional<Duration> predicted = predict_known(gpu, kernel);
  const auto* attention = std::get_if<AttentionShape>(&kernel.shape);
  if (attention == nullptr || !kernel.has_unknown_library || !predicted || !tells_servers_apart(gpu))
    return predicted;
  KernelCase other = kernel;
  std::get<AttentionShape>(other.shape).library = AttentionLibrary::tensorrt_llm;
  other.has_unknown_library = false;
  return scaled(*predicted + *predict_known(gpu, other), 1, 2);
}

std::optional<Duration> predict_step(const Json& gpu, const KernelCase& step, const ProfileStore& store) {
  const auto& shape = std::get<StepShape>(step.shape);
  const auto profile = store.open(ProfileKind::model, shape.model);
  if (!profile)
    return std::nullopt;
  Json model{{"name", shape.model},
             {"batch_per_gpu", shape.batch},
             {"precision", name_of(step.multiplied, precision_spellings)}};
  if (shape.is_of_pytorch_1 && profile->value->value("family", "") == "vision_transformer")
    model["attention"] = "unfused";
  Json given = step_scenario(gpu, model);
  given["compute"]["memory_format"] =
      name_of(shape.is_channels_last ? MemoryFormat::channels_last : MemoryFormat::contiguous,
              memory_format_spellings);
  // Tables of steps are PyTorch's.
  given["compute"]["autocast"] = is_mixed(step.multiplied);
  const LoadedScenario scenario = load_value(given, {.store = store});
  return predict(scenario, {.with_band = false}).report.iteration;
}

GpuSpec load_gpu(const Json& gpu, const ProfileStore& store) {
  const Json layer{{"parameters", Json::array({1})}, {"forward_time", "1 us"}, {"backward_time", "1 us"}};
  Json model;
  model["layers"] = Json::array({layer});
  return load_value(step_scenario(gpu, model), {.store = store}).cluster.gpu;
}

}  // namespace lockstep
