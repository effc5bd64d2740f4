#pragma once

// Fabrics drawn as graphs: names for their vertices, links both ways, and the routes over them.
//
// Idea:      a port is called "node3.nic0", a switch what its fabric calls it; everything else is the
// graph's. Cost:      a breadth-first search per route.

#include <string>
#include <vector>

#include "sim/network/topology.h"

namespace lockstep {

std::string port_name(Port port);

// Both directions of a link between two vertices of the topology's fabric graph.
void join_vertices(Topology& topology, const std::string& a, const std::string& b, const Link& link);

// A path of fewest hops; a message pays the switches' latency at every switch it enters.
void route_by_graph(const Topology& topology, Port from, Port to, std::vector<LinkId>& links,
                    Duration& latency);

}  // namespace lockstep
