#pragma once

// What differs between two scenarios, as changes that make the first into the second.
//
// Problem:   two resolved scenarios differ in hundreds of values where their files differ in one word: another
//            machine brings another GPU, and its links, and its calibration.
// Idea:      look at what the files state, and where only one of them states a value, at what follows by itself in
//            the other. What is chosen as a whole (a machine, a fabric, anything with a name or a kind of its own)
//            is one difference where another is chosen.
// Invariant: A with all of them, as --set has them, means what B means.
// Cost:      linear in both files.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

struct DifferingValue {
  nlohmann::ordered_json value;  // null: there is none
  std::string origin;            // "given", else "default ...", "derived ..." or "profile ..."

  bool is_stated() const { return origin == "given"; }
};

struct ScenarioDifference {
  std::string path;  // "cluster.nodes"
  DifferingValue a, b;
  std::string set;                // what --set says after the path to have B's
  bool means_the_same = false;    // what one states follows by itself in the other
  bool stands_on_others = false;  // it means something only where all others are changed as well
};

// In the order in which the files state them. `name`, `description` and `source` tell of a scenario and are no part.
std::vector<ScenarioDifference> find_differences(const LoadedScenario& a, const LoadedScenario& b);

// Of the steps that were measured: such a step belongs to the scenario that it is stated in, and is carried over to
// A with everything else that differs, `changed`, where it may be another than B's.
std::vector<ScenarioDifference> find_other_steps(const LoadedScenario& changed, const LoadedScenario& b);

}  // namespace lockstep
