#pragma once

// "Did you mean": the valid name closest to the one that was found.
//
// Idea: Damerau-Levenshtein distance (a swap of neighbours counts as one edit), blind to case and separators, so
// that "DPP" finds "ddp"; or, where every word that was written is one of the name's or begins one, half an edit
// for each that is short or missing, so that "vocab" finds "vocabulary" and "bucket_mb" "bucket_cap_mb". A name
// further than max(2, length / 3) edits is no suggestion but noise, and none is made.
// Invariant: ties go to the first in the given order. Cost: O(length^2) a candidate, for error messages only.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

std::optional<std::string> nearest_name(std::string_view wanted, std::span<const std::string> valid);

// The tail of an error: `did you mean "ddp"? valid: ddp, dp, fsdp`. Above 12 names, the nearest 12 and the
// count; `wanted` may be empty where nothing was found.
std::string describe_choices(std::string_view wanted, std::span<const std::string> valid);

}  // namespace lockstep
