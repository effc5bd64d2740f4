#pragma once

// What each framework does with options of a layout that are left out, and what of a layout it does not have.
//
// Problem:   the order of dimensions, the schedule of a pipeline, what runs beside products, how a
//            sequence is cut and a vocabulary padded are decided by the framework, and none of them has
//            all that is simulated.
// Idea:      a framework is a row: a value for each option with the place in its source that says so, and
//            the lists of what it has, some from a release on. Frameworks that only copy a model have
//            none: theirs are ours.
// Invariant: every option of a layout has a note. Only a framework that the user names refuses anything.
// Reference: each row names the source file or document it was read from.

#include <string>
#include <string_view>
#include <vector>

#include "sim/load/training/framework_presets.h"

namespace lockstep {

// Fills in what the framework of `spec` does, in `spec.layout`, whose degrees are set already.
OptionNotes apply_layout_preset(TrainingSpec& spec, const TrainingFacts& facts);

// What the framework of `spec` has none of, with what it has; by the key that says it.
struct MissingOption {
  std::string key;
  std::string text;
};
std::vector<MissingOption> missing_in_framework(const TrainingSpec& spec);

// Whether the named framework runs pipelines in this order; one without rows of its own runs all.
bool has_schedule(const TrainingSpec& spec, std::string_view schedule);

}  // namespace lockstep
