#pragma once

// DeepSpeed's settings, wherever they stand: a file of its own, TrainingArguments, accelerate's.
//
// Idea:      `prefix` is where they stand in the account ("deepspeed."); "auto" is filled in by who launches it, and
//            `answer` says what that launcher knows.
// Reference: DeepSpeed, deepspeed/runtime/config.py and runtime/zero/config.py, release 0.17.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/load/import/key_account.h"
#include "sim/load/import/scenario_draft.h"

namespace lockstep {

// What the launcher would fill in for "auto" at this key; null: it does not know either.
using AutoAnswer = std::function<nlohmann::ordered_json(std::string_view key)>;

void read_deepspeed_settings(KeyAccount& keys, const std::string& prefix, const AutoAnswer& answer,
                             ScenarioDraft& draft);

}  // namespace lockstep
