#include "sim/load/import/fsdp_settings.h"

#include <fmt/format.h>

#include <array>

namespace lockstep {
namespace {

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

void read_prefetch(KeyAccount& keys, const std::string& prefix, ScenarioDraft& draft) {
  const std::string key = prefix + "backward_prefetch";
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

void read_wrapping(KeyAccount& keys, const std::string& prefix, ScenarioDraft& draft) {
  const auto policy = keys.text(prefix + "auto_wrap_policy");
  const auto elements = keys.integer(prefix + "min_num_params", 0, std::int64_t{1} << 40);
  const bool by_size =
      (policy && equal_ignoring_case(*policy, "SIZE_BASED_WRAP")) || (!policy && elements && *elements > 0);
  if (policy && equal_ignoring_case(*policy, "NO_WRAP"))
    draft.training()["auto_wrap"] = "none";
  else
    draft.training()["auto_wrap"] =
        by_size ? fmt::format("size_{}", elements.value_or(100'000'000)) : std::string("block");
  if (policy)
    keys.used(prefix + "auto_wrap_policy", "training.auto_wrap");
  if (elements)
    keys.used(prefix + "min_num_params", by_size ? "training.auto_wrap" : "of wrapping by size alone");
  keys.leave({{{prefix + "transformer_layer_cls_to_wrap"}, "a unit for each block: training.auto_wrap"}});
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
      }
      return true;
    }
  return false;
}

void read_fsdp_options(KeyAccount& keys, const std::string& prefix, ScenarioDraft& draft) {
  const auto take_flag = [&](const char* name, const char* option) {
    if (const auto value = keys.flag(prefix + name)) {
      draft.training()[option] = *value;
      keys.used(prefix + name, fmt::format("training.{}", option));
    }
  };
  const std::int64_t version = keys.integer(prefix + "version", 1, 2).value_or(1);
  if (version == 2)
    draft.training()["fsdp_version"] = 2;
  keys.used(prefix + "version", "training.fsdp_version");
  read_wrapping(keys, prefix, draft);
  if (version == 1) {
    read_prefetch(keys, prefix, draft);
    take_flag("forward_prefetch", "forward_prefetch");
    take_flag("limit_all_gathers", "limit_all_gathers");
  }
  if (const auto again = keys.flag(prefix + "activation_checkpointing")) {
    if (*again)
      draft.training()["recompute"] = "full";
    keys.used(prefix + "activation_checkpointing", "training.recompute");
  }
  for (const char* offload : {"offload_params", "offload"})
    if (keys.flag(prefix + offload).value_or(false))
      keys.refused(prefix + offload, "what is offloaded is not predicted");
  for (const char* other : {"xla", "xla_fsdp_v2"})
    if (keys.flag(prefix + other).value_or(false))
      keys.refused(prefix + other, "XLA is not predicted");
  keys.leave({{{prefix + "backward_prefetch", prefix + "forward_prefetch", prefix + "limit_all_gathers"},
               "has no meaning in FSDP 2"},
              {{prefix + "use_orig_params", prefix + "sync_module_states",
                prefix + "cpu_ram_efficient_loading", prefix + "state_dict_type",
                prefix + "xla_fsdp_settings", prefix + "xla_fsdp_grad_ckpt", prefix + "ignored_modules"},
               "of the start or of saving, not of an iteration"}});
}

}  // namespace lockstep
