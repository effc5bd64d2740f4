#pragma once

// All ranks compute with the kernels that rank 0 found.
//
// Problem:   a library that tries its algorithms finds another fastest one on each GPU. Ranks that compute
//            differently wait for each other, in another way in every run, and no file says why.
// Idea:      every rank makes one pass, in which all is tried; rank 0's choices are told to all and followed
//            in a second pass, so that a GPU that cannot follow is known before anything is measured.
// Invariant: all ranks call it, after the precision is chosen. Nothing is timed.
// Errors:    EnvironmentError, on the rank that cannot follow.

#include <string>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

// Rank 0's choices, as its device tells them; empty where the device has none.
std::string agree_on_kernels(Bench& bench, Trainer& trainer);

}  // namespace lockstep::harness
