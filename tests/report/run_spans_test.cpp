#include "sim/report/run_spans.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "sim/report/report.h"
#include "tests/scenario/lab.h"

namespace lockstep::run_spans_test {

using testing::load_lab;
using testing::load_resnet;

// Of a scenario whose one representative is the critical rank.
struct Seen {
  Simulation simulation;
  Report report;
  RunSpans spans;

  explicit Seen(const Scenario& scenario, std::size_t first_iteration = 0)
      : simulation(simulate(scenario)),
        report(summarise(scenario, simulation)),
        spans(simulation.steady, first_iteration) {}
};

TEST_CASE("a collective's span is the stretch that the report lists, to the picosecond") {
  for (const Scenario& scenario :
       {load_resnet(), load_lab(), load_lab({{"simulation.fidelity", "step"}}),
        load_resnet({{"training.strategy", "zero2"}, {"training.bucket_cap_mb", "null"}})}) {
    const Seen seen(scenario);
    const Run& run = seen.simulation.steady;
    const Time start = RankView(run, 0).start_of(run.iterations.size() - 1);
    std::map<const Communication*, Span> drawn;
    for (const Span& span : seen.spans.collectives(run.lanes.communication[0], 0))
      drawn[span.communication] = span;
    const Communications& written = run.iterations.back().communications;
    REQUIRE(written.size() == seen.report.communication.collectives.size());
    REQUIRE_FALSE(written.empty());
    for (std::size_t i = 0; i < written.size(); ++i) {
      const CollectiveReport& listed = seen.report.communication.collectives[i];
      REQUIRE(drawn.contains(&written[i]));
      CHECK(drawn[&written[i]].start - start == listed.start);
      CHECK(drawn[&written[i]].end - start == listed.end);
    }
  }
}

TEST_CASE("computing and waiting fill a rank's iterations, and add up by what they are charged to") {
  const Seen seen(load_lab({{"simulation.iterations", "3"}}), 1);
  Time reached = RankView(seen.simulation.steady, 0).end_of(0);
  std::map<std::string_view, Duration> sums;
  for (const Span& span : seen.spans.computing(0)) {
    CHECK(span.start == reached);
    reached = span.end;
    sums[span.category] += span.end - span.start;
  }
  CHECK(reached == seen.spans.iterations(0).back().end);
  for (const TimePart& part : time_parts) {
    const Duration mean = Duration::picoseconds(sums[part.key].picoseconds() / 3);
    const Duration told = seen.report.breakdown.*part.time;
    CHECK(std::max(mean, told) - std::min(mean, told) <= Duration::picoseconds(1));
  }
}

TEST_CASE("iterations follow each other, the warm-up first") {
  const std::vector<Span> spans = Seen(load_lab({{"simulation.iterations", "2"}})).spans.iterations(0);
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].name == "warm-up");
  CHECK(spans[0].start == Time{});
  CHECK(spans[2].name == "iteration 2");
  for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].start == spans[i - 1].end);
}

}  // namespace lockstep::run_spans_test
