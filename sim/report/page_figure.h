#pragma once

// Times and sizes as cells of a page.
//
// Idea:      what a reader sees is rounded, in a unit that suits it; what a script reads and sorts by is the number in
//            seconds or bytes, unrounded.

#include "sim/base/quantity_text.h"
#include "sim/report/page/page_table.h"

namespace lockstep {

inline PageCell time_figure(Duration time) {
  return {format_duration(time), nlohmann::ordered_json(time.in_seconds())};
}

inline PageCell bytes_figure(Bytes bytes) {
  return {format_bytes(bytes), nlohmann::ordered_json(bytes.count())};
}

}  // namespace lockstep
