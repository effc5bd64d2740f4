#pragma once

// Candidates of a search, tried by whoever has time for one.
//
// Idea:      a search knows by number which candidates are to be tried next, and its trials how: on threads here, or
//            by processes of a team, which tell each other what they found.
// Invariant: each is tried once, and everybody knows what all have found when the call ends.
// Cost:      a task of the team's each (study/team/team.h).

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/team/team.h"

namespace lockstep {

struct TrialSharing {
  Team* team = nullptr;          // none: this process alone
  int jobs = 0;                  // threads; 0: one a core
  std::string fingerprint = {};  // of what is asked, where there is a team
};

// `try_one` for each of `which`. `Trials` tells the outcome of one as bytes and takes that of another process (outcome,
// take). `on_finished` is called after each, by any thread.
template <class Trials>
void share_trials(const TrialSharing& sharing, Trials& trials, const std::vector<std::size_t>& which,
                  const std::function<void(std::size_t)>& try_one, const std::function<void()>& on_finished) {
  const auto run = [&](std::size_t place) {
    try_one(which[place]);
    on_finished();
  };
  const auto tell = [&](std::size_t place) {
    run(place);
    return trials.outcome(which[place]);
  };
  const auto take = [&](std::size_t place, std::string_view bytes) {
    trials.take(which[place], bytes);
    on_finished();
  };
  run_shared(
      sharing.team, sharing.jobs,
      {.count = which.size(), .question = sharing.fingerprint, .run = run, .tell = tell, .take = take});
}

}  // namespace lockstep
