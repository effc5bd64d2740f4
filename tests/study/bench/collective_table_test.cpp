#include "sim/study/bench/collective_table.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/study/answers/strategy_cost.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::collective_table_test {

Scenario bench_scenario(std::int64_t nodes) {
  return load_collective_setting({.machine = "dgx_a100_40gb", .nodes = nodes}, shipped_profiles());
}

// Of every operation that `algorithm` can run there, small and large.
std::vector<CollectiveQuery> queries_that_run(const Scenario& scenario, const std::string& algorithm) {
  const Communicator world = build_cluster(scenario)->world;
  std::vector<CollectiveQuery> queries;
  for (const std::string& name : collective_op_names()) {
    const CollectiveOp op = *find_collective_op(name);
    if (can_run(*Registry<Collective>::find(algorithm), op, world))
      for (const std::int64_t bytes : {0, 1 << 10, 3 << 20})
        queries.push_back({.op = op, .bytes = Bytes{bytes}});
  }
  return queries;
}

TEST_CASE("a table has a row per size, each at least as long as the one before") {
  const Scenario scenario = bench_scenario(2);
  const auto rows = CollectiveBench(scenario).predict(CollectiveOp::all_reduce, SizeRange{});
  CHECK(rows.size() == 31);  // 2^3 to 2^33
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(rows[i].size.count() == 2 * rows[i - 1].size.count());
    CHECK(rows[i].time >= rows[i - 1].time);
  }
}

TEST_CASE("bandwidths are nccl-tests': size over time, times 2 (n - 1) / n on the bus") {
  const Scenario scenario = bench_scenario(1);
  const CollectiveRow row = CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{1 << 28});
  const double algbw = static_cast<double>(1 << 28) / row.time.in_seconds();
  CHECK(static_cast<double>(row.algbw.count()) == doctest::Approx(algbw));
  CHECK(static_cast<double>(row.busbw.count()) == doctest::Approx(algbw * 2 * 7 / 8));
}

TEST_CASE("a gathered buffer is rounded down to 16 bytes a rank") {
  const Scenario scenario = bench_scenario(1);
  const CollectiveBench bench(scenario);
  CHECK(bench.predict(CollectiveOp::all_gather, Bytes{64}).size == Bytes{0});
  const CollectiveRow row = bench.predict(CollectiveOp::reduce_scatter, Bytes{1000});
  CHECK(row.size == Bytes{1000 / (8 * 16) * (8 * 16)});
  CHECK(row.elements == row.size.count() / 4 / 8);
  CHECK(bench.predict(CollectiveOp::broadcast, Bytes{1000}).elements == 250);
}

TEST_CASE("an algorithm, a protocol and channels that are forced are used") {
  const Scenario scenario = load_collective_setting(
      {.machine = "dgx_a100_40gb", .protocol = "simple", .channels = 4}, shipped_profiles());
  const CollectiveRow row = CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{64 << 20});
  CHECK(row.protocol == "simple");
  CHECK(row.algorithm == "ring");
  CHECK(row.channels == 4);
}

// One plan holds all that is asked at once; what it remembers of one collective must not reach another.
TEST_CASE("asked together, collectives take what each takes alone") {
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
    for (const std::string& algorithm : Registry<Collective>::names()) {
      CAPTURE(algorithm);
      Scenario scenario = load_collective_setting({.machine = "dgx_h100", .nodes = 3, .fidelity = fidelity},
                                                  shipped_profiles());
      scenario.communication.algorithm = algorithm;
      const CollectiveBench bench(scenario);
      const std::vector<CollectiveQuery> queries = queries_that_run(scenario, algorithm);
      const std::vector<CollectiveRow> rows = bench.predict(queries);
      REQUIRE(rows.size() == queries.size());
      for (std::size_t i = 0; i < rows.size(); ++i)
        CHECK(rows[i].time == bench.predict(queries[i].op, queries[i].bytes).time);
    }
}

// Messages between pairs differ from rank to rank, so nobody may stand for others in them.
TEST_CASE("what pairs exchange takes as long at step whether ranks were folded or not") {
  for (const char* machine : {"cpu_gloo", "dgx_a100_40gb"}) {
    CAPTURE(machine);
    Scenario scenario = load_collective_setting(
        {.machine = machine, .nodes = 4, .gpus_per_node = 1, .fidelity = Fidelity::step}, shipped_profiles());
    const CollectiveRow folded = CollectiveBench(scenario).predict(CollectiveOp::all_to_all, Bytes{1 << 20});
    scenario.simulation.fold = false;
    const CollectiveRow each = CollectiveBench(scenario).predict(CollectiveOp::all_to_all, Bytes{1 << 20});
    CHECK(folded.time == each.time);
  }
}

double slowest_improvement(LoadedScenario scenario) {
  const StrategyCost cost = find_strategy_cost(predict(std::move(scenario), {.with_band = false}));
  CHECK(cost.sensitivities.size() == 4);
  double slowest = 0;
  for (const Sensitivity& change : cost.sensitivities)
    slowest = std::max(slowest, change.iteration.in_seconds() / cost.iteration.in_seconds());
  return slowest;
}

TEST_CASE("better hardware is never slower") {
  CHECK(slowest_improvement(testing::load_resnet({{"compute.slowdown_during_communication", "1.0"}})) <= 1);
}

// What a collective takes of a GPU's memory is counted at the speed it was planned for, which between faster NICs is
// more than it reaches.
TEST_CASE("better hardware is slower by no more than what planned speeds promise") {
  CHECK(slowest_improvement(testing::load_resnet()) <= 1.001);
}

TEST_CASE("one GPU has nothing but computation to improve") {
  const StrategyCost cost =
      find_strategy_cost(predict(testing::load_lab({{"cluster.nodes", "1"}}), {.with_band = false}));
  CHECK(cost.sensitivities.size() == 1);
  CHECK(cost.bytes_per_gpu == Bytes{0});
}

// stas00/ml-engineering (744d01e1), network chapter: busbw of large all-reduces on B200, of 4 to 8 GPUs. Four and five
// run rings, whose bus is the wire's; heads of 90 GB/s each for six and seven and of 80 for eight make NVLS the faster.
TEST_CASE("NVLS takes over from rings with six B200 and more, and reaches what was measured") {
  struct Measured {
    std::int64_t gpus;
    double busbw;
    const char* algorithm;
  };
  for (const auto& [gpus, busbw, algorithm] :
       {Measured{4, 673, "ring"}, {5, 678, "ring"}, {6, 778, "nvls"}, {7, 811, "nvls"}, {8, 838, "nvls"}}) {
    const Scenario scenario = load_collective_setting(
        {.machine = "hgx_b200", .nodes = 1, .gpus_per_node = gpus}, shipped_profiles());
    const CollectiveRow row =
        CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{std::int64_t{1} << 33});
    CAPTURE(gpus);
    CHECK(row.algorithm == algorithm);
    CHECK(static_cast<double>(row.busbw.count()) / 1e9 == doctest::Approx(busbw).epsilon(0.1));
  }
}

}  // namespace lockstep::collective_table_test
