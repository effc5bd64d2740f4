#pragma once

// What one rank does from meeting the others to its result.
//
// Problem:   on the way out of a failure, memory is freed and communicators are aborted, and either may wait
//            for a GPU that will never answer. The other ranks, and the user, must not wait with them.
// Idea:      what waits when it is destroyed belongs to this function and outlives its catch block: there the
//            reason is printed and told to the others first.
// Errors:    FailedRank, with the exit code, for what has been told to everybody.

#include <functional>

#include "sim/base/failure.h"
#include "validate/harness/backend.h"
#include "validate/harness/options.h"

namespace lockstep::harness {

struct FailedRank {
  int exit_code = exit_bug;
};

struct RankProgram {
  Rendezvous& rendezvous;
  const Options& options;
  const Backend& backend;
  std::function<void(const Failure&)> tell_user;
};

// Returns the exit code of a rank that did what it was asked for: 0, or 3 where a check did not hold.
int run_rank(const RankProgram& program);

// Says before anything is measured what would be said after: the file cannot be written there.
void check_output(const std::string& path);

}  // namespace lockstep::harness
