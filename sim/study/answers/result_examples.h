#pragma once

// Results in which all is there that may be, and all is left out that may be.
//
// Problem:   which keys a result can have depends on the scenario; nobody wants to run all scenarios to know them.
// Idea:      the writer of results is given reports that no run made: an empty one, one with every optional part
//            in it, and one with something in every list and for every value that may be unknown.
// Invariant: no key of a result is missing in the fullest, and every key of the barest is in all results; a law
//            holds both to the results of the shipped scenarios.

#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep {

nlohmann::ordered_json barest_result();
nlohmann::ordered_json fullest_result();

// These and what lies between them: together they have every kind that a value can be of.
std::vector<nlohmann::ordered_json> result_examples();

}  // namespace lockstep
