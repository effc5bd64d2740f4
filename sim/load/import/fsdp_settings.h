#pragma once

// PyTorch's FSDP as its launchers spell it: sharding strategies and prefetching by name.
//
// Reference: transformers 4.57, training_args.py (fsdp, fsdp_config); accelerate 1.11, utils/dataclasses.py
//            (FullyShardedDataParallelPlugin).

#include <string>
#include <string_view>
#include <vector>

#include "sim/load/import/key_account.h"
#include "sim/load/import/scenario_draft.h"

namespace lockstep {

// "FULL_SHARD", "full_shard", "1", ...: sets training's strategy and whether units stay gathered. False: no such name.
bool set_sharding(std::string_view name, ScenarioDraft& draft);

// The options that both launchers have, each by its name after the first of `prefixes` under which the file has it. Both
// prefetch nothing in backward unless they are told to.
void read_fsdp_options(KeyAccount& keys, const std::vector<std::string>& prefixes, ScenarioDraft& draft);

}  // namespace lockstep
