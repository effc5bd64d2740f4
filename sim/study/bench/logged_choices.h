#pragma once

// What NCCL logged that it chose, beside what Lockstep chooses on a machine.
//
// Problem:   a prediction is only as good as the choice of algorithm, protocol and channels behind it, and users hold the
//            logs that say what NCCL chose.
// Idea:      the log as `lockstep import nccl_log` makes it (lockstep.nccl_log/1), asked again size by size of the same
//            tuner that predictions use; what the log's environment forced is forced here too.
// Invariant: nothing is run; a size whose collective is not known is not compared.
// Cost:      one cluster, then a dozen formulas a size.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"

namespace lockstep {

struct LoggedSetting {
  std::string machine;
  std::int64_t nodes = 0;  // 0: as logged
};

struct ChosenHow {
  std::string algorithm;
  std::string protocol;
  std::int64_t channels = 0;  // 0: not logged
};

struct ComparedChoice {
  std::string collective;
  std::int64_t bytes = 0;
  ChosenHow logged;
  ChosenHow here;
  bool is_alike() const { return logged.algorithm == here.algorithm && logged.protocol == here.protocol; }
};

struct ComparedChoices {
  std::string machine;
  std::int64_t nodes = 0, gpus_per_node = 0;
  std::int64_t logged_channels = 0, channels = 0;  // of rings
  std::vector<ComparedChoice> choices = {};
  std::vector<std::string> warnings = {};
};

// Throws ConfigError where the machine cannot hold the logged ranks, or nobody says on how many nodes they were.
ComparedChoices compare_logged_choices(const nlohmann::ordered_json& log, const LoggedSetting& setting,
                                       const ProfileStore& store);

std::string to_text(const ComparedChoices& compared);
nlohmann::ordered_json to_json(const ComparedChoices& compared);

}  // namespace lockstep
