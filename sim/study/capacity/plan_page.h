#pragma once

// A plan's answer as a page.
//
// Idea:      the page is made of the document that --json prints and of nothing else, so that the two cannot differ.
// Invariant: the answer comes first; every plan, every rejected option and every warning is on it.
// Cost:      linear in the document.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// `document`: lockstep.plan/1.
std::string plan_page(const nlohmann::ordered_json& document);

}  // namespace lockstep
