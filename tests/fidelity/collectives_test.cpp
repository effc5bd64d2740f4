// Is it true of collectives? Predicted against nccl-tests tables that others measured, and against the
// figures of the field that a communication model must reproduce.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/study/bench/collective_table.h"
#include "sim/study/validation/collective_validation.h"
#include "tests/scenario/lab.h"
#include "tests/support/missed_points.h"
#include "tests/support/scenarios.h"

namespace lockstep::collectives_test {

constexpr std::int64_t mebi = 1024 * 1024;

CollectiveRow predicted(const CollectiveSetting& setting, std::int64_t bytes) {
  const Scenario scenario = load_collective_setting(setting, shipped_profiles());
  return CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{bytes});
}

double busbw(const CollectiveSetting& setting, std::int64_t bytes) {
  return static_cast<double>(predicted(setting, bytes).busbw.count()) * 1e-9;
}

// Four V100 with two NVLinks between each pair: about 130 of 150 GB/s at 128 MB, below 30 at 1 MB.
TEST_CASE("Four V100 on NVLink reach 130 GB/s at 128 MB within 10 %, and stay below 30 at 1 MB") {
  const CollectiveSetting node{.machine = "v100_4gpu_nvlink"};
  CHECK(busbw(node, 128'000'000) >= 130 * 0.9);
  CHECK(busbw(node, 128'000'000) <= 130 * 1.1);
  CHECK(busbw(node, 1'000'000) < 30);
}

// The same four V100 without NVLink have an all_reduce busbw of about 10 GB/s. No PCIe node of V100 is among
// the tables: their parts say it.
TEST_CASE("Four V100 over PCIe reach 10 GB/s at 128 MB within 10 %") {
  nlohmann::ordered_json machine = *shipped_profiles().open(ProfileKind::machine, "v100_4gpu_nvlink")->value;
  machine["gpu_links"] = {{"kind", "pcie"}};
  const testing::Folder folder;
  const CollectiveSetting node{.machine = folder.write("v100_4gpu_pcie.json", machine.dump())};
  check_points({{"128 MB", std::abs(busbw(node, 128'000'000) / 10 - 1) * 100, 10}});
}

// nccl-tests on HGX H100: rings above trees at every size from 1 MiB to 1 GiB.
TEST_CASE("On eight H100 a ring is above a tree from 1 MiB to 1 GiB") {
  for (std::int64_t bytes = mebi; bytes <= 1024 * mebi; bytes *= 2) {
    INFO(bytes, " bytes");
    CHECK(busbw({.machine = "dgx_h100", .algorithm = "ring"}, bytes) >
          busbw({.machine = "dgx_h100", .algorithm = "tree"}, bytes));
  }
}

// Azure/AI-benchmarking-guide, interpolated between 269 us at 16 MiB and 705 us at 64 MiB: about 365 us.
TEST_CASE("A bucket of 25 MiB on eight A100 takes about 365 us") {
  const double microseconds = predicted({.machine = "dgx_a100_40gb"}, 25 * mebi).time.in_seconds() * 1e6;
  CHECK(microseconds >= 365 * 0.85);
  CHECK(microseconds <= 365 * 1.15);
}

const CollectiveValidation& as_shipped() {
  static const CollectiveValidation validation =
      validate_collectives({.indexes = {LOCKSTEP_SOURCE_DIR "/validate/measurements/nccl/index.json"},
                            .leave_out = {},
                            .profiles = {}},
                           shipped_profiles());
  return validation;
}

// Fitted rows: what the shipped profiles say of the tables they come from.
TEST_CASE("The shipped profiles reproduce the small and middle sizes of their tables within 15 and 12 %") {
  CHECK(summarise_errors(as_shipped().points, SizeClass::middle).median <= 0.12);
  CHECK(summarise_errors(as_shipped().points, SizeClass::small).median <= 0.15);
}

TEST_CASE("The shipped profiles reproduce the sizes of 1 MiB and more of their tables within 5 %") {
  CHECK(summarise_errors(as_shipped().points, SizeClass::large).median <= 0.05);
}

// Forced tables of one site (H100, four GPUs): at each size, of two algorithms or protocols that differ by
// more than 10 % the faster is the faster.
TEST_CASE("The order of forced algorithms and protocols is right in 95 % of the pairs") {
  std::map<std::pair<std::int64_t, std::string>, std::vector<HeldOutPoint>> rivals;
  for (const HeldOutPoint& point : as_shipped().points)
    if (point.table.starts_with("h100_wayne_"))
      rivals[{point.measured.size.count(), point.cell}].push_back(point);
  int pairs = 0;
  int right = 0;
  std::vector<CheckedPoint> by_how_much;  // the faster is predicted to be slower
  for (const auto& [size, points] : rivals)
    for (const HeldOutPoint& a : points)
      for (const HeldOutPoint& b : points)
        if (a.measured.time.in_seconds() > 1.1 * b.measured.time.in_seconds()) {
          ++pairs;
          right += a.predicted_s > b.predicted_s ? 1 : 0;
          if (a.table != b.table)
            by_how_much.push_back(
                {fmt::format("{} above {}, {} bytes", a.table, b.table, a.measured.size.count()),
                 (b.predicted_s / a.predicted_s - 1) * 100, 0});
        }
  REQUIRE(pairs > 0);
  CHECK(right >= 0.95 * pairs);
  check_points(
      by_how_much,
      {{"h100_wayne_proto-ll128_1n4g_allreduce above h100_wayne_algo-nvls_1n4g_allreduce, 268435456 bytes",
        1.2},
       {"h100_wayne_proto-ll128_1n4g_allreduce above h100_wayne_attr_4gpu_nvls_allreduce, 268435456 bytes",
        1.2}});
}

}  // namespace lockstep::collectives_test
