#pragma once

// A comparison of two scenarios as a page, made of the document that --json prints.
//
// Idea:      each difference is a row with a bar from no difference at all to what it costs, to the right where it
//            takes time and to the left where it saves it; below them what they do to each other, and the sum.
// Invariant: all bars of costs have one scale and one zero; so have the two iterations.
// Cost:      linear in the document.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// `document`: lockstep.compare/1.
std::string comparison_page(const nlohmann::ordered_json& document);

}  // namespace lockstep
