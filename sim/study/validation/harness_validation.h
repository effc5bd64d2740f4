#pragma once

// Harness runs as validation cases.
//
// Problem:   a run holds both what a prediction starts from and what it is judged by.
// Idea:      each entry of `iterations` is a held-out case of a group named like the run, predicted from the
//            step without communication and from a calibration: the one that is given, else that of the run's
//            own microbenchmarks. Beside it stand the single step as the sum of its layers and, where the
//            simulator knows the model, from roofline alone.
// Invariant: no case depends on another; a run that cannot be predicted says why, in a note or an error.

#include "sim/load/reading/profile_store.h"
#include "sim/study/harness/harness_run.h"
#include "sim/study/validation/case_errors.h"
#include "sim/study/validation/validation.h"

namespace lockstep {

// Throws ConfigError with every problem of the runs.
void append_runs(const ValidationOptions& options, const ProfileStore& store, const CaseErrors& errors,
                 Validation& validation);

}  // namespace lockstep
