#pragma once

// What a calibration is fitted to, gathered from the files that a user names.
//
// Problem:   logs leave things unsaid, runs are broken, indexes hold other machines' tables; a fit swallows
//            all of that and answers.
// Idea:      logs and CSV are completed by what the user says of them, never corrected; indexes are narrowed
//            to the machine; what cannot be fitted is refused with every reason at once.
// Invariant: every table that is returned is of the machine, sound (unless broken ones were accepted), and
//            has rows; together they have enough to fit.
// Cost:      one pass over each file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"
#include "sim/study/bench/measured_tables.h"

namespace lockstep {

// What logs and CSV may leave unsaid. An index says all of it itself.
struct LogFacts {
  std::string collective = {};
  std::optional<std::int64_t> nodes = {};
  std::optional<std::int64_t> gpus_per_node = {};
  std::string library_version = {};
  std::string algorithm = {};  // forced when the log was made
  std::string protocol = {};
  bool is_single_process = false;
};

// The options that say them, as a user writes them.
std::vector<std::string> given_options(const LogFacts& facts);

struct CalibrationRequest {
  std::vector<std::string> files;  // logs, CSV, and indexes (.json)
  std::string machine;             // a name or a path
  std::string profile = {};        // of the indexes: only its tables; empty: every table of the machine
  LogFacts facts = {};
  bool accepts_broken_runs = false;
  bool holds_nothing_out = false;  // a quick fit: its own residuals, widened, are its bands
};

struct CalibrationInputs {
  std::string machine;                // its own name
  std::string profile;                // the name of what will be fitted
  std::vector<MeasuredTable> tables;  // all of `profile`
  std::vector<std::string> notes;     // what was passed over, one line each
  bool holds_nothing_out = false;
};

// Throws ConfigError with every problem of every file.
CalibrationInputs read_calibration_inputs(const CalibrationRequest& request, const ProfileStore& store);

}  // namespace lockstep
