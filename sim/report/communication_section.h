#pragma once

// The communication of a page: when each bucket was reduced, what else was exchanged, and how much of it was hidden.
//
// Invariant: each view is null where there is nothing to tell.

#include <nlohmann/json.hpp>

#include "sim/report/report.h"

namespace lockstep {

// With "bucket_chart" beside the table.
nlohmann::ordered_json buckets_table(const Report& report);
// Where more is exchanged than the buckets.
nlohmann::ordered_json collectives_table(const Report& report);
nlohmann::ordered_json communication_table(const Report& report);

}  // namespace lockstep
