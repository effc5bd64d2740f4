// One switch that every NIC is plugged into: it never blocks, a message pays one hop.

#include "sim/network/topology.h"

namespace lockstep::topologies::single_switch {
namespace {

void build(Topology&) {}

void route(const Topology& topology, Port, Port, std::vector<LinkId>&, Duration& latency) {
  latency += topology.fabric().hop_latency;
}

const Registration<FabricKind> single_switch_registration{
    "single_switch", {build, route, "every NIC on one switch that never blocks"}};

}  // namespace
}  // namespace lockstep::topologies::single_switch
