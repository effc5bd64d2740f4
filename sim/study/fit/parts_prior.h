#pragma once

// What the shipped parts say of a machine before its own tables are looked at.
//
// Idea:      each constant is expected where its part has it, so loosely that a table of the machine's own decides
//            wherever it says anything; a part that nobody measured has its usual values and their spread.
// Cost:      three small files.

#include "sim/load/reading/profile_store.h"
#include "sim/study/fit/communication_fit.h"

namespace lockstep {

// `machine`: a name or a path.
ConstantsPrior prior_of_parts(const std::string& machine, const ProfileStore& store);

}  // namespace lockstep
