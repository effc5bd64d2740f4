#include "sim/load/import/fsdp_settings.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

struct Sharding {
  std::string_view name;
  std::string_view number;  // torch.distributed.fsdp.ShardingStrategy counts from 1
  const char* strategy;
  bool reshards;
};

constexpr std::array shardings = {
    Sharding{"full_shard", "1", "fsdp", true}, Sharding{"shard_grad_op", "2", "fsdp", false},
    Sharding{"no_shard", "3", "ddp", false}, Sharding{"hybrid_shard", "4", "hsdp", true},
    Sharding{"hybrid_shard_zero2", "5", "hsdp", false}};

bool equal_ignoring_case(std::string_view one, std::string_view other) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  if (one.size() != other.size())
    return false;
  for (std::size_t index = 0; index < one.size(); ++index)
    if (lower(one[index]) != lower(other[index]))
      return false;
  return true;
}

// The keys of a file by their names without a launcher's prefix.
struct FsdpKeys {
  KeyAccount& keys;
  const std::vector<std::string>& prefixes;

  std::string named(std::string_view name) const {
    for (const std::string& prefix : prefixes)
      if (const std::string key = prefix + std::string(name); keys.has(key))
        return key;
    return prefixes.front() + std::string(name);
  }
  void leave(std::initializer_list<std::string_view> names, std::string_view why) const {
    for (const std::string_view name : names) keys.leave({{{named(name)}, why}});
  }
};

void read_prefetch(const FsdpKeys& fsdp, ScenarioDraft& draft) {
  KeyAccount& keys = fsdp.keys;
  const std::string old = fsdp.named("backward_prefetch_policy");
  const std::string key = keys.has(old) ? old : fsdp.named("backward_prefetch");
  draft.training()["backward_prefetch"] = "none";
  const auto name = keys.text(key);
  if (!name)
    return;
  const bool is_pre =
      equal_ignoring_case(*name, "backward_pre") || equal_ignoring_case(*name, "backward_prefetch");
  const bool is_post = equal_ignoring_case(*name, "backward_post");
  if (!is_pre && !is_post && !equal_ignoring_case(*name, "no_prefetch"))
    return keys.refused(key,
                        fmt::format("found {}, expected backward_pre, backward_post or no_prefetch", *name));
  draft.training()["backward_prefetch"] = is_pre ? "pre" : is_post ? "post" : "none";
  keys.used(key, "training.backward_prefetch");
}

void read_wrapping(const FsdpKeys& fsdp, ScenarioDraft& draft) {
  KeyAccount& keys = fsdp.keys;
  const auto policy = keys.text(fsdp.named("auto_wrap_policy"));
  const auto elements = keys.integer(fsdp.named("min_num_params"), 0, std::int64_t{1} << 40);
  const bool by_size =
      (policy && equal_ignoring_case(*policy, "SIZE_BASED_WRAP")) || (!policy && elements && *elements > 0);
  if (policy && equal_ignoring_case(*policy, "NO_WRAP"))
    draft.training()["auto_wrap"] = "none";
  else
    draft.training()["auto_wrap"] =
        by_size ? fmt::format("size_{}", elements.value_or(100'000'000)) : std::string("block");
  if (policy)
    keys.used(fsdp.named("auto_wrap_policy"), "training.auto_wrap");
  if (elements)
    keys.used(fsdp.named("min_num_params"), by_size ? "training.auto_wrap" : "of wrapping by size alone");
  fsdp.leave({"transformer_layer_cls_to_wrap"}, "a unit for each block: training.auto_wrap");
}

}  // namespace

bool set_sharding(std::string_view name, ScenarioDraft& draft) {
  for (const Sharding& sharding : shardings)
    if (equal_ignoring_case(name, sharding.name) || name == sharding.number) {
      draft.training()["strategy"] = sharding.strategy;
      if (std::string_view(sharding.strategy) != "ddp") {
        draft.training()["framework"] = "pytorch_fsdp";
        draft.training()["reshard_after_forward"] = sharding.reshards;
      } else {
        draft.training()["framework"] = "pytorch_ddp";
        draft.training().erase("reshard_after_forward");
      }
      return true;
    }
  return false;
}

void read_fsdp_options(KeyAccount& keys, const std::vector<std::string>& prefixes, ScenarioDraft& draft) {
  const FsdpKeys fsdp{keys, prefixes};
  const auto take_flag = [&](const char* name) {
    if (const auto value = keys.flag(fsdp.named(name))) {
      draft.training()[name] = *value;
      keys.used(fsdp.named(name), fmt::format("training.{}", name));
    }
  };
  const auto refuse_flags = [&](std::initializer_list<std::string_view> names, const char* why) {
    for (const std::string_view name : names)
      if (keys.flag(fsdp.named(name)).value_or(false))
        keys.refused(fsdp.named(name), why);
  };
  const std::int64_t version = keys.integer(fsdp.named("version"), 1, 2).value_or(1);
  keys.used(fsdp.named("version"), "training.fsdp_version");
  read_wrapping(fsdp, draft);
  if (version == 1) {
    read_prefetch(fsdp, draft);
    take_flag("forward_prefetch");
    take_flag("limit_all_gathers");
  } else {
    draft.training()["fsdp_version"] = 2;
    const ordered_json* reshards = keys.find(fsdp.named("reshard_after_forward"));
    if (reshards != nullptr && reshards->is_boolean())
      take_flag("reshard_after_forward");
  }
  if (const auto again = keys.flag(fsdp.named("activation_checkpointing"))) {
    if (*again)
      draft.training()["recompute"] = "full";
    keys.used(fsdp.named("activation_checkpointing"), "training.recompute");
  }
  refuse_flags({"offload_params", "offload"}, "what is offloaded is not predicted");
  refuse_flags({"xla", "xla_fsdp_v2"}, "XLA is not predicted");
  fsdp.leave({"backward_prefetch", "backward_prefetch_policy", "forward_prefetch", "limit_all_gathers"},
             "has no meaning in FSDP 2");
  fsdp.leave({"use_orig_params", "sync_module_states", "cpu_ram_efficient_loading", "state_dict_type",
              "xla_fsdp_settings", "xla_fsdp_grad_ckpt", "ignored_modules"},
             "of the start or of saving, not of an iteration");
}

}  // namespace lockstep
