#pragma once

// A prediction as a page: the answer, where the time goes, what ran when, and what it rests on.
//
// Idea:      the sections of report_text as templates; the last iteration of the critical rank lane by lane, where the
//            caller still has its run.
// Invariant: the same bytes for the same report; names from a scenario are escaped (page.h).

#include <nlohmann/json.hpp>
#include <string>

#include "sim/report/report.h"

namespace lockstep {

// `timeline`: of timeline_picture.h; null where no run is at hand.
std::string to_html(const Report& report, const LoadedScenario& scenario,
                    const nlohmann::ordered_json& timeline = {});

}  // namespace lockstep
