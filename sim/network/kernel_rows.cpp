#include "sim/network/kernel_rows.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::uint32_t no_link = 0xffffffff;

// By path: the one link that a kernel on it takes, and nothing else.
std::vector<std::uint32_t> links_of_kernels(const Plan& plan, const RouteTable& routes) {
  std::vector<std::uint32_t> links(plan.paths.size(), no_link);
  for (std::uint32_t path = 0; path < links.size(); ++path) {
    const std::span<const LinkUse> uses = routes.uses(RouteId{path});
    const bool is_simple = plan.paths[PathId{path}].kind == PathKind::kernel && uses.size() == 1 &&
                           uses.front().multiplicity == 1 &&
                           routes.latency(RouteId{path}) == Duration::zero();
    if (is_simple)
      links[path] = uses.front().link.index;
  }
  return links;
}

bool decides_while_running(const Plan& plan) {
  return std::any_of(plan.lanes.begin(), plan.lanes.end(),
                     [](const Lane& lane) { return lane.discipline == Discipline::when_ready; });
}

}  // namespace

KernelRows::KernelRows(const Plan& plan, const RouteTable& routes, Timeline& timeline)
    : plan_(plan), timeline_(timeline) {
  if (decides_while_running(plan))
    return;
  const std::vector<std::uint32_t> links = links_of_kernels(plan, routes);
  const auto link_of = [&](std::size_t op) {
    return plan.kind[op] == OpKind::transfer ? links[plan.path[op].index] : no_link;
  };
  goes_on_.resize(plan.size());
  for (std::size_t op = 0; op < plan.size(); ++op) {
    const OpId next = plan.next_in_lane[op];
    if (next == no_op || plan.dependency_count[next.index] != 1 ||
        plan.successor_begin[op] != plan.successor_begin[op + 1])
      continue;
    const std::uint32_t link = link_of(op);
    goes_on_[op] = link != no_link && link == link_of(next.index) &&
                   routes.weight(route(OpId{static_cast<std::uint32_t>(op)})) == routes.weight(route(next));
  }
}

}  // namespace lockstep
