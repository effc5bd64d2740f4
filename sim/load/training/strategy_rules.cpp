#include "sim/load/training/strategy_rules.h"

namespace lockstep {
namespace {

using enum CompressionKind;

// Its messages have a type of their own: the option `instead`.
StrategyRules sharded(std::string_view strategy, std::string_view instead) {
  return {.strategy = strategy,
          .compressions = {none},
          .clips_gradients = true,
          .shards_optimizer = true,
          .instead = instead};
}

}  // namespace

const std::vector<StrategyRules>& strategy_rules() {
  static const std::vector<StrategyRules> rules{
      {.strategy = "single", .compressions = {none, fp16, bf16}, .clips_gradients = true},
      {.strategy = "dp", .compressions = {none}},
      {.strategy = "ddp", .compressions = {none, fp16, bf16, powersgd, topk}, .clips_gradients = true},
      sharded("zero1", "communication_data_type"),
      sharded("zero2", "communication_data_type"),
      sharded("zero3", "communication_data_type"),
      sharded("fsdp", "reduce_dtype"),
      sharded("hsdp", "reduce_dtype"),
      {.strategy = "ps_sync", .compressions = {none, fp16, bf16}},
      {.strategy = "ps_async", .compressions = {none, fp16, bf16}},
      {.strategy = "local_sgd", .compressions = {none}, .clips_gradients = true},
      {.strategy = "horovod", .compressions = {none, fp16}}};
  return rules;
}

const StrategyRules& rules_of(std::string_view strategy) {
  for (const StrategyRules& rules : strategy_rules()) {
    if (rules.strategy == strategy) {
      return rules;
    }
  }
  static const StrategyRules plain{.strategy = "", .compressions = {none}};
  return plain;
}

}  // namespace lockstep
