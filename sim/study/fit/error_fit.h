#pragma once

// From what predictions missed to an error model.
//
// Problem:   a band must hold of what nobody has measured, so its ranges are to come from misses, each of
//            those that it is about, and none may be counted on what it was made from.
// Idea:      a source that comes by doublings takes the misses of cases where it is the one that grew, each
//            told of one doubling as doublings add up (report/error_sources.h); a step that nobody measured
//            those of its kind, drawn towards those of all kinds where there are few; a host those of steps
//            that wait for it. The factor is the quantile that 80 of 100 do not exceed of how far each case
//            lies, in ranges that its own group had no part in. One vote a case.
// Invariant: a function of the cases alone, to four digits; leaving a group out forgets all of it.
// Cost:      a fit for each group, and where each is left out again for each pair of groups: seconds.
// Reference: Vovk, Gammerman, Shafer (2005), chapter 2 (conformal predictors); Vovk, "Cross-conformal
//            predictors" (2015), for the factor; James and Stein (1961) for the drawing.

#include <map>
#include <span>
#include <string>

#include "sim/report/band_parts.h"
#include "sim/scenario/error_model.h"

namespace lockstep {

// A case that was measured.
struct StepMiss {
  std::string group;
  StepConditions conditions;
  double missed = 0;  // logarithm of measured over predicted
  LogRange
      per_computing;  // what the iteration's logarithm gains for what computing's does, at either end; 0 to 1
  LogRange per_host;  // likewise, for what its host takes
  LogRange communication;  // of the iteration
};

// What the ranges of `errors` come to for it, and how many of them it lies away: at most 1 is within.
LogRange range_of(const StepMiss& miss, const ErrorModel& errors);
double ranges_away(const StepMiss& miss, const ErrorModel& errors);

// `communication`: what stands in where a calibration has no residuals; it is passed on.
ErrorModel fit_errors(std::span<const StepMiss> misses, std::vector<ResidualBand> communication);

// By group: of all others.
std::map<std::string, ErrorModel> fit_errors_without_each(std::span<const StepMiss> misses,
                                                          const std::vector<ResidualBand>& communication);

}  // namespace lockstep
