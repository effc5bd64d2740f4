#include "sim/study/bench/table_predictor.h"

#include <doctest/doctest.h>

#include "tests/support/scenarios.h"

namespace lockstep::table_predictor_test {

constexpr std::int64_t release = 21'800;

MeasuredTable table_of(CollectiveOp op, std::int64_t gpus) {
  return {.machine = "dgx_a100_80gb", .op = op, .gpus_per_node = gpus};
}

TEST_CASE("points that differ only in who measured them are one query") {
  TablePredictor predictor(shipped_profiles());
  MeasuredTable elsewhere = table_of(CollectiveOp::all_reduce, 8);
  const std::size_t query = predictor.add(elsewhere, Bytes{1 << 20}, release);
  elsewhere.group = "elsewhere";
  CHECK(predictor.add(elsewhere, Bytes{1 << 20}, release) == query);
  CHECK(predictor.add(elsewhere, Bytes{1 << 21}, release) != query);
}

TEST_CASE("what is wanted is CollectiveBench's row, what is not stays empty") {
  TablePredictor predictor(shipped_profiles());
  const std::size_t left_out = predictor.add(table_of(CollectiveOp::all_reduce, 8), Bytes{1 << 20}, release);
  const std::size_t reduced = predictor.add(table_of(CollectiveOp::all_reduce, 4), Bytes{1 << 20}, release);
  const std::size_t gathered = predictor.add(table_of(CollectiveOp::all_gather, 8), Bytes{1 << 20}, release);
  Scenario scenario = predictor.first_scenario();
  std::vector<bool> wanted(3, true);
  wanted[left_out] = false;
  const std::vector<CollectiveRow> rows = predictor.predict(scenario.cluster.calibration, wanted);
  CHECK(rows[left_out].algorithm.empty());
  CHECK(rows[gathered].time ==
        CollectiveBench(scenario).predict(CollectiveOp::all_gather, Bytes{1 << 20}).time);
  scenario.cluster.gpus_per_node = 4;
  CHECK(rows[reduced].time ==
        CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{1 << 20}).time);
}

}  // namespace lockstep::table_predictor_test
