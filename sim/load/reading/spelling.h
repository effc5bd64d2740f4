#pragma once

// How the values of an enumeration are written in JSON, both ways.
//
// Problem:   a name that is read in one place and printed in another drifts apart.
// Idea:      one table per enumeration; reading looks a name up, writing looks a value up.
// Invariant: every value of the enumeration stands in its table once.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/json_reader.h"
#include "sim/base/spelling.h"
#include "sim/scenario/scenario.h"
#include "sim/training/option_spelling.h"

namespace lockstep {

inline constexpr auto precision_spellings =
    std::to_array<Spelling<Precision>>({{"fp32", Precision::fp32},
                                        {"tf32", Precision::tf32},
                                        {"fp16", Precision::fp16},
                                        {"bf16", Precision::bf16},
                                        {"amp_fp16", Precision::amp_fp16},
                                        {"amp_bf16", Precision::amp_bf16},
                                        {"fp8", Precision::fp8}});
// What a multiplication unit knows; mixed precision is a way of using it.
inline constexpr auto multiplication_spellings =
    std::to_array<Spelling<Precision>>({{"fp32", Precision::fp32},
                                        {"tf32", Precision::tf32},
                                        {"fp16", Precision::fp16},
                                        {"bf16", Precision::bf16},
                                        {"fp8", Precision::fp8}});
inline constexpr auto link_class_spellings =
    std::to_array<Spelling<LinkClass>>({{"nvlink", LinkClass::nvlink},
                                        {"pcie", LinkClass::pcie},
                                        {"socket", LinkClass::socket},
                                        {"network", LinkClass::network}});
inline constexpr auto gpu_link_spellings =
    std::to_array<Spelling<GpuLinkKind>>({{"nvswitch", GpuLinkKind::nvswitch},
                                          {"mesh", GpuLinkKind::mesh},
                                          {"pcie", GpuLinkKind::pcie},
                                          {"none", GpuLinkKind::none}});
inline constexpr auto library_spellings = std::to_array<Spelling<LibraryKind>>(
    {{"nccl", LibraryKind::nccl}, {"gloo", LibraryKind::gloo}, {"rccl", LibraryKind::rccl}});
inline constexpr auto optimizer_spellings =
    std::to_array<Spelling<Optimizer>>({{"none", Optimizer::none},
                                        {"sgd", Optimizer::sgd},
                                        {"momentum", Optimizer::momentum},
                                        {"adam", Optimizer::adam},
                                        {"adamw", Optimizer::adamw},
                                        {"lamb", Optimizer::lamb}});
inline constexpr auto batch_copy_spellings =
    std::to_array<Spelling<BatchCopy>>({{"overlapped", BatchCopy::overlapped},
                                        {"pinned", BatchCopy::pinned},
                                        {"pageable", BatchCopy::pageable},
                                        {"none", BatchCopy::none}});
inline constexpr auto learning_problem_spellings = std::to_array<Spelling<LearningProblem>>(
    {{"least_squares", LearningProblem::least_squares}, {"softmax", LearningProblem::softmax}});
inline constexpr auto jitter_spellings =
    std::to_array<Spelling<JitterDistribution>>({{"none", JitterDistribution::none},
                                                 {"lognormal", JitterDistribution::lognormal},
                                                 {"gamma", JitterDistribution::gamma}});
inline constexpr auto context_kind_spellings =
    std::to_array<Spelling<ContextKind>>({{"ring", ContextKind::ring},
                                          {"all_gather", ContextKind::all_gather},
                                          {"ulysses", ContextKind::ulysses},
                                          {"rotate_all_gather", ContextKind::rotate_all_gather},
                                          {"rotate_all_to_all", ContextKind::rotate_all_to_all}});
inline constexpr auto token_dispatch_spellings =
    std::to_array<Spelling<TokenDispatch>>({{"alltoall", TokenDispatch::alltoall},
                                            {"allgather", TokenDispatch::allgather},
                                            {"deepep", TokenDispatch::deepep},
                                            {"hybridep", TokenDispatch::hybridep}});
inline constexpr auto tensor_overlap_spellings =
    std::to_array<Spelling<TensorOverlap>>({{"none", TensorOverlap::none},
                                            {"backward", TensorOverlap::backward},
                                            {"pieces", TensorOverlap::pieces}});
inline constexpr auto kernel_style_spellings =
    std::to_array<Spelling<KernelStyle>>({{"eager", KernelStyle::eager},
                                          {"compiled", KernelStyle::compiled},
                                          {"fused", KernelStyle::fused},
                                          {"primitives", KernelStyle::primitives}});
inline constexpr auto optimizer_kernels_spellings =
    std::to_array<Spelling<OptimizerKernels>>({{"foreach", OptimizerKernels::foreach},
                                               {"fused", OptimizerKernels::fused},
                                               {"for_loop", OptimizerKernels::for_loop},
                                               {"per_tensor", OptimizerKernels::per_tensor},
                                               {"primitives", OptimizerKernels::primitives}});
inline constexpr auto module_style_spellings =
    std::to_array<Spelling<ModuleStyle>>({{"torch", ModuleStyle::torch},
                                          {"megatron", ModuleStyle::megatron},
                                          {"megatron_core", ModuleStyle::megatron_core}});
inline constexpr auto cuda_graph_scope_spellings =
    std::to_array<Spelling<CudaGraphScope>>({{"none", CudaGraphScope::none},
                                             {"layer", CudaGraphScope::layer},
                                             {"full_iteration", CudaGraphScope::full_iteration}});
inline constexpr auto memory_format_spellings = std::to_array<Spelling<MemoryFormat>>(
    {{"contiguous", MemoryFormat::contiguous}, {"channels_last", MemoryFormat::channels_last}});
inline constexpr auto attention_backend_spellings =
    std::to_array<Spelling<AttentionBackend>>({{"flash_attention", AttentionBackend::flash_attention},
                                               {"flash_attention_1", AttentionBackend::flash_attention_1},
                                               {"cudnn_attention", AttentionBackend::cudnn_attention}});
inline constexpr auto fp8_recipe_spellings = std::to_array<Spelling<Fp8Recipe>>(
    {{"delayed", Fp8Recipe::delayed}, {"tensorwise", Fp8Recipe::tensorwise}});
inline constexpr auto rotary_embedding_spellings = std::to_array<Spelling<RotaryEmbedding>>(
    {{"real", RotaryEmbedding::real}, {"complex", RotaryEmbedding::complex_numbers}});
inline constexpr auto fidelity_spellings =
    std::to_array<Spelling<Fidelity>>({{"flow", Fidelity::flow}, {"step", Fidelity::step}});

template <class Value, std::size_t size>
std::vector<std::string> names_of(const std::array<Spelling<Value>, size>& spellings) {
  std::vector<std::string> names;
  for (const auto& spelling : spellings) {
    names.emplace_back(spelling.name);
  }
  return names;
}

// Records a problem that lists the valid names, and answers the first of them, when there is no such name.
template <class Value, std::size_t size>
Value read_spelled(const JsonReader& json, const std::array<Spelling<Value>, size>& spellings) {
  const std::string name = json.one_of(names_of(spellings));
  for (const auto& spelling : spellings) {
    if (spelling.name == name) {
      return spelling.value;
    }
  }
  return spellings.front().value;
}

template <class Value, std::size_t size>
Value spelled_or(const JsonReader& json, std::string_view key, Value fallback,
                 const std::array<Spelling<Value>, size>& spellings) {
  const auto found = json.optional(key);
  return found ? read_spelled(*found, spellings) : fallback;
}

template <class Value, std::size_t size>
std::string name_of(Value value, const std::array<Spelling<Value>, size>& spellings) {
  for (const auto& spelling : spellings) {
    if (spelling.value == value) {
      return std::string(spelling.name);
    }
  }
  LOCKSTEP_CHECK(false, "every value has a spelling");
  return {};
}

}  // namespace lockstep
