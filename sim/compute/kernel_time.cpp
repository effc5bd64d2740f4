#include "sim/compute/kernel_time.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/compute/alignment.h"
#include "sim/compute/attention_time.h"
#include "sim/compute/convolution_time.h"
#include "sim/compute/product_time.h"

namespace lockstep {
namespace {

// With no curve for a processor: what large GEMMs reach on those that were measured (A100 87 %, H100 80 %, B200
// 78 %: stas00/ml-engineering), less what small ones lose.
constexpr Ratio unmeasured_efficiency = Ratio::percent(70);

// 1024 * log2(value), linear between powers of two: exact enough to interpolate by, and an integer.
std::int64_t binary_logarithm(std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1));
  const int whole = static_cast<int>(std::bit_width(magnitude)) - 1;
  const std::uint64_t rest =
      whole >= 10 ? (magnitude >> (whole - 10)) - 1024 : (magnitude << (10 - whole)) - 1024;
  return std::int64_t{whole} * 1024 + static_cast<std::int64_t>(rest);
}

Ratio interpolated(const EfficiencyPoint& low, const EfficiencyPoint& high, Flops flops) {
  const std::int64_t from = binary_logarithm(low.flops.count());
  const std::int64_t to = binary_logarithm(high.flops.count());
  const std::int64_t at = binary_logarithm(flops.count());
  const std::int64_t rise = (high.efficiency - low.efficiency).parts_per_million();
  return low.efficiency + Ratio::parts_per_million(rise * (at - from) / (to - from));
}

Duration copy_time(const Pricing& pricing, const KernelWork& work) {
  const Duration launching = pricing.copy.per_tensor * work.launches;
  return launching + time_to_move(Bytes{work.bytes}, pricing.copy.bandwidth);
}

WorkTime longer_part(Duration computing, Duration moving, Duration launch) {
  return computing > moving ? WorkTime{.matrix = computing, .memory = {}, .launch = launch}
                            : WorkTime{.matrix = {}, .memory = moving, .launch = launch};
}

// By the curve of a processor whose kernels nobody timed one by one.
WorkTime roofline_time(const Pricing& pricing, const KernelWork& work) {
  Duration computing;
  if (work.flops > 0) {
    const Flops each{work.flops / std::max<std::int64_t>(work.launches, 1)};
    const Ratio efficiency = matmul_efficiency(pricing.gpu, pricing.precision, each);
    computing = time_to_compute(Flops{work.flops},
                                scaled_in_millions(matmul_peak(pricing.gpu, pricing.precision), efficiency));
  }
  const Duration moving = time_to_move(Bytes{work.bytes}, achieved_memory_bandwidth(pricing.gpu));
  const Duration shortest = pricing.gpu.kernel_launch * work.launches;
  return longer_part(computing, moving, std::max(shortest - std::max(computing, moving), Duration::zero()));
}

// The product of two square matrices that has at least so many FLOPs: of work whose shape nobody states.
GemmShape square_product(std::int64_t flops) {
  std::int64_t side = 1;
  for (std::int64_t step = std::int64_t{1} << 20U; step > 0; step /= 2)
    if (const std::int64_t tried = side + step; tried <= flops / 2 / tried / tried)
      side = tried;
  return {.m = side, .n = side, .k = divided_up(flops / 2, side * side)};
}

WorkTime pass_time(const GpuSpec& gpu, std::int64_t bytes, std::int64_t launches) {
  return {.matrix = {},
          .memory = time_to_move(Bytes{bytes}, achieved_memory_bandwidth(gpu)),
          .launch = gpu.kernels->memory.start * launches};
}

WorkTime shapeless_time(const Pricing& pricing, const KernelWork& work) {
  const WorkTime moving = pass_time(pricing.gpu, work.bytes, work.launches);
  if (work.flops == 0)
    return moving;
  const std::int64_t products = std::max<std::int64_t>(work.launches, 1);
  const Kernel each{.shape = square_product(work.flops / products)};
  Operands operands = Operands::of(pricing.precision);
  operands.are_padded = true;  // nobody states its sides
  const RunTime run = product_run(pricing.gpu, operands, {&each, 1});
  return moving.total() > run.whole * products ? moving
                                               : WorkTime{.matrix = (run.whole - run.starts) * products,
                                                          .memory = {},
                                                          .launch = run.starts * products};
}

// Multiplied at a part of the unit's rate: as if it were deeper, of the same operands.
Duration time_at_part(const ProductUnit& unit, GemmShape shape, Ratio aligned, Ratio across = Ratio::one()) {
  const std::int64_t elements = shape.batch * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  shape.k = divided_up(divided_up(shape.k, across), aligned);
  return product_time(unit, shape, elements);
}

// Forward, rows of the input meet rows of the weights: both lie along the depth. By data the weights lie across it,
// by weights both operands do.
Ratio part_across(const ProductUnit& unit) {
  const bool is_wide = unit.has_tensor_cores && unit.element_bytes == 4;
  return is_wide ? unit.constants.across_wide : unit.constants.across;
}

Duration time_of_shape(const ProductUnit& unit, const GpuSpec&, const GemmShape& shape,
                       KernelDirection direction) {
  const Ratio aligned = aligned_part(unit, shape, direction);
  switch (direction) {
    case KernelDirection::by_data:
      return time_at_part(unit, {.batch = shape.batch, .m = shape.m, .n = shape.k, .k = shape.n}, aligned,
                          part_across(unit));
    case KernelDirection::by_weights:
      return time_at_part(unit, {.batch = shape.batch, .m = shape.k, .n = shape.n, .k = shape.m}, aligned,
                          part_across(unit));
    case KernelDirection::forward:
    case KernelDirection::backward:
    case KernelDirection::step:
      break;
  }
  return time_at_part(unit, shape, aligned);
}

Duration time_of_shape(const ProductUnit& unit, const GpuSpec& gpu, const ConvolutionShape& shape,
                       KernelDirection direction) {
  const KernelConstants& constants = *gpu.kernels;
  return convolution_time(unit,
                          unit.has_tensor_cores ? constants.tensor_convolution : constants.vector_convolution,
                          shape, direction);
}

// What libraries reach of tensor cores says nothing of the vector lanes beside them, where none was timed.
const AttentionConstants& constants_of(const GpuSpec& gpu, bool has_tensor_cores,
                                       const AttentionShape& shape) {
  static const AttentionConstants unmeasured;
  if (!has_tensor_cores && uses_tensor_cores(gpu, Precision::fp16))
    return unmeasured;
  const KernelConstants& constants = *gpu.kernels;
  switch (shape.library) {
    case AttentionLibrary::flash_attention_2:
      return constants.flash_attention_2;
    case AttentionLibrary::tensorrt_llm:
      return constants.server_attention;
    case AttentionLibrary::flash_attention:
      break;
  }
  return constants.attention;
}

Duration time_of_shape(const ProductUnit& unit, const GpuSpec& gpu, const AttentionShape& shape,
                       KernelDirection direction) {
  return attention_time(unit, constants_of(gpu, unit.has_tensor_cores, shape), shape,
                        direction != KernelDirection::forward);
}

bool is_attention(const ProductShape& shape) {
  return std::holds_alternative<AttentionShape>(shape);
}

std::int64_t flops_of(const GemmShape& shape, KernelDirection) {
  return 2 * shape.batch * shape.m * shape.n * shape.k;
}

std::int64_t flops_of(const ConvolutionShape& shape, KernelDirection) {
  const std::int64_t taps = shape.in_channels / shape.groups * shape.filter_height * shape.filter_width;
  return 2 * shape.batch * shape.out_height() * shape.out_width() * shape.out_channels * taps;
}

// Forward multiplies twice, backward five times; of what is causal half.
std::int64_t flops_of(const AttentionShape& shape, KernelDirection direction) {
  const std::int64_t pairs = shape.batch * shape.heads * shape.sequence * shape.keys_of_query();
  const std::int64_t both = 2 * pairs * (shape.query_width + shape.value_width) / (shape.is_causal ? 2 : 1);
  return direction == KernelDirection::forward ? both : both / 2 * 5;
}

// What is left for its units; of a board whose limit is below what it draws in standby a tenth.
Milliwatts left_by_standby(const GpuSpec& gpu) {
  const std::int64_t standby = gpu.kernels->memory.standby.count * gpu.sms;
  return {std::max(gpu.tdp_milliwatts - standby, gpu.tdp_milliwatts / 10)};
}

// Tensor cores draw as much whatever they multiply, and make fewer FLOPs of wider numbers.
PowerLimit tensor_limit(const GpuSpec& gpu, Precision precision, Milliwatts draw_of_half) {
  const FlopRate half = std::max(matmul_peak(gpu, Precision::fp16), matmul_peak(gpu, Precision::bf16));
  return {.board = left_by_standby(gpu),
          .draw = {arithmetic::product_divided_up(draw_of_half.count, half.count(),
                                                  matmul_peak(gpu, precision).count())}};
}

PowerLimit limit_of(const GpuSpec& gpu, Precision precision, const ProductShape& shape) {
  const auto* attention = std::get_if<AttentionShape>(&shape);
  return attention != nullptr && uses_tensor_cores(gpu, precision)
             ? tensor_limit(gpu, precision, constants_of(gpu, true, *attention).draw)
             : power_limit(gpu, precision);
}

// Matrices that vector loads cannot begin at are left to the lanes, which add up in fp32.
Operands as_multiplied(Operands operands, const Kernel& kernel) {
  constexpr std::int64_t vector_load = 16;
  if (!operands.are_padded && kernel.interleaved_by * operands.bytes % vector_load != 0)
    operands.precision = Precision::fp32;
  return operands;
}

// Of what a kernel takes, that depends on nothing it does.
Duration start_of(const GpuSpec& gpu, const Operands& operands, const Kernel& kernel) {
  const KernelConstants& constants = *gpu.kernels;
  const bool has_tensor_cores = uses_tensor_cores(gpu, operands.precision);
  if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape))
    return constants_of(gpu, has_tensor_cores, *attention).start;
  const Duration start = has_tensor_cores ? constants.tensor.start : constants.vector.start;
  return kernel.direction == KernelDirection::backward ? start * 2 : start;
}

}  // namespace

FlopRate matmul_peak(const GpuSpec& gpu, Precision precision) {
  const auto found = gpu.peak.find(multiplied_as(precision));
  return found == gpu.peak.end() ? gpu.vector_peak : found->second;
}

Bandwidth achieved_memory_bandwidth(const GpuSpec& gpu) {
  return scaled_in_millions(gpu.memory_bandwidth,
                            gpu.kernels ? gpu.kernels->memory.efficiency : gpu.memory_efficiency);
}

Ratio matmul_efficiency(const GpuSpec& gpu, Precision precision, Flops flops) {
  const auto found = gpu.matmul_efficiency.find(multiplied_as(precision));
  if (found == gpu.matmul_efficiency.end() || found->second.empty())
    return unmeasured_efficiency;
  const std::vector<EfficiencyPoint>& curve = found->second;
  const auto above = std::find_if(curve.begin(), curve.end(),
                                  [&](const EfficiencyPoint& point) { return point.flops > flops; });
  if (above == curve.begin())
    return curve.front().efficiency;
  if (above == curve.end())
    return curve.back().efficiency;
  return interpolated(*std::prev(above), *above, flops);
}

Duration product_time(const GpuSpec& gpu, const Operands& given, const Kernel& kernel) {
  LOCKSTEP_CHECK(gpu.kernels.has_value(), "a shape is priced by the constants of an architecture");
  const Operands operands = as_multiplied(given, kernel);
  if (kernel.direction == KernelDirection::backward && !is_attention(kernel.shape))
    return product_time(gpu, operands, {kernel.shape, KernelDirection::by_data, kernel.interleaved_by}) +
           product_time(gpu, operands, {kernel.shape, KernelDirection::by_weights, kernel.interleaved_by});
  const bool has_tensor_cores = uses_tensor_cores(gpu, operands.precision);
  const bool loses_alignment = has_tensor_cores && !operands.are_padded;
  const ProductUnit unit{.peak = matmul_peak(gpu, operands.precision),
                         .sms = gpu.sms,
                         .memory = gpu.memory_bandwidth,
                         .element_bytes = operands.bytes,
                         .has_tensor_cores = has_tensor_cores,
                         .constants = has_tensor_cores ? gpu.kernels->tensor : gpu.kernels->vector,
                         .lanes = gpu.vector_peak,
                         .alignment = loses_alignment ? gpu.kernels->alignment : AlignmentConstants{},
                         .cache = operands.stay_cached ? gpu.l2 : Bytes{}};
  const Duration boost = std::visit(
      [&](const auto& shape) { return time_of_shape(unit, gpu, shape, kernel.direction); }, kernel.shape);
  if (operands.clock == Clock::boost)
    return boost;
  const Flops flops{
      std::visit([&](const auto& shape) { return flops_of(shape, kernel.direction); }, kernel.shape)};
  const Duration start = start_of(gpu, operands, kernel);
  return start + within_limit(boost - start, flops, limit_of(gpu, operands.precision, kernel.shape));
}

PowerLimit power_limit(const GpuSpec& gpu, Precision precision) {
  if (!gpu.kernels)
    return {};
  if (!uses_tensor_cores(gpu, precision))
    return {.board = left_by_standby(gpu), .draw = gpu.kernels->vector.draw};
  return tensor_limit(gpu, precision, gpu.kernels->tensor.draw);
}

bool uses_tensor_cores(const GpuSpec& gpu, Precision precision) {
  constexpr std::int64_t volta = 70;
  const bool has_them = gpu.compute_capability == 0 || gpu.compute_capability >= volta;
  return has_them && multiplied_as(precision) != Precision::fp32;
}

Duration host_kernel_time(Bandwidth memory, const KernelWork& work) {
  return work.work_class == WorkClass::fixed ? work.duration : time_to_move(Bytes{work.bytes}, memory);
}

RunTime product_run(const GpuSpec& gpu, const Operands& operands, std::span<const Kernel> kernels) {
  RunTime run;
  for (const Kernel& kernel : kernels) {
    run.whole += product_time(gpu, operands, kernel);
    run.starts += start_of(gpu, as_multiplied(operands, kernel), kernel);
  }
  return run;
}

WorkTime work_time(const Pricing& pricing, const KernelWork& work) {
  if (work.work_class == WorkClass::fixed)
    return {.matrix = work.duration, .memory = {}, .launch = {}};
  if (work.work_class == WorkClass::copy)
    return {.matrix = {}, .memory = copy_time(pricing, work), .launch = {}};
  if (!pricing.gpu.kernels)
    return roofline_time(pricing, work);
  if (work.products == no_products)
    return shapeless_time(pricing, work);
  const RunTime& run = pricing.of_products[work.products];
  WorkTime time = pass_time(pricing.gpu, work.pass_bytes, work.passes);
  time.matrix = run.whole - run.starts;
  time.launch += run.starts;
  return time;
}

Duration kernel_time(const Pricing& pricing, const KernelWork& work) {
  return work_time(pricing, work).total();
}

}  // namespace lockstep
