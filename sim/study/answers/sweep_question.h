#pragma once

// What is asked of the rows of a sweep: which is best, among those that will do.
//
// Problem:   the fastest cell is no answer where it does not fit in memory or misses another need, and what is
//            wanted may be two things that pull apart.
// Idea:      goals are results to have little or much of; conditions are results that must be true or keep a
//            bound. Both name the keys of a result.
// Invariant: a value that is not there keeps no condition. What does not fit in memory will not do, unless that
//            is allowed.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep {

struct SweepGoal {
  std::size_t key = 0;  // among result_keys()
  bool is_largest = false;
};

enum class Comparison : std::uint8_t { less, at_most, more, at_least, equal, unequal };

struct SweepCondition {
  std::size_t key = 0;  // among result_keys()
  Comparison comparison = Comparison::equal;
  double bound = 1;       // true is 1
  std::string text = {};  // as it was said

  bool holds(const nlohmann::ordered_json& value) const;
};

struct SweepQuestion {
  std::vector<SweepGoal> goals = {SweepGoal{}};  // the first says what is best
  std::vector<SweepCondition> conditions = {};
  bool allows_out_of_memory = false;
};

// Throws ConfigError where `key` is no number among result_keys(), naming the nearest that is one, and where less of it (for
// `is_largest`: more) is worse: samples_per_s is not minimised by mistake.
SweepGoal find_goal(const std::string& key, bool is_largest);

// "memory_bytes.fits" or "iteration_time_s<0.5". Throws ConfigError for a key that no result has, naming the
// nearest, and for what cannot be compared.
SweepCondition parse_condition(const std::string& text);

}  // namespace lockstep
