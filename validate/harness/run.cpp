#include "validate/harness/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "validate/harness/measure/bucket_copies.h"
#include "validate/harness/measure/kernel_agreement.h"

namespace lockstep::harness {
namespace {

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
}

std::string rate_text(std::int64_t bits_per_second) {
  return fmt::format("{:g} Mbit/s", static_cast<double>(bits_per_second) / 1e6);
}

Network network_of(const Options& options, const World& world) {
  const bool is_local = world.size == world.local_size;
  Network network{.kind = is_local ? "loopback" : "as_found",
                  .link_bits_per_second = options.link_bits_per_second,
                  .mtu_bytes = options.mtu_bytes};
  if (options.link_bits_per_second) {
    network.kind = "shaped";
    network.note = "token bucket each way";
  }
  return network;
}

std::int64_t nodes_of(const Options& options, const World& world) {
  if (options.nodes)
    return *options.nodes;
  return options.link_bits_per_second ? world.size : std::max(1, world.size / std::max(1, world.local_size));
}

std::string name_of_run(const Options& options, const World& world) {
  if (!options.name.empty())
    return options.name;
  const std::string network = options.link_bits_per_second ? rate_text(*options.link_bits_per_second)
                                                           : network_of(options, world).kind;
  return fmt::format("{}, {} rank{}, {}", options.model.name, world.size, world.size == 1 ? "" : "s",
                     network);
}

void describe_model(RunFile& run, const TrainingModel& model) {
  run.model = model.spec();
  run.simulated_as = model.simulated_as();
  run.forward_flops = model.forward_flops();
  for (const Tensor& buffer : model.buffers()) run.buffer_bytes += buffer.bytes();
  for (const auto& parameter : model.parameters())
    run.parameters.push_back({.name = parameter->name, .elements = parameter->elements});
}

RunFile describe_run(Bench& bench, const Options& options, const World& world, const char* backend) {
  RunFile run{.name = name_of_run(options, world),
              .date = today(),
              .programs = {.version = LOCKSTEP_VERSION,
                           .backend = backend,
                           .device = bench.device.name(),
                           .libraries = bench.device.libraries(),
                           .communication = bench.communicator.library(),
                           .compiler = "g++ " __VERSION__},
              .machine = look_at_machine(bench.device),
              .ranks = world.size,
              .nodes = nodes_of(options, world),
              .network = network_of(options, world)};
  if (!options.machine_class.empty())
    run.machine.name = options.machine_class;
  run.precision = options.precision;
  run.optimizer = options.optimizer.name;
  run.gradient_accumulation = options.gradient_accumulation;
  run.compresses = options.iterations.compresses;
  return run;
}

void measure_kernels(Bench& bench, const Options& options, RunFile& run) {
  bench.tell_progress("kernels");
  run.matmuls = measure_matmuls(bench, Type::fp32);
  if (options.precision == "tf32")
    for (MatmulPoint& point : run.matmuls) point.precision = "tf32";
  if (options.model.activations != Type::fp32)
    for (const MatmulPoint& point : measure_matmuls(bench, options.model.activations))
      run.matmuls.push_back(point);
  run.memory_copies = measure_memory_copies(bench);
}

// Between the first bucket and DDP's usual cap.
std::vector<std::int64_t> interference_sizes(std::int64_t most_bytes) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{4} << 20, std::int64_t{16} << 20})
    sizes.push_back(std::min(bytes, std::max<std::int64_t>(most_bytes, 1024)));
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void measure_training(Bench& bench, const Options& options, TrainingModel& model, RunFile& run) {
  Trainer trainer(bench.device, bench.communicator, model,
                  {.optimizer = options.optimizer, .micro_batches = options.gradient_accumulation});
  run.kernel_choices = agree_on_kernels(bench, trainer);
  if (options.chosen.step) {
    run.step = time_steps(bench, trainer, options.iterations.counts);
    bench.tell_progress(
        fmt::format("step without communication: {:.4g} ms", run.step->step.iteration.median * 1e3));
  }
  if (options.chosen.interference && bench.ranks.size() > 1)
    run.interference = measure_interference(bench, trainer, interference_sizes(options.most_curve_bytes));
  if (options.chosen.interference)
    run.copy_interference = measure_copy_interference(bench, trainer);
  if (options.chosen.iterations)
    run.iterations = time_iterations(bench, trainer, options.iterations);
}

}  // namespace

RunFile measure_run(Bench& bench, const Options& options, const World& world, const char* backend) {
  RunFile run = describe_run(bench, options, world, backend);
  // First of all: a model that does not exist, or fits no memory, is told before anything is measured.
  const std::unique_ptr<TrainingModel> model = make_model(bench.device, options.model);
  describe_model(run, *model);
  if (options.chosen.kernels)
    measure_kernels(bench, options, run);
  if (options.chosen.copies)
    run.copies = measure_bucket_copies(bench);
  if (options.chosen.curve && bench.ranks.size() > 1)
    run.curve = measure_collective_curve(bench, options.most_curve_bytes);
  measure_training(bench, options, *model, run);
  run.machine.after = look_at_state(bench.device);
  return run;
}

}  // namespace lockstep::harness
