// The program of one rank, or the one that starts several: reads the command line, meets the other ranks,
// checks or measures, and turns what went wrong into an exit code (failure.h). A rank that fails tells the
// others why, and all end with its code.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "validate/harness/backend.h"
#include "validate/harness/communication/local_launch.h"
#include "validate/harness/measure/training_check.h"
#include "validate/harness/options.h"
#include "validate/harness/run.h"

namespace lockstep::harness {
namespace {

std::string program_name() {
  return fmt::format("lockstep_ddp_{}", linked_backend().name);
}

int print_failure(const Failure& failure) {
  for (const std::string& line : failure.lines) fmt::print(stderr, "{}: {}\n", program_name(), line);
  return failure.exit_code;
}

// Says before anything is measured what would be said after: the file cannot be written there.
void check_output(const std::string& path) {
  if (!path.empty())
    const AtomicFile probe(path);
}

// Rank 0 writes, and all ranks end where it cannot.
void check_output_of_rank_0(Ranks& ranks, const Options& options) {
  std::string problem;
  try {
    if (ranks.rank() == 0)
      check_output(options.output);
  } catch (const ConfigError& error) {
    problem = error.what();
  }
  problem = ranks.exchange(problem).front();
  if (!problem.empty())
    throw ConfigError(problem);
}

void write_result(const Options& options, const RunFile& run) {
  if (options.output.empty())
    fmt::print("{}", to_table(run));
  else
    write_file_atomically(options.output, to_json(run).dump(1) + "\n");
}

int print_checks(const std::vector<CheckLine>& lines, bool prints) {
  for (const CheckLine& line : lines)
    if (prints)
      fmt::print("{}  {}\n", line.holds ? "ok    " : "FAILED", line.what);
  const bool hold = std::all_of(lines.begin(), lines.end(), [](const CheckLine& line) { return line.holds; });
  return hold ? exit_done : exit_check_failed;
}

CheckSettings check_settings(const Options& options) {
  const IterationSettings& iterations = options.iterations;
  return {.model = options.model,
          .optimizer = options.optimizer,
          .micro_batches = options.gradient_accumulation,
          .reducer = {.bucket_cap_mb = iterations.bucket_caps_mb.front(),
                      .overlaps = iterations.overlaps.front(),
                      .compresses = iterations.compresses}};
}

void choose_precision(Device& device, const Options& options) {
  if (options.precision == "tf32" && !device.use_tf32())
    throw ConfigError(fmt::format("--precision: tf32 is not for {}; valid: fp32, bf16, fp16", device.name()));
}

int run_rank(Rendezvous& rendezvous, const Options& options) {
  rendezvous.check_same("command line", options.identity);
  Ranks ranks(rendezvous);
  check_output_of_rank_0(ranks, options);
  const World& world = rendezvous.world();
  const std::unique_ptr<Device> device = linked_backend().make_device(world);
  choose_precision(*device, options);
  const std::unique_ptr<Communicator> communicator = linked_backend().make_communicator(rendezvous, *device);
  const bool tells = world.rank == 0 && !options.is_quiet;
  Bench bench{.device = *device,
              .communicator = *communicator,
              .ranks = ranks,
              .tell_progress = [tells](const std::string& line) {
                if (tells)
                  fmt::print(stderr, "{}\n", line);
              }};
  if (options.checks)
    return print_checks(check_training(bench, check_settings(options)), world.rank == 0);
  const RunFile run = measure_run(bench, options, world, linked_backend().name);
  if (world.rank == 0)
    write_result(options, run);
  return exit_done;
}

World world_of(const Options& options) {
  World world = read_world([](const char* name) -> const char* { return std::getenv(name); });
  if (options.ranks > 0 && !is_launched_rank() && world.size > 1)
    throw ConfigError("--ranks starts ranks of its own; this process is already one of several");
  if (options.port > 0 && !is_launched_rank())
    world.port = options.port;
  return world;
}

int meet_and_run(const Options& options) {
  Rendezvous rendezvous({.world = world_of(options)});
  try {
    return run_rank(rendezvous, options);
  } catch (...) {
    const Failure failure = describe_failure();
    rendezvous.report_failure(fmt::format("{}", fmt::join(failure.lines, "\n")), failure.exit_code);
    throw;
  }
}

int guarded_main(int argument_count, char** arguments) {
  try {
    const std::optional<Options> options = read_options(program_name(), argument_count, arguments);
    if (!options)
      return exit_done;
    if (options->ranks < 2 || is_launched_rank())
      return meet_and_run(*options);
    check_output(options->output);
    return launch_ranks({.ranks = options->ranks,
                         .port = options->port,
                         .arguments = {arguments, arguments + argument_count}});
  } catch (...) {
    return print_failure(describe_failure());
  }
}

}  // namespace
}  // namespace lockstep::harness

int main(int argument_count, char** arguments) {
  lockstep::end_cleanly_when_interrupted();
  return lockstep::harness::guarded_main(argument_count, arguments);
}
