#pragma once

// Error models as profiles (hw_profiles/errors): written by `lockstep calibrate --band`, read with every
// scenario.
//
// Idea:      ranges are measured over predicted minus 1, as everywhere. Beside the model that counts stands
//            one for each group of measurements, made without it: what a group is judged by.
// Invariant: what is written reads back to the same.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/load/reading/profile_store.h"
#include "sim/scenario/error_model.h"

namespace lockstep {

// As shipped, or as in the user's own data; none: no such file. Throws ConfigError where it is wrong.
std::optional<ErrorModel> find_error_model(const ProfileStore& store);

// By group; empty: no such file.
std::map<std::string, ErrorModel> find_left_out_models(const ProfileStore& store);

nlohmann::ordered_json write_error_model(const ErrorModel& model);
nlohmann::ordered_json write_left_out_models(const std::map<std::string, ErrorModel>& models);

}  // namespace lockstep
