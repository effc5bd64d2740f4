#include "sim/report/link_use.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "sim/report/report.h"
#include "tests/scenario/lab.h"

namespace lockstep::link_use_test {

using testing::load_lab;
using testing::load_resnet;

std::vector<LinkUseTrack> tracks_of(const Simulation& simulation) {
  const RankView view(simulation.steady, critical_representative(simulation.steady));
  return busiest_links(simulation.steady, simulation.cluster->topology, view.start_of(view.iterations()),
                       view.end_of(view.iterations()));
}

// Seconds that the link would take for all that lies under its staircase.
double full_seconds(const LinkUseTrack& track) {
  double seconds = 0;
  for (const Span& span : track.spans) seconds += span.busy * (span.end - span.start).in_seconds();
  return seconds;
}

TEST_CASE("under a NIC's staircase lies what its host sends in an iteration") {
  for (const char* fidelity : {"flow", "step"}) {
    CAPTURE(fidelity);
    const Scenario scenario =
        load_lab({{"simulation.fidelity", fidelity}, {"communication.collectives_in_flight", "1"}});
    const Simulation simulation = simulate(scenario);
    const std::vector<LinkUseTrack> tracks = tracks_of(simulation);
    REQUIRE(tracks.size() == 1);
    CHECK(tracks[0].name == "network");
    const double sent =
        static_cast<double>(summarise(scenario, simulation).communication.bytes_per_gpu.count());
    const LinkId nic{0};
    const auto bandwidth = static_cast<double>(simulation.cluster->topology.links()[nic].bandwidth.count());
    CHECK(full_seconds(tracks[0]) * bandwidth == doctest::Approx(sent).epsilon(0.01));
  }
}

TEST_CASE("a staircase is in order, never above the whole link, and of one link a kind") {
  const Simulation simulation = simulate(load_resnet());
  const std::vector<LinkUseTrack> tracks = tracks_of(simulation);
  REQUIRE(tracks.size() == 3);
  CHECK(tracks[0].name == "GPU link");
  CHECK(tracks[2].name == "network");
  for (const LinkUseTrack& track : tracks) {
    Time reached;
    for (const Span& span : track.spans) {
      CHECK(span.name == track.spans[0].name);
      CHECK(span.start >= reached);
      CHECK(span.end > span.start);
      CHECK(span.busy > 0);
      CHECK(span.busy <= 1);
      reached = span.end;
    }
  }
}

TEST_CASE("one GPU alone uses no link") {
  CHECK(tracks_of(simulate(load_lab({{"cluster.nodes", "1"}}))).empty());
}

}  // namespace lockstep::link_use_test
