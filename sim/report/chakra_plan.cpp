#include "sim/report/chakra_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace lockstep {

bool ExportedPlan::is_kernel(OpId op) const {
  return plan_.kind[op.index] == OpKind::transfer &&
         plan_.paths[plan_.path[op.index]].kind == PathKind::kernel;
}

bool ExportedPlan::has_bounds() const {
  return std::any_of(plan_.paths.begin(), plan_.paths.end(),
                     [](const Path& path) { return path.bound != KernelBound{}; });
}

void ExportedPlan::check_work(OpId op) const {
  const OpKind kind = plan_.kind[op.index];
  if (rank_of(op) >= static_cast<std::uint32_t>(scenario_.cluster.ranks()))
    refuse(op, "is done by a host");
  if (kind == OpKind::relay || (kind == OpKind::transfer && !is_kernel(op)))
    refuse(op, "is a message of no collective");
  if (kind == OpKind::join && plan_.amount[op.index] != 0)
    refuse(op, "holds a lane outside of collectives");
  if (lane_of(op).discipline == Discipline::when_ready)
    refuse(op, "runs when it is ready");
}

void ExportedPlan::refuse(OpId op, std::string_view what) const {
  throw ConfigError(in_file(
      scenario_, fmt::format("--export-chakra: \"{}\" {}, which a trace cannot hold", name_of(op), what)));
}

}  // namespace lockstep
