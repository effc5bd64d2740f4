#include "validate/harness/stand_in/failing_calls.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "tests/harness/stand_in/whole_program.h"

namespace lockstep::harness::stand_in::failing_calls_test {

// What only destructors call: they cannot tell, and what they end has ended all the same.
bool may_go_unsaid(const std::string& entry_point) {
  return entry_point.find("Destroy") != entry_point.npos || entry_point == "cudaFree" ||
         entry_point == "cudaFreeHost" || entry_point == "ncclCommAbort" ||
         entry_point == "cudaDeviceSynchronize";
}

MachineOptions options_of(const FailingCall& failing) {
  return {.ranks = 2, .gpus = 2, .seed = 3, .failing = failing};
}

bool all_end_with(const std::vector<RankEnd>& ends, int exit_code) {
  for (const RankEnd& end : ends)
    if (end.exit_code != exit_code)
      return false;
  return true;
}

void check_failure(const FailingCall& failing) {
  Machine machine(options_of(failing));
  const std::vector<RankEnd> ends = run_whole_program(machine);
  INFO(failing.entry_point, ", call ", failing.number, " of rank ", failing.rank);
  for (const RankEnd& end : ends) INFO(end.exit_code, " ", fmt::format("{}", fmt::join(end.lines, "; ")));
  CHECK((all_end_with(ends, exit_environment) ||
         (may_go_unsaid(failing.entry_point) && all_end_with(ends, exit_done))));
  for (const std::string& finding : machine.findings()) CHECK_MESSAGE(false, finding);
  for (const auto& [kind, count] : machine.leaks()) CHECK_MESSAGE(false, kind);
}

TEST_CASE("whichever call of CUDA, cuBLAS, cuDNN or NCCL fails, all ranks end with 4 and nothing leaks") {
  Machine sound(options_of({}));
  CHECK(all_end_with(run_whole_program(sound), exit_done));
  for (const auto& [call, count] : sound.calls()) {
    const auto& [entry_point, rank] = call;
    if (rank < 0)
      continue;  // NCCL's watchers, below
    for (const std::int64_t number : std::set<std::int64_t>{1, (count + 1) / 2, count})
      check_failure({.entry_point = entry_point, .rank = rank, .number = number});
  }
}

TEST_CASE("an error that NCCL finds by itself ends all ranks with 4") {
  Machine machine(options_of({.entry_point = "ncclCommGetAsyncError", .rank = -1, .number = 1}));
  const auto ends = machine.run([&](int rank) {
    run_with_bench(machine, rank, [](Bench& bench) {
      const Buffer memory(bench.device, 8, Type::fp32);
      bench.device.fill_zero(memory.tensor());
      for (;;) {
        bench.communicator.wait(bench.communicator.start_all_reduce(memory.tensor()));
        bench.device.synchronize();
        bench.communicator.forget_tickets();
      }
    });
  });
  CHECK(all_end_with(ends, exit_environment));
  CHECK(machine.findings().empty());
  CHECK(machine.leaks().empty());
}

}  // namespace lockstep::harness::stand_in::failing_calls_test
