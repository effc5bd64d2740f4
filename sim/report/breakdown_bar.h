#pragma once

// A breakdown of a JSON document as a bar of a page's table, and the legend of such bars.
//
// Invariant: every page paints a part of the time alike (time_parts), and a legend has the parts that some bar has.

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/report/page/page_table.h"

namespace lockstep {

// `whole`: the seconds that fill the column. Null of a document makes no bar.
std::vector<BarPart> breakdown_bar(const nlohmann::ordered_json& breakdown, double whole);

double total_seconds(const nlohmann::ordered_json& breakdown);

// For swatches.html: to be merged into a page's view.
nlohmann::ordered_json breakdown_legend(const std::vector<nlohmann::ordered_json>& breakdowns);

}  // namespace lockstep
