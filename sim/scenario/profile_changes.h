#pragma once

// What a scenario changes of the profiles that it names, for its report to say.
//
// Idea:      a change is a path within the profile, what stands there now and what stood there before.
// Invariant: a machine that was changed is never reported under its name alone.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct ChangedValue {
  std::string path;  // dotted, within the profile
  nlohmann::ordered_json value;
  nlohmann::ordered_json before;  // null: the profile does not state it
};

struct ChangedProfile {
  std::string noun;               // "machine", "GPU", ...
  std::string name;               // as the scenario says it
  std::string pointer;            // where in the scenario
  std::vector<std::string> keys;  // of the profile that are stated, also by changes further inside
  std::vector<ChangedValue> values;

  bool changes_key(std::string_view key) const;
};

// "nics.count 4 (8), gpus 4 (8)".
std::string text_of(const std::vector<ChangedValue>& values);

// "machine dgx_a100_80gb with nics.count 4 (8)".
std::string text_of(const ChangedProfile& profile);

// All of them joined; empty where nothing was changed.
std::string text_of(const std::vector<ChangedProfile>& profiles);

}  // namespace lockstep
