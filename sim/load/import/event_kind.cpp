#include "sim/load/import/event_kind.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep {
namespace {

// "MmBackward", "AddmmBackward0": what releases before 1.9 write of a node, and later ones within it.
bool is_node(std::string_view name) {
  name = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return name.ends_with("Backward") && name.find(':') == std::string_view::npos;
}

}  // namespace

EventCategory category_of(std::string_view category) {
  constexpr std::array<std::string_view, 5> cpu{"cpu_op", "user_annotation", "Operator", "operator", ""};
  constexpr std::array<std::string_view, 3> launch{"cuda_runtime", "cuda_driver", "Runtime"};
  constexpr std::array<std::string_view, 6> kernel{"kernel", "Kernel",     "gpu_memcpy",
                                                   "Memcpy", "gpu_memset", "Memset"};
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), category) != names.end();
  };
  return is_one_of(cpu)      ? EventCategory::cpu
         : is_one_of(launch) ? EventCategory::launch
         : is_one_of(kernel) ? EventCategory::kernel
                             : EventCategory::other;
}

std::optional<SpanKind> span_kind_of(std::string_view name) {
  constexpr std::string_view node = "autograd::engine::evaluate_function: ";
  constexpr std::string_view gradient = "torch::autograd::AccumulateGrad";
  if (name.starts_with(node))
    return name.substr(node.size()) == gradient ? SpanKind::gradient_node : SpanKind::backward_node;
  if (name == gradient)
    return SpanKind::gradient;
  constexpr std::array<std::pair<std::string_view, SpanKind>, 8> beginnings{{
      {"ProfilerStep", SpanKind::step},
      {"Optimizer.step#", SpanKind::optimizer},
      {"enumerate(DataLoader)#", SpanKind::input},
      {"lockstep::gradient_ready ", SpanKind::gradient_mark},
      {"torch.distributed.ddp.reducer::", SpanKind::wrapper_copy},
      {"gloo:", SpanKind::collective},
      {"mpi:", SpanKind::collective},
      {"ucc:", SpanKind::collective},
  }};
  for (const auto& [beginning, kind] : beginnings)
    if (name.starts_with(beginning))
      return kind;
  return is_node(name) ? std::optional(SpanKind::backward_node) : std::nullopt;
}

bool sends_messages(std::string_view name) {
  return name == "record_param_comms" || name.starts_with("nccl:") || name.starts_with("c10d::");
}

bool is_collective_kernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("void nccl");
}

}  // namespace lockstep
