#pragma once

// Leaves and a spine, shared by the fabrics that are built of them.
//
// A leaf has as many ports as the profile says. Its way up to the spine and down again is one link each,
// as wide as all its ports together divided by the oversubscription; the spine itself never blocks.
// A message inside a leaf pays one switch hop, one through the spine three.

#include <cstdint>

#include "sim/network/topology.h"

namespace lockstep {

// `width`: what each leaf's way up, and its way down, carries.
void build_leaf_spine(Topology& topology, std::uint32_t leaves, Bandwidth width);
void route_leaf_spine(const Topology& topology, std::uint32_t from_leaf, std::uint32_t to_leaf,
                      std::vector<LinkId>& links, Duration& latency);

// As wide as every port of a full leaf.
Bandwidth leaf_width(const Topology& topology, std::uint32_t ports);
// Leaves hold whole nodes.
std::uint32_t nodes_per_leaf(const Topology& topology, std::uint32_t ports_per_node);
}  // namespace lockstep
