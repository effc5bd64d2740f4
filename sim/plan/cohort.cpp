#include "sim/plan/cohort.h"

namespace lockstep {

std::vector<Cohort> cohorts_of(const Roles& roles, std::span<const std::uint32_t> cohort_of,
                               std::uint32_t cohorts) {
  std::vector<Cohort> result(cohorts);
  for (Cohort& cohort : result) cohort.place_of.assign(roles.representatives.size(), Cohort::elsewhere);
  for (std::uint32_t role = 0; role < roles.representatives.size(); ++role) {
    const Rank representative = roles.representatives[role];
    Cohort& cohort = result[cohort_of[representative.index]];
    cohort.place_of[role] = static_cast<std::uint32_t>(cohort.representatives.size());
    cohort.representatives.push_back(representative);
    cohort.roles.push_back(role);
  }
  return result;
}

}  // namespace lockstep
