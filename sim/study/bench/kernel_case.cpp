#include "sim/study/bench/kernel_case.h"

#include <fmt/format.h>

#include <array>

namespace lockstep {
namespace {

std::string text_of(const GemmShape& shape) {
  return fmt::format("{} x {} x {} x {}", shape.batch, shape.m, shape.n, shape.k);
}

std::string text_of(const ConvolutionShape& shape) {
  return fmt::format("{} x {} x {} x {}, {} of {} x {}", shape.batch, shape.in_channels, shape.height,
                     shape.width, shape.out_channels, shape.filter_height, shape.filter_width);
}

std::string text_of(const AttentionShape& shape) {
  return fmt::format("{} x {}, {} heads of {}{}", shape.batch, shape.sequence, shape.heads, shape.query_width,
                     shape.is_causal ? ", causal" : "");
}

std::string text_of(const MemoryBoundShape& shape) {
  return fmt::format("{} {} x {}", shape.op, shape.elements / shape.width, shape.width);
}

std::string text_of(const StepShape& shape) {
  return fmt::format("{} batch {}{}", shape.model, shape.batch,
                     shape.is_channels_last ? ", channels last" : "");
}

}  // namespace

std::string_view name_of(KernelDirection direction) {
  static constexpr std::array<std::string_view, 5> names{"fwd", "bwd", "bwd_data", "bwd_weight", "step"};
  return names[static_cast<std::size_t>(direction)];
}

std::string describe(const KernelCase& kernel) {
  return fmt::format("{}:{} {}", kernel.table, kernel.line,
                     std::visit([](const auto& shape) { return text_of(shape); }, kernel.shape));
}

}  // namespace lockstep
