#pragma once

// What holds where a key of a scenario is left out.
//
// Problem:   defaults are decided while a scenario is read: by framework, strategy and release, some by the cluster.
// Idea:      ask the reader. Small scenarios are loaded, of every strategy with every framework that has it, and what
//            the resolved ones hold and nobody stated is a default. Each is loaded in two circumstances: what differs
//            between them follows from them, and stands there as the reader's own note says why.
// Invariant: the same on every run; what no small scenario holds has no entry.
// Cost:      a few hundred loads, a fifth of a second.

#include <map>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"

namespace lockstep {

struct DefaultValue {
  std::string text;     // JSON, or why
  bool is_why = false;  // it follows from the scenario
  friend bool operator==(const DefaultValue&, const DefaultValue&) = default;
};

struct StrategyDefault {
  DefaultValue value;
  std::vector<std::string> strategies;  // whose default it is with their usual framework; none: everybody's
};

struct KeyDefault {
  std::vector<StrategyDefault> values;  // none: only frameworks that must be named have one
  bool differs_by_framework = false;
};

// By dotted path.
std::map<std::string, KeyDefault> find_key_defaults(const ProfileStore& store);

// "training.bucket_cap_mb" -> the strategies that have this option; an option that all have is not there.
std::map<std::string, std::vector<std::string>> strategies_by_option();

}  // namespace lockstep
