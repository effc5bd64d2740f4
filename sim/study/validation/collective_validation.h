#pragma once

// The accuracy of collectives: predicted against measured tables, by machine and by size.
//
// Problem:   one mean hides where a model is good; a fit shown on its own rows shows nothing.
// Idea:      errors by profile and size class with one vote a cell, either of the shipped profiles on the
//            tables they were fitted to, or of fits that have not seen what they predict. Beside them two
//            models without mechanism, how often the 80 % band of what was left out alike holds, and how many of the
//            choices that tables state are made here.
// Invariant: fitted and held-out errors never share a table; what its own source calls unhealthy stays out.
// Cost:      as shipped: a second; held out: a fit a fold (minutes for all shipped tables).

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/fit/cross_validation.h"

namespace lockstep {

struct CollectiveValidation {
  std::optional<LeaveOut> left_out;   // empty: the shipped profiles, on what they were fitted to
  std::vector<MeasuredTable> tables;  // healthy ones of the profiles asked for
  std::vector<HeldOutPoint> points;
  std::vector<std::string> not_predicted;  // profiles with tables and no point
};

struct CollectiveValidationOptions {
  std::vector<std::string> indexes;  // lockstep.collective_tables/1
  std::optional<LeaveOut> leave_out;
  std::vector<std::string> profiles;  // empty: all
};

// Throws ConfigError for a profile without tables, a table that its machine cannot run, and when there is no
// point to judge.
CollectiveValidation validate_collectives(const CollectiveValidationOptions& options,
                                          const ProfileStore& store);

// How often the points' bands hold them, and half their width beside the median error.
struct BandCoverage {
  double share = 0;
  double half_width = 0;
  double median_error = 0;
};
BandCoverage band_coverage(std::span<const HeldOutPoint> points, SizeClass size_class);

// Of the points whose table says which algorithm (and protocol) ran: what is chosen here.
struct ChoiceShare {
  std::size_t stated = 0;
  std::size_t alike = 0;
  std::size_t tables = 0;
};
ChoiceShare share_of_choices(const CollectiveValidation& validation);

nlohmann::ordered_json to_json(const CollectiveValidation& validation);
std::string to_text(const CollectiveValidation& validation);
std::string to_markdown(const CollectiveValidation& validation);

}  // namespace lockstep
