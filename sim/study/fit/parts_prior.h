#pragma once

// What the shipped parts say of a machine before its own tables are looked at.
//
// Idea:      each constant is expected where its part has it, so loosely that a table of the machine's own decides
//            wherever it says anything; a part that nobody measured has its usual values and their spread. Tables
//            between nodes alone cannot tell a slow network from slow wires inside: those, and GPUs, are then
//            expected as narrowly as other machines have them, and the network gives way.
// Cost:      three small files.

#include <span>

#include "sim/load/reading/profile_store.h"
#include "sim/study/bench/measured_tables.h"
#include "sim/study/fit/communication_fit.h"

namespace lockstep {

// Of the tables of one machine.
ConstantsPrior prior_of_parts(std::span<const MeasuredTable> tables, const ProfileStore& store);

}  // namespace lockstep
