#include "validate/harness/rank_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "validate/harness/communication/shared_gpus.h"
#include "validate/harness/measure/training_check.h"
#include "validate/harness/run.h"

namespace lockstep::harness {
namespace {

// Made by the program, destroyed after it was told why.
struct Parts {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
};

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
                      .compresses = iterations.compresses},
          .precision = options.precision};
}

void choose_precision(Device& device, const Options& options) {
  if (options.precision == "tf32" && !device.use_tf32())
    throw ConfigError(fmt::format("--precision: tf32 is not for {}; valid: fp32, bf16, fp16", device.name()));
}

// Whether some GPU computes for several ranks; refused, by all ranks alike, where times are asked for.
bool check_sharing(Ranks& ranks, const World& world, const std::string& gpu, const Options& options) {
  const std::string sharing = describe_sharing(ranks.exchange(gpu));
  const bool is_misled = has_doubles(ranks.exchange(fmt::format("{} {}", host_id(), world.local_rank)));
  if (!sharing.empty() && !options.checks && !options.shares_gpus)
    throw ConfigError(fmt::format(
        "{}: they would take turns, and no time be that of one; {}, or measure so with --share-gpus "
        "(--check may share)",
        sharing,
        is_misled ? "their launcher gave ranks of one host the same local rank: mend LOCAL_RANK"
                  : "start as many ranks as there are GPUs"));
  return !sharing.empty();
}

int run(const RankProgram& program, Parts& parts) {
  Rendezvous& rendezvous = program.rendezvous;
  const Options& options = program.options;
  rendezvous.check_same("command line", options.identity);
  Ranks ranks(rendezvous);
  check_output_of_rank_0(ranks, options);
  const World world = place_on_host(rendezvous.world(), ranks.exchange(host_id()));
  parts.device = program.backend.make_device(world);
  choose_precision(*parts.device, options);
  const bool gpus_shared = check_sharing(ranks, world, program.backend.gpu_of(*parts.device), options);
  parts.communicator = program.backend.make_communicator(rendezvous, *parts.device);
  const bool tells = world.rank == 0 && !options.is_quiet;
  Bench bench{.device = *parts.device,
              .communicator = *parts.communicator,
              .ranks = ranks,
              .tell_progress = [tells](const std::string& line) {
                if (tells)
                  fmt::print(stderr, "{}\n", line);
              }};
  if (options.checks)
    return print_checks(check_training(bench, check_settings(options)), world.rank == 0);
  RunFile result = measure_run(bench, options, world, program.backend.name);
  result.gpus_shared = gpus_shared;
  ranks.barrier();  // no file of a run that a rank did not come to the end of
  if (world.rank == 0)
    write_result(options, result);
  return exit_done;
}

}  // namespace

void check_output(const std::string& path) {
  if (!path.empty())
    const AtomicFile probe(path);
}

int run_rank(const RankProgram& program) {
  Parts parts;
  try {
    return run(program, parts);
  } catch (...) {
    const Failure failure = describe_failure();
    program.tell_user(failure);
    program.rendezvous.report_failure(fmt::format("{}", fmt::join(failure.lines, "\n")), failure.exit_code);
    throw FailedRank{failure.exit_code};  // on its way, the parts know that it is not a good end
  }
}

}  // namespace lockstep::harness
