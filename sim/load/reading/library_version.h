#pragma once

// The release of a communication library, as scenarios and calibrations state it: "2.28" or "2.18.3".
//
// Invariant: what is no release is a problem at its place, and answers zero.

#include <cstdint>

#include "sim/base/json_reader.h"

namespace lockstep {

// As NCCL_VERSION_CODE has it.
std::int64_t read_library_version(const JsonReader& json);

}  // namespace lockstep
