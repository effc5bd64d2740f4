#pragma once

// What ranks have told each other: the store behind the stand-in's Rendezvous.
//
// Idea:      names and values, and rounds of exchange: the nth exchange of a name by each rank is one round.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::harness::stand_in {

struct Meeting {
  using Round = std::vector<std::optional<std::string>>;  // by rank

  std::map<std::string, std::string> values;
  std::map<std::pair<std::string, std::int64_t>, Round> rounds;      // by name and number
  std::map<std::pair<std::string, int>, std::int64_t> rounds_begun;  // by name and rank
  int goodbyes = 0;
};

}  // namespace lockstep::harness::stand_in
