// Is what is wrong found? Every place of the harness that orders work is made wrong in turn.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/stand_in/whole_program.h"
#include "validate/harness/stand_in/mutant.h"

namespace lockstep::harness::stand_in::mutants_test {

constexpr std::uint64_t seeds = 6;
constexpr double share_that_must_be_caught = 0.95;

const std::set<std::string> waits{"cudaStreamWaitEvent", "cudaEventSynchronize",  "cudaStreamSynchronize",
                                  "cudaEventRecord",     "cudaDeviceSynchronize", "cudaFree"};
const std::set<std::string> with_streams{"cudaStreamWaitEvent", "cudaStreamSynchronize", "cudaEventRecord",
                                         "cudaMemcpyAsync",     "cudaMemsetAsync",       "ncclAllReduce",
                                         "ncclBroadcast",       "cublasSetStream",       "cudnnSetStream"};

MachineOptions options_of(std::uint64_t seed, const Mutant& mutant) {
  return {.ranks = 2, .gpus = 2, .seed = seed, .mutant = mutant};
}

bool is_caught(const Mutant& mutant, std::uint64_t seed) {
  Machine machine(options_of(seed, mutant));
  const std::vector<RankEnd> ends = run_whole_program(machine);
  bool is_wrong = !machine.findings().empty() || !machine.leaks().empty();
  for (const RankEnd& end : ends) is_wrong = is_wrong || end.exit_code != exit_done;
  return is_wrong;
}

bool is_caught(const Mutant& mutant) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    if (is_caught(mutant, seed))
      return true;
  return false;
}

struct NamedMutant {
  std::string name;
  Mutant mutant;
};

// Sites are numbered within their entry point, in the order of their addresses.
std::vector<NamedMutant> mutants_of(const std::set<CallSite>& sites) {
  std::vector<NamedMutant> mutants;
  std::map<std::string, int> numbers;
  for (const CallSite& site : sites) {
    const std::string name = fmt::format("{} {}", site.entry_point, ++numbers[site.entry_point]);
    const auto add = [&](Mutant::Change change, const char* what) {
      mutants.push_back({.name = name + what, .mutant = {.change = change, .site = site}});
    };
    if (waits.contains(site.entry_point))
      add(Mutant::Change::drop, " dropped");
    if (with_streams.contains(site.entry_point)) {
      add(Mutant::Change::legacy_stream, " on the legacy stream");
      add(Mutant::Change::other_stream, " on another stream");
    }
  }
  return mutants;
}

// Nothing is found where nothing is wrong, whatever the seed.
std::set<CallSite> sites_of_sound_runs() {
  std::set<CallSite> sites;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Machine machine(options_of(seed, {}));
    for (const RankEnd& end : run_whole_program(machine))
      REQUIRE_MESSAGE(end.exit_code == exit_done, fmt::format("{}", fmt::join(end.lines, "; ")));
    for (const std::string& finding : machine.findings()) REQUIRE_MESSAGE(false, finding);
    for (const auto& [kind, count] : machine.leaks()) REQUIRE_MESSAGE(false, kind);
    sites.insert(machine.sites().begin(), machine.sites().end());
  }
  return sites;
}

TEST_CASE("of the mutants of every wait, record, stream argument and guard of memory, 95 % are caught") {
  const std::vector<NamedMutant> mutants = mutants_of(sites_of_sound_runs());
  std::vector<std::string> missed;
  for (const NamedMutant& mutant : mutants)
    if (!is_caught(mutant.mutant))
      missed.push_back(mutant.name);
  const std::size_t caught = mutants.size() - missed.size();
  MESSAGE(
      fmt::format("{} of {} mutants caught; missed: {}", caught, mutants.size(), fmt::join(missed, ", ")));
  CHECK(mutants.size() > 40);
  CHECK(static_cast<double>(caught) >= share_that_must_be_caught * static_cast<double>(mutants.size()));
}

}  // namespace lockstep::harness::stand_in::mutants_test
