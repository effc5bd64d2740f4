#pragma once

// The answer of a search for layouts as a page, made of the document that --json prints.
//
// Invariant: the best comes first, with the options that predict it again; all bars have one scale.
// Cost:      linear in the document.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// `document`: lockstep.layouts/1.
std::string layout_page(const nlohmann::ordered_json& document);

}  // namespace lockstep
