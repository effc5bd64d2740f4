#pragma once

// Which links can hold anybody back.
//
// Problem:   a message leaves by a port, a NIC and a leaf and arrives by as many, and each of them would be looked at
//            whenever one begins or ends.
// Idea:      links that every route crosses equally often are shared by the same flows in the same way. The
//            narrowest of them offers each share the least at every level of filling (fair_share.h), so that the
//            first may stand for all with the capacity of the narrowest. A class of alike links splits at each list
//            of uses that crosses but a part of it, or its parts unequally often.
// Invariant: no rate changes by it, nor the order in which flows are looked at. A link that some route crosses alone,
//            as kernels do theirs, stands for itself: its capacity may change.
// Cost:      two passes over the uses of all routes.

#include <span>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/route_table.h"

namespace lockstep {

struct BindingLink {
  bool binds = false;  // else another stands for it, or nobody crosses it
  Bandwidth capacity;  // of the narrowest that it stands for
};

// By LinkId, as `capacities` are.
std::vector<BindingLink> find_binding_links(std::span<const Bandwidth> capacities, const RouteTable& routes);

}  // namespace lockstep
