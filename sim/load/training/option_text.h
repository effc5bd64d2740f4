#pragma once

// Options whose name carries a number: powersgd_4, topk_0.1, every_2, one_in_2, size_100000000.
//
// Invariant: parse_X(text_of(x)) == x. Parsing answers nothing where the form or its number is wrong;
//            X_forms is what an error then calls valid.

#include <optional>
#include <string>
#include <string_view>

#include "sim/training/options.h"

namespace lockstep {

inline constexpr std::string_view compression_forms =
    "none, fp16, bf16, powersgd_R with a rank R from 1 to 1024, or topk_PERCENT above 0 and at most 100";
inline constexpr std::string_view recompute_forms =
    "none, selective, selective_op, full, every_K or one_in_K with K of 1 or more";
inline constexpr std::string_view auto_wrap_forms = "block, none, or size_N with N elements, 1 or more";

std::optional<Compression> parse_compression(std::string_view text);
std::optional<Recompute> parse_recompute(std::string_view text);
std::optional<AutoWrap> parse_auto_wrap(std::string_view text);

std::string text_of(const Compression& compression);
std::string text_of(const Recompute& recompute);
std::string text_of(const AutoWrap& wrap);

// Without its number: "powersgd_R".
std::string form_of(CompressionKind kind);

}  // namespace lockstep
