#include "sim/load/import/chakra_program.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "sim/report/prediction.h"
#include "tests/support/chakra_files.h"
#include "tests/support/import_samples.h"

namespace lockstep::chakra_program_test {

using testing::chakra_collective;
using testing::chakra_kernel;
using testing::chakra_message;
using testing::chakra_node;
using testing::plan_scenario;
using testing::TraceFolder;

constexpr std::int64_t all_reduce = 0;
constexpr std::int64_t all_gather = 2;
constexpr std::int64_t reduce_scatter = 7;
constexpr std::int64_t mega = std::int64_t{1} << 20;

std::string refusal(const TraceFolder& folder) {
  try {
    read_chakra_program(folder.prefix());
  } catch (const ConfigError& error) {
    std::string all;
    for (const std::string& problem : error.problems) all += problem + "\n";
    return all;
  }
  return "";
}

bool says(const std::string& text, std::string_view words) {
  INFO(text);
  CHECK(text.find(words) != text.npos);
  return text.find(words) != text.npos;
}

Simulation simulation_of(const LoadedScenario& scenario) {
  return simulate(scenario, {.with_first = false});
}

std::int64_t iteration_of(const nlohmann::ordered_json& given, bool fold = true) {
  const LoadedScenario scenario = scenario_from(given, {.fold = fold});
  return reported_iteration(scenario, simulation_of(scenario)).picoseconds();
}

constexpr std::int64_t microsecond = 1'000'000;

TEST_CASE("kernels of a rank run one after another, and those of ranks beside each other") {
  const TraceFolder folder;
  folder.write_rank(0, {chakra_kernel(0, 5), chakra_kernel(1, 7)});
  folder.write_rank(1, {chakra_kernel(0, 3), chakra_kernel(1, 2, {0})});
  CHECK(iteration_of(plan_scenario(folder, "dgx_a100_80gb", 1, 2)) == (5 + 7) * microsecond);
}

TEST_CASE("operators of the CPU run beside kernels") {
  const TraceFolder folder;
  ChakraNode on_host = chakra_kernel(1, 9);
  on_host.attributes = {{"is_cpu_op", true}};
  folder.write_rank(0, {chakra_kernel(0, 5), on_host});
  CHECK(iteration_of(plan_scenario(folder, "dgx_a100_80gb", 1, 1)) == 9 * microsecond);
}

// astra-sim, examples/workload/microbenchmarks/generator_scripts/all_reduce.py: every NPU has one node, whose id is the
// NPU's number.
TEST_CASE("the public all-reduce of eight ranks takes what the collective takes") {
  const TraceFolder folder;
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    folder.write_rank(rank, {chakra_collective(rank, all_reduce, mega)});
  folder.write(chakra_file_of(folder.prefix(), 0),
               testing::bytes_of(testing::sample_named("all_reduce_8npus_1MB.0.et")));
  const LoadedScenario scenario = scenario_from(plan_scenario(folder, "dgx_h100", 1, 8));
  const Simulation simulation = simulation_of(scenario);
  CHECK(simulation.cluster->symmetry.roles.representatives.size() ==
        8);  // one file has another name for its node
  const Run& run = simulation.steady;
  REQUIRE(run.iterations.back().communications.size() == 1);
  const Communication& collective = run.iterations.back().communications.front();
  CHECK(collective.bytes == Bytes{mega});
  CHECK(collective.ranks == 8);
  const Duration taken =
      run.timeline.end[collective.of(0).end.index] - run.timeline.end[collective.of(0).begin.index];
  CHECK(reported_iteration(scenario, simulation) == taken);
  CHECK(taken > Duration::microseconds(1));
}

// The tutorial's trace: 50 us of computing beside the second all-reduce, both after the first.
TEST_CASE("a kernel runs beside a collective that does not wait for it") {
  const TraceFolder both, alone;
  const std::string sample = testing::bytes_of(testing::sample_named("compute_beside_all_reduce.0.et"));
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    both.write(chakra_file_of(both.prefix(), rank), sample);
    alone.write_rank(rank, {chakra_collective(1, all_reduce, mega)});
  }
  const std::int64_t first = iteration_of(plan_scenario(alone, "dgx_h100", 1, 8));
  const std::int64_t all = iteration_of(plan_scenario(both, "dgx_h100", 1, 8));
  CHECK(all > first + 50 * microsecond);
  CHECK(all < 3 * first + 100 * microsecond);
}

TEST_CASE("equal files are one program, and alike ranks fold") {
  const TraceFolder folder;
  for (std::uint32_t rank = 0; rank < 64; ++rank)
    folder.write_rank(rank, {chakra_kernel(0, 100), chakra_collective(1, all_reduce, mega, {0})});
  const ChakraReading reading = read_chakra_program(folder.prefix());
  CHECK(reading.program.programs.size() == 1);
  const nlohmann::ordered_json given = plan_scenario(folder, "dgx_a100_80gb", 8, 8);
  CHECK(simulation_of(scenario_from(given)).cluster->symmetry.roles.representatives.size() < 64);
  CHECK(iteration_of(given) == iteration_of(given, false));
}

TEST_CASE("groups that a file tells run beside each other, and fold") {
  const TraceFolder folder;
  folder.write_groups({{"1", {0, 1, 2, 3}}, {"2", {4, 5, 6, 7}}});
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    folder.write_rank(
        rank, {chakra_kernel(0, 10), chakra_collective(1, all_reduce, mega, {0}, rank < 4 ? "1" : "2")});
  const nlohmann::ordered_json given = plan_scenario(folder, "dgx_a100_80gb", 1, 8);
  const LoadedScenario scenario = scenario_from(given);
  CHECK(scenario.program->programs.size() == 1);
  CHECK(scenario.program->sets.size() == 1);
  CHECK(iteration_of(given) == iteration_of(given, false));
}

TEST_CASE("PyTorch's process groups are read where a metadata node tells them") {
  const TraceFolder folder;
  ChakraNode metadata = chakra_node(0, ChakraNodeType::metadata);
  metadata.input_values = R"(['[{"pg_name": "0", "ranks": []}, {"pg_name": "7", "ranks": [0, 1]}]'])";
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    folder.write_rank(rank, {metadata, chakra_collective(1, all_reduce, mega, {0}, "7"),
                             chakra_collective(2, all_reduce, mega, {1}, "0")});
  const Program program = read_chakra_program(folder.prefix()).program;
  CHECK(program.sets.size() == 1);
  CHECK(program.programs.size() == 1);
}

// comm_size is what one rank puts in (astra-sim/system/collective/Ring.cc); nccl-tests counts all parts.
TEST_CASE("sizes are those of Chakra") {
  const TraceFolder folder;
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    folder.write_rank(
        rank, {chakra_collective(0, all_gather, mega), chakra_collective(1, reduce_scatter, mega, {0}),
               chakra_collective(2, 9, 0, {1})});
  const Program program = read_chakra_program(folder.prefix()).program;
  const std::vector<ProgramNode>& nodes = program.programs.front().steps.front().nodes;
  CHECK(nodes[0].bytes == Bytes{4 * mega});
  CHECK(nodes[1].bytes == Bytes{mega});
  CHECK(nodes[2].bytes == Bytes{4});
  CHECK(nodes[2].op == CollectiveOp::all_reduce);
}

TEST_CASE("a message starts when both ends are ready, and its receiver goes on when it is there") {
  const TraceFolder folder;
  folder.write_rank(0, {chakra_kernel(0, 5), chakra_message(1, true, 0, 1, mega, {0})});
  folder.write_rank(1, {chakra_message(0, false, 0, 1, mega), chakra_kernel(1, 7, {0})});
  const std::int64_t taken = iteration_of(plan_scenario(folder, "dgx_a100_80gb", 1, 2));
  CHECK(taken > (5 + 7) * microsecond);
  CHECK(taken < (5 + 7 + 100) * microsecond);
}

TEST_CASE("kernels that state operations and no time are priced on the GPU") {
  const TraceFolder folder;
  ChakraNode kernel = chakra_node(0, ChakraNodeType::compute);
  kernel.attributes.push_back({"num_ops", ChakraInteger{std::int64_t{1} << 40}});
  kernel.attributes.push_back({"tensor_size", ChakraInteger{mega}});
  folder.write_rank(0, {kernel});
  nlohmann::ordered_json given = plan_scenario(folder, "dgx_a100_80gb", 1, 1);
  const std::int64_t in_bf16 = iteration_of(given);
  given["plan"]["precision"] = "fp32";
  // 312 TFLOP/s at most, in bf16.
  CHECK(in_bf16 > (std::int64_t{1} << 40) / 312);
  CHECK(iteration_of(given) > in_bf16);
}

TEST_CASE("what is impossible is refused with files and nodes") {
  const TraceFolder folder;
  const auto of_two = [&](std::vector<ChakraNode> first, std::vector<ChakraNode> second) {
    folder.write_rank(0, first);
    folder.write_rank(1, second);
    return refusal(folder);
  };
  says(of_two({chakra_kernel(0, 1, {1}), chakra_kernel(1, 1, {0})}, {chakra_kernel(0, 1)}),
       "row.0.et: rank 0's node 0 (node 0) never begins");
  says(of_two({chakra_kernel(0, 1, {12})}, {chakra_kernel(0, 1)}),
       "row.0.et: node 0 (node 0): waits for node 12, which is not in the file");
  says(of_two({chakra_kernel(3, 1), chakra_kernel(3, 1)}, {chakra_kernel(0, 1)}), "another node has this id");
  says(of_two({chakra_collective(0, all_reduce, 8)}, {chakra_collective(0, all_reduce, 16)}),
       "rank 1's node 0 (node 0) is all_reduce of 16 bytes, but where it meets rank 0");
  says(of_two({chakra_collective(0, all_reduce, 8)}, {chakra_kernel(0, 1)}),
       "rank 1 takes part in 0 collectives of a group in which rank 0 takes part in 1");
  says(of_two({chakra_collective(0, 77, 8)}, {chakra_kernel(0, 1)}), "found comm_type 77");
  says(of_two({chakra_node(0, static_cast<ChakraNodeType>(99))}, {chakra_kernel(0, 1)}), "found type 99");
  says(of_two({chakra_collective(0, all_reduce, 8, {}, "5")}, {chakra_kernel(0, 1)}),
       "which is told nowhere");
  says(of_two({chakra_message(0, true, 0, 1, 8)}, {chakra_kernel(0, 1)}), "which sends to rank 1");
  says(of_two({chakra_message(0, true, 0, 1, 8)}, {chakra_message(0, false, 0, 1, 9)}), "receives 9 bytes");
  says(of_two({chakra_message(0, true, 1, 0, 8)}, {chakra_kernel(0, 1)}),
       "comm_src is 1, but the file is of rank 0");
  // Each in another order.
  folder.write_groups({{"1", {0, 1}}, {"2", {0, 1}}});
  says(of_two({chakra_collective(0, all_reduce, 8, {}, "1"), chakra_collective(1, all_reduce, 8, {0}, "2")},
              {chakra_collective(0, all_reduce, 8, {}, "2"), chakra_collective(1, all_reduce, 8, {0}, "1")}),
       "or a partner never comes");
}

TEST_CASE("nodes that state no time and are nobody's business are counted in a warning") {
  const TraceFolder folder;
  folder.write_rank(0, {chakra_node(0, ChakraNodeType::memory_load), chakra_kernel(1, 4, {0})});
  const ChakraReading reading = read_chakra_program(folder.prefix());
  REQUIRE(reading.warnings.size() == 1);
  says(reading.warnings.front(), "1 nodes of type MEM_LOAD_NODE state no time");
}

TEST_CASE("a name, any file of the row and its folder mean the same") {
  const TraceFolder folder;
  folder.write_rank(0, {chakra_kernel(0, 1)});
  folder.write_rank(1, {chakra_kernel(0, 1)});
  for (const std::string& path : {folder.prefix(), folder.prefix() + ".1.et", folder.folder()})
    CHECK(chakra_prefix(path) == folder.prefix());
  CHECK(count_chakra_files(folder.prefix()) == 2);
}

TEST_CASE("a plan has as many ranks as its cluster, and stands alone") {
  const TraceFolder folder;
  folder.write_rank(0, {chakra_kernel(0, 1)});
  nlohmann::ordered_json given = plan_scenario(folder, "dgx_a100_80gb", 1, 2);
  CHECK_THROWS_WITH_AS(
      scenario_from(given),
      "scenario: /plan/chakra: found traces of 1 ranks, but the cluster has 1 nodes of 2 GPUs", ConfigError);
  given["cluster"]["gpus_per_node"] = 1;
  given["training"]["strategy"] = "ddp";
  CHECK_THROWS_AS(scenario_from(given), ConfigError);
}

}  // namespace lockstep::chakra_program_test
