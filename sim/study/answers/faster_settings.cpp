#include "sim/study/answers/faster_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/error.h"
#include "sim/run/run_size.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

struct Switch {
  std::string_view path;
  std::string_view value;
  bool rounds_more = false;
  bool is_of_megatron = false;  // no other trainer has it
};

// What is most often worth most first: those at the end are left out where each takes long.
constexpr std::array switches{
    Switch{"model.attention", "fused"},
    Switch{"compute.kernels", "compiled"},
    Switch{"training.vocabulary_multiple", "128"},
    Switch{"training.recompute", "none"},
    Switch{"training.recompute", "selective"},
    Switch{"training.cuda_launch_blocking", "false"},
    Switch{"training.batch_p2p_sync", "false"},
    Switch{"training.broadcast_data_sync", "false"},
    Switch{"training.check_for_nan_in_loss", "false"},
    Switch{"training.sequence_parallel", "true"},
    Switch{"training.tensor_parallel_overlap", "backward"},
    Switch{"training.tensor_parallel_overlap", "pieces"},
    Switch{"training.keeps_gathered_inputs", "true"},
    Switch{"training.virtual_stages", "2"},
    Switch{"training.pipeline_schedule", "1f1b"},
    Switch{"training.pipeline_schedule", "zb_h1"},
    Switch{"training.stage_layers", "balanced_time"},
    Switch{"compute.memory_format", "channels_last"},
    Switch{"compute.cuda_graph_scope", "layer"},
    Switch{"compute.cuda_graph_scope", "full_iteration"},
    Switch{"compute.gradient_accumulation_fusion", "true", false, true},
    Switch{"compute.cross_entropy_loss_fusion", "true"},
    Switch{"compute.optimizer_kernels", "fused"},
    Switch{"compute.rotary_embedding", "real"},
    Switch{"compute.attention_backend", "cudnn_attention"},
    Switch{"compute.moe_grouped_gemm", "true"},
    Switch{"compute.moe_permute_fusion", "true"},
    Switch{"compute.moe_router_fusion", "true"},
    Switch{"training.compression", "fp16", true},
    Switch{"training.compression", "bf16", true},
    Switch{"training.accumulate_allreduce_grads_in_fp32", "false", true},
    Switch{"training.reduce_dtype", "bf16", true},
    Switch{"training.gradient_as_bucket_view", "true"},
    Switch{"training.find_unused_parameters", "false"},
    Switch{"training.broadcast_buffers", "false"},
    Switch{"training.bucket_cap_mb", "25"},
    Switch{"training.bucket_cap_mb", "100"},
    Switch{"training.overlap_comm", "true"},
    Switch{"training.overlap_param_gather", "true", false, true},
    Switch{"training.reshard_after_forward", "false"},
    Switch{"training.forward_prefetch", "true"},
    Switch{"training.backward_prefetch", "pre"},
    Switch{"training.no_sync", "true"},
    Switch{"training.device", "gpu"},
    Switch{"training.hierarchical_allreduce", "true"},
    Switch{"training.local_reduce", "nccl"},
    Switch{"training.pull_once_per_node", "true"},
    Switch{"training.scheduling", "priority"},
    Switch{"input.workers", "4"},
    Switch{"input.copy", "overlapped"},
};

constexpr double least_gain = 0.001;  // of the iteration

// Whether the scenario has it so already.
bool is_set(const LoadedScenario& scenario, const Switch& choice) {
  const auto dot = choice.path.find('.');
  const auto section = scenario.resolved.find(choice.path.substr(0, dot));
  if (section == scenario.resolved.end() || !section->is_object())
    return false;
  const auto value = section->find(choice.path.substr(dot + 1));
  return value != section->end() && as_set(*value) == choice.value;
}

bool is_had(const Scenario& scenario, const Switch& choice) {
  return !choice.is_of_megatron || scenario.compute.modules != ModuleStyle::torch;
}

// Twice the samples at a time, half as many times.
std::vector<Overrides> larger_micro_batches(const Scenario& scenario) {
  const std::int64_t times = scenario.training.gradient_accumulation;
  if (times % 2 != 0)
    return {};
  const std::string twice = fmt::format("{}", 2 * scenario.model.batch_per_gpu);
  return {{{"training.micro_batch", twice}},
          {{"model.batch_per_gpu", twice}, {"training.gradient_accumulation", fmt::format("{}", times / 2)}}};
}

// What is cast, and where, stays as it is: who holds all in half precision does not begin to cast.
std::vector<Overrides> lower_precisions(const Scenario& scenario) {
  const Overrides tf32{{"model.precision", "tf32"}};
  const Overrides amp_bf16{{"model.precision", "amp_bf16"}};
  const Overrides amp_fp16{{"model.precision", "amp_fp16"}, {"compute.autocast", "true"}};
  switch (scenario.model.precision) {
    case Precision::fp32:
      return {tf32, amp_bf16, amp_fp16};
    case Precision::tf32:
      return {amp_bf16, amp_fp16};
    case Precision::bf16:
      return {{{"model.precision", "fp8"}}};
    default:
      return {};
  }
}

bool changes_nothing(const LoadedScenario& changed, const Overrides& changes) {
  return std::any_of(changed.warnings.begin(), changed.warnings.end(), [&](const std::string& warning) {
    return warning.starts_with(changes.front().first + " changes nothing");
  });
}

std::int64_t samples_of(const Scenario& scenario) {
  return scenario.model.batch_per_gpu * scenario.training.gradient_accumulation * scenario.cluster.ranks();
}

struct Candidate {
  FasterSetting setting;
  LoadedScenario scenario;
};

// None where the rest of the scenario does not allow it, or has no use for it.
std::optional<Candidate> load(const ScenarioVariants& variants, const Scenario& now, FasterSetting setting) {
  try {
    LoadedScenario changed = variants.load({.changes = setting.changes, .writes_resolved = false});
    if (changes_nothing(changed, setting.changes) || samples_of(changed) != samples_of(now))
      return std::nullopt;
    return Candidate{.setting = std::move(setting), .scenario = std::move(changed)};
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::vector<Candidate> load_candidates(const ScenarioVariants& variants, const LoadedScenario& now) {
  std::vector<Candidate> candidates;
  const auto add = [&](Overrides changes, bool rounds_more) {
    if (auto candidate = load(variants, now, {.changes = std::move(changes), .rounds_more = rounds_more}))
      candidates.push_back(std::move(*candidate));
  };
  for (Overrides& changes : lower_precisions(now)) add(std::move(changes), true);
  for (const Switch& choice : switches)
    if (is_had(now, choice) && !is_set(now, choice))
      add({{std::string(choice.path), std::string(choice.value)}}, choice.rounds_more);
  for (Overrides& changes : larger_micro_batches(now)) add(std::move(changes), false);
  return candidates;
}

// How many may be simulated.
std::size_t affordable(const Prediction& now) {
  if (now.scenario.simulation.accepts_any_size)
    return std::numeric_limits<std::size_t>::max();
  const double seconds = now.simulation.size.seconds();
  return static_cast<std::size_t>(std::max(1.0, most_seconds / std::max(seconds, 1e-6)));
}

// Of two values of a setting that come to the same one is told.
bool comes_to_same(const FasterSetting& a, const FasterSetting& b) {
  return a.changes.front().first == b.changes.front().first && a.iteration == b.iteration &&
         a.memory == b.memory;
}

// Whether it is one: shorter, and no fuller than a GPU or than now.
bool try_setting(const ScenarioVariants& variants, Candidate& candidate, const Prediction& now) {
  try {
    const Prediction changed =
        variants.predict(std::move(candidate.scenario), {.with_band = false, .with_times = false});
    candidate.setting.iteration = changed.report.iteration;
    candidate.setting.memory = changed.report.memory.peak.total();
  } catch (const ConfigError&) {
    return false;  // its anchor cannot be met, or it is too large
  }
  const MemoryReport& memory = now.report.memory;
  return candidate.setting.iteration.in_seconds() < (1 - least_gain) * now.report.iteration.in_seconds() &&
         candidate.setting.memory <= std::max(memory.capacity, memory.peak.total());
}

}  // namespace

FasterSettings find_faster_settings(const ScenarioVariants& variants, const Prediction& now) {
  std::vector<Candidate> candidates = load_candidates(variants, now.scenario);
  FasterSettings settings;
  settings.tried = std::min(candidates.size(), affordable(now));
  settings.left_out = candidates.size() - settings.tried;
  std::vector<char> is_faster(settings.tried);
  run_in_parallel(0, settings.tried, [&](std::size_t index) {
    is_faster[index] = try_setting(variants, candidates[index], now);
  });
  for (std::size_t index = 0; index < settings.tried; ++index) {
    FasterSetting& setting = candidates[index].setting;
    const bool is_told =
        std::any_of(settings.found.begin(), settings.found.end(),
                    [&](const FasterSetting& other) { return comes_to_same(other, setting); });
    if (is_faster[index] && !is_told)
      settings.found.push_back(std::move(setting));
  }
  std::stable_sort(settings.found.begin(), settings.found.end(),
                   [](const FasterSetting& a, const FasterSetting& b) { return a.iteration < b.iteration; });
  return settings;
}

}  // namespace lockstep
