#pragma once

// Runs on the stand-in, as the harness's main makes them on GPUs.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/failure.h"
#include "validate/harness/backend.h"
#include "validate/harness/measure/training_check.h"
#include "validate/harness/stand_in/machine.h"

namespace lockstep::harness::stand_in {

inline World world_of(const Machine& machine, int rank) {
  const int size = machine.options().ranks;
  return {.rank = rank, .size = size, .local_rank = rank, .local_size = size};
}

// What the program does of one rank (rank_program.cpp): device, communicator, work; a failure is told to the
// others before either is destroyed.
inline void run_with_bench(Machine& machine, int rank, const std::function<void(Bench&)>& work) {
  Rendezvous rendezvous({.world = world_of(machine, rank)});
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  try {
    Ranks ranks(rendezvous);
    device = linked_backend().make_device(rendezvous.world());
    communicator = linked_backend().make_communicator(rendezvous, *device);
    Bench bench{.device = *device,
                .communicator = *communicator,
                .ranks = ranks,
                .tell_progress = [](const std::string&) {}};
    work(bench);
  } catch (...) {
    const Failure failure = describe_failure();
    rendezvous.report_failure(fmt::format("{}", fmt::join(failure.lines, "\n")), failure.exit_code);
    throw;
  }
}

struct CheckRun {
  std::vector<RankEnd> ends;
  std::vector<CheckLine> lines;  // of rank 0

  bool is_good() const {
    bool good = !lines.empty();
    for (const RankEnd& end : ends) good = good && end.exit_code == exit_done;
    for (const CheckLine& line : lines) good = good && line.holds;
    return good;
  }
};

inline CheckRun run_check(Machine& machine, const CheckSettings& settings) {
  CheckRun run;
  run.ends = machine.run([&](int rank) {
    run_with_bench(machine, rank, [&](Bench& bench) {
      const std::vector<CheckLine> lines = check_training(bench, settings);
      if (rank == 0)
        run.lines = lines;
    });
  });
  return run;
}

}  // namespace lockstep::harness::stand_in
