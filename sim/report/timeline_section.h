#pragma once

// The timeline of a page: one iteration of the critical rank, lane by lane.
//
// Idea:      what timeline_picture.h found, as lanes of an SVG for readers without a script and on paper, and whole, with
//            the look of each category, for timeline.js.

#include <nlohmann/json.hpp>

namespace lockstep {

// `timeline`: of timeline_picture.h. Null where that is null, or nothing ran.
nlohmann::ordered_json timeline_view(const nlohmann::ordered_json& timeline);

}  // namespace lockstep
