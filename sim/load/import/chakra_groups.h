#pragma once

// The process groups that traces name, dealt into sets in which every rank has one group.
//
// Problem:   a trace names any groups of ranks; a cluster knows sets of groups that lie side by side, so that alike ones
//            can stand for each other.
// Idea:      a group joins the first set of groups of its size in which all of its ranks are free, in the order in which
//            groups are told. What is free at the end is filled with groups that nobody uses.
// Invariant: a name means the same ranks in all files. Groups that lay side by side when they were written do so again.
// Reference: ASTRA-sim, astra-sim/workload/Workload.cc: "" and "0" are all ranks, groups are told in a JSON object
//            {"1": [0, 1]}; PyTorch's own traces tell them in a METADATA_NODE ([{"pg_name", "ranks"}]).

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/training/program.h"

namespace lockstep {

class ChakraGroups {
 public:
  // Errors are said to be of `file`. An empty list means all ranks.
  void add(const std::string& name, std::vector<std::uint32_t> ranks, const std::string& file);
  // {"1": [0, 1], ...}
  void add_all(const nlohmann::ordered_json& groups, const std::string& file);
  // What a METADATA_NODE says, if it says anything of groups.
  void add_of_pytorch(const std::string& input_values, const std::string& file);

  struct Membership {
    std::uint32_t set = all_ranks;
    std::uint32_t size = 0;  // of the group; 0: all
  };
  // Nothing: no such group, or the rank is not in it.
  std::optional<Membership> find(const std::string& name, std::uint32_t rank) const;
  // "1 (ranks 0, 1)", or that there is none.
  std::string described(const std::string& name) const;

  // Throws ConfigError where groups name ranks that are not there, or ranks are left that fill no group.
  std::vector<ListedGroups> sets(std::uint32_t ranks, const std::string& file) const;

 private:
  struct Set {
    std::vector<std::vector<Rank>> groups;
    std::vector<bool> is_taken;  // by rank
  };
  struct Named {
    std::uint32_t set = all_ranks;
    std::vector<std::uint32_t> ranks;
  };
  std::uint32_t place(const std::vector<std::uint32_t>& ranks);

  std::map<std::string, Named> named_;
  std::vector<Set> sets_;
};

}  // namespace lockstep
