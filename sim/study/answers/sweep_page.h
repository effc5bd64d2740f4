#pragma once

// A sweep as a page, made of the document that --json prints.
//
// Idea:      the axis with most values lies along the chart; every setting of the others is a line of its own. An axis of
//            words has a place a word.
// Invariant: the best row is the one that the document names. Of very many rows the first ones are told, and how many
//            are not.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

struct SweepPageFacts {
  std::string scenario;  // its name
};

// `document`: lockstep.sweep/1.
std::string sweep_page(const nlohmann::ordered_json& document, const SweepPageFacts& facts);

}  // namespace lockstep
