// The program of one rank, or the one that starts several: reads the command line, meets the other ranks,
// runs (rank_program.h), and turns what went wrong into an exit code (failure.h).

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "sim/base/printable.h"
#include "validate/harness/backend.h"
#include "validate/harness/communication/local_launch.h"
#include "validate/harness/communication/meeting_port.h"
#include "validate/harness/options.h"
#include "validate/harness/rank_program.h"

namespace lockstep::harness {
namespace {

std::string program_name() {
  return fmt::format("lockstep_ddp_{}", linked_backend().name);
}

void print_failure(const Failure& failure) {
  for (const std::string& line : failure.lines)
    fmt::print(stderr, "{}: {}\n", program_name(), printable(line));
}

void warn_of_open_port(const World& world) {
  if (world.rank != 0 || world.size == 1 || !world.secret.empty())
    return;
  fmt::print(
      stderr,
      "{}: {} is not set: whoever reaches port {}{} may take a rank's place or end the run; the same {} for "
      "all ranks (openssl rand -hex 32) prevents it\n",
      program_name(), secret_variable, world.port, is_open_to_others(world) ? "" : " on this machine",
      secret_variable);
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
  const World world = world_of(options);
  warn_of_open_port(world);
  Rendezvous rendezvous({.world = world});
  return run_rank({.rendezvous = rendezvous,
                   .options = options,
                   .backend = linked_backend(),
                   .tell_user = print_failure});
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
                         .pins_cores = linked_backend().pins_ranks,
                         .arguments = {arguments, arguments + argument_count}});
  } catch (const FailedRank& failed) {
    return failed.exit_code;
  } catch (...) {
    const Failure failure = describe_failure();
    print_failure(failure);
    return failure.exit_code;
  }
}

}  // namespace
}  // namespace lockstep::harness

int main(int argument_count, char** arguments) {
  lockstep::end_cleanly_when_interrupted();
  return lockstep::harness::guarded_main(argument_count, arguments);
}
