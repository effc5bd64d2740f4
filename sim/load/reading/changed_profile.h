#pragma once

// A profile with changes on top: {"based_on": "dgx_a100_80gb", "nics": {"count": 4}}.
//
// Problem:   "the same machine with half its NICs" should not need a copy of the machine's file.
// Idea:      the object that names what it is based on states only what differs; it is laid over the profile
//            when that is read. A name inside the profile is opened the same way when a change goes below it:
//            {"gpu": {"memory": "40 GB"}} over "a100_sxm_80gb" is that GPU with less memory, while an object that
//            is whole by itself (it has a name, a kind, or bandwidth and latency) takes the name's place.
// Invariant: nothing is changed without an entry in the list of changes; what a profile states as a list of
//            alike NICs is changed as its short form is, {"count", "link"}.
// Cost:      a copy of the profile; none for profiles that are used as they are.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/profile_changes.h"

namespace lockstep {

inline constexpr std::string_view base_key = "based_on";

struct ChangedDocument {
  nlohmann::ordered_json value;
  std::vector<ChangedValue> values;
  std::vector<std::string> problems;  // "/nics/9: found ...": from the profile's root on
};

// `changes` over `base`, which has no `base_key` of its own.
ChangedDocument lay_over(const nlohmann::ordered_json& base, const nlohmann::ordered_json& changes);

// A list of NICs that are alike as {"count", "link"}; null where they differ or it is no such list.
nlohmann::ordered_json short_form_of_nics(const nlohmann::ordered_json& nics);

}  // namespace lockstep
