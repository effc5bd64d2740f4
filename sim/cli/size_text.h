#pragma once

// Sizes as nccl-tests' command line writes them: "8", "25M", "1G", always binary.
//
// Invariant: digits and at most one letter; anything else is the user's mistake and says what is valid.

#include <string>

#include "sim/base/units.h"

namespace lockstep {

// `option` names the flag in the ConfigError.
Bytes parse_nccl_tests_size(const std::string& text, const std::string& option);

}  // namespace lockstep
