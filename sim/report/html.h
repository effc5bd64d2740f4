#pragma once

// A report as one page that needs nothing else: no script, no font, no network.
//
// Idea:      the tables of report_text, a bar of where the time goes and one of when each bucket ran, drawn
// as
//            inline SVG in the viewer's light or dark colours.
// Invariant: the same bytes for the same report; names from a scenario are escaped.

#include <string>

#include "sim/report/report.h"

namespace lockstep {

std::string to_html(const Report& report, const LoadedScenario& scenario);

}  // namespace lockstep
