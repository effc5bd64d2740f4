#pragma once

// What ran when, row by row, as what lanes.html draws.
//
// Invariant: rows share one axis from 0; spans stay within it and are never thinner than can be seen.
// Cost:      linear in the spans.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep {

struct LaneSpan {
  double start = 0;
  double end = 0;
  std::string title;
  std::string colour;    // CSS
  double thickness = 1;  // of the row
  bool stands = false;   // on the row's lower edge, where its thickness is a level
};

struct PageLane {
  std::string name;
  std::vector<LaneSpan> spans;
};

// `whole`: where the axis ends, which `end_text` says. Rows shrink where there are many.
nlohmann::ordered_json lane_chart(const std::string& caption, const std::vector<PageLane>& lanes,
                                  double whole, const std::string& end_text);

}  // namespace lockstep
