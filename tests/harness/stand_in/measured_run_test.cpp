// A whole measured run, from meeting to file, on GPUs that fail somewhere on the way.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/models/tiny_models.h"
#include "tests/harness/stand_in/stand_in_run.h"
#include "tests/support/program.h"
#include "validate/harness/rank_program.h"

namespace lockstep::harness::stand_in::measured_run_test {

constexpr int ranks = 2;

// Launches cost no less than kernels last, so that a run is short; a step, a curve of one size, one bucket cap.
Options small_run(const std::string& output) {
  Options options;
  options.model = tiny_mlp();
  options.chosen = {.step = true,
                    .curve = true,
                    .copies = false,
                    .interference = false,
                    .kernels = false,
                    .iterations = true};
  options.iterations.bucket_caps_mb = {1};
  options.iterations.overlaps = {true};
  options.iterations.counts = {.warm_up = 1, .measured = 5, .most_seconds = 1};
  options.most_curve_bytes = 1024;
  options.output = output;
  options.is_quiet = true;
  return options;
}

ClockRates rates() {
  return {.launch = 5e-6, .event = 1e-6, .collective = 15e-6, .delay = 2e-6, .least_kernel = 1e-3, .link_latency = 0.1};
}

// Of each rank the exit code that its process would end with.
std::vector<int> run_on(Machine& machine, const Options& options) {
  std::vector<int> exit_codes(ranks, -1);
  machine.run([&](int rank) {
    Rendezvous rendezvous({.world = world_of(machine, rank)});
    int& exit_code = exit_codes[static_cast<std::size_t>(rank)];
    try {
      exit_code = run_rank({.rendezvous = rendezvous,
                            .options = options,
                            .backend = linked_backend(),
                            .tell_user = [](const Failure&) {}});
    } catch (const FailedRank& failed) {
      exit_code = failed.exit_code;
    }
  });
  return exit_codes;
}

Machine machine_with(const FailingCall& failing) {
  return Machine({.ranks = ranks, .gpus = ranks, .clock = rates(), .computes = false, .failing = failing});
}

bool is_told_by_others(const std::string& entry_point) {
  return entry_point.find("Destroy") == entry_point.npos && entry_point.find("Free") == entry_point.npos &&
         entry_point != "ncclCommAbort" && entry_point != "cudaDeviceSynchronize";
}

void check_failure(const FailingCall& failing, const std::string& output) {
  INFO(failing.entry_point, ", call ", failing.number, " of rank ", failing.rank);
  std::filesystem::remove(output);
  Machine machine = machine_with(failing);
  CHECK(run_on(machine, small_run(output)) == std::vector<int>(ranks, exit_environment));
  CHECK_FALSE(std::filesystem::exists(output));
  CHECK(machine.findings().empty());
  for (const auto& [kind, left] : machine.leaks()) CHECK_MESSAGE(false, fmt::format("{} {}", left, kind));
}

TEST_CASE("a run that fails in any call leaves no file, ends every rank with 4 and gives everything back") {
  const testing::Folder folder;
  const std::string output = folder.path() + "/run.json";
  Machine sound = machine_with({});
  REQUIRE(run_on(sound, small_run(output)) == std::vector<int>(ranks, exit_done));
  CHECK(nlohmann::json::parse(testing::text_of(output))["iterations"].size() == 1);
  CHECK(sound.leaks().empty());
  for (const auto& [call, count] : sound.calls()) {
    const auto& [entry_point, rank] = call;
    if (rank < 0 || !is_told_by_others(entry_point))
      continue;  // watchers and destructors: failing_calls_test.cpp
    for (const std::int64_t number : std::set<std::int64_t>{1, (count + 1) / 2, count})
      check_failure({.entry_point = entry_point, .rank = rank, .number = number}, output);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace lockstep::harness::stand_in::measured_run_test
