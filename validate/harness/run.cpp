#include "validate/harness/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "validate/harness/measure/bucket_copies.h"
#include "validate/harness/measure/gpu_record.h"
#include "validate/harness/measure/kernel_agreement.h"

namespace lockstep::harness {
namespace {

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
}

std::string rate_text(std::int64_t bits_per_second) {
  return fmt::format("{:g} Mbit/s", static_cast<double>(bits_per_second) / 1e6);
}

RunNetwork network_of(const Options& options, const World& world) {
  const bool is_local = world.size == world.local_size;
  RunNetwork network{.kind = is_local ? "loopback" : "as_found",
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

// Measures what was chosen and watches the GPU meanwhile.
class WatchedRun {
 public:
  WatchedRun(Bench& bench, const Options& options, RunFile& run)
      : bench_(bench), options_(options), run_(run), monitor_(GpuMonitor::open(bench.device.pci_bus_id())) {}

  void measure(TrainingModel& model);
  // Of every rank; all ranks call it.
  nlohmann::ordered_json gpus();

 private:
  void measure_kernels();
  void measure_losses(TrainingModel& model);
  void measure_training(TrainingModel& model);
  void measure_beside(Trainer& trainer);
  void tell_step(const StepTiming& step);
  void watch_while(const std::string& name, const std::function<void()>& work) {
    telemetry_.push_back(watch(monitor_.get(), name, work));
  }

  Bench& bench_;
  const Options& options_;
  RunFile& run_;
  std::unique_ptr<GpuMonitor> monitor_;
  std::vector<Telemetry> telemetry_;
};

void WatchedRun::measure_kernels() {
  bench_.tell_progress("kernels");
  watch_while("matmuls", [&] {
    run_.matmuls = measure_matmuls(bench_, Type::fp32);
    if (options_.precision == "tf32")
      for (MatmulPoint& point : run_.matmuls) point.precision = "tf32";
    if (options_.model.activations != Type::fp32)
      for (const MatmulPoint& point : measure_matmuls(bench_, options_.model.activations))
        run_.matmuls.push_back(point);
  });
  watch_while("memory_copies", [&] { run_.memory_copies = measure_memory_copies(bench_); });
}

// Between the first bucket and DDP's usual cap.
std::vector<std::int64_t> interference_sizes(std::int64_t most_bytes) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{4} << 20, std::int64_t{16} << 20})
    sizes.push_back(std::min(bytes, std::max<std::int64_t>(most_bytes, 1024)));
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void WatchedRun::measure(TrainingModel& model) {
  if (options_.chosen.kernels)
    measure_kernels();
  if (options_.chosen.copies)
    watch_while("bucket_copies", [&] { run_.copies = measure_bucket_copies(bench_); });
  if (options_.chosen.curve && bench_.ranks.size() > 1)
    watch_while("collective_curve",
                [&] { run_.curve = measure_collective_curve(bench_, options_.most_curve_bytes); });
  if (options_.losses > 0)
    measure_losses(model);
  measure_training(model);
}

// First, for whatever is timed moves the parameters that a curve begins with.
void WatchedRun::measure_losses(TrainingModel& model) {
  Trainer trainer(bench_.device, bench_.communicator, model,
                  {.optimizer = options_.optimizer, .micro_batches = options_.gradient_accumulation});
  agree_on_kernels(bench_, trainer);
  const IterationSettings& settings = options_.iterations;
  watch_while("losses", [&] {
    run_.losses = harness::measure_losses(bench_, trainer,
                                          {.bucket_cap_mb = settings.bucket_caps_mb.front(),
                                           .overlaps = settings.overlaps.front(),
                                           .compresses = settings.compresses},
                                          options_.losses);
  });
}

void WatchedRun::measure_training(TrainingModel& model) {
  Trainer trainer(bench_.device, bench_.communicator, model,
                  {.optimizer = options_.optimizer, .micro_batches = options_.gradient_accumulation});
  run_.kernel_choices = agree_on_kernels(bench_, trainer);
  std::unique_ptr<StepAlone> alone;
  if (options_.chosen.step)
    alone = time_steps(bench_, trainer, options_.iterations.counts);
  if (alone && !options_.chosen.iterations)
    watch_while("without_communication", [&] { take_turns({alone.get()}); });
  measure_beside(trainer);
  if (options_.chosen.iterations)
    watch_while("iterations", [&] {
      run_.iterations = time_iterations(bench_, trainer, options_.iterations, alone.get());
    });
  if (alone)
    tell_step(alone->result());
}

void WatchedRun::measure_beside(Trainer& trainer) {
  if (!options_.chosen.interference)
    return;
  if (bench_.ranks.size() > 1)
    watch_while("interference", [&] {
      run_.interference =
          measure_interference(bench_, trainer, interference_sizes(options_.most_curve_bytes));
    });
  watch_while("copy_interference",
              [&] { run_.copy_interference = measure_copy_interference(bench_, trainer); });
}

void WatchedRun::tell_step(const StepTiming& step) {
  run_.step = step;
  bench_.tell_progress(fmt::format("step without communication: {:.4g} ms", step.step.iteration.median * 1e3));
}

nlohmann::ordered_json WatchedRun::gpus() {
  using Json = nlohmann::ordered_json;
  Json gpus = Json::array();
  if (bench_.device.pci_bus_id().empty())
    return gpus;
  for (const std::string& text :
       bench_.ranks.exchange(gpu_record(bench_.ranks.rank(), monitor_.get(), telemetry_).dump()))
    gpus.push_back(Json::parse(text));
  return gpus;
}

}  // namespace

RunFile measure_run(Bench& bench, const Options& options, const World& world, const char* backend) {
  RunFile run = describe_run(bench, options, world, backend);
  // First of all: a model that does not exist, or fits no memory, is told before anything is measured.
  const std::unique_ptr<TrainingModel> model = make_model(bench.device, options.model);
  describe_model(run, *model);
  WatchedRun watched(bench, options, run);
  watched.measure(*model);
  run.machine.gpus = watched.gpus();
  run.failures = bench.failures;
  run.machine.after = look_at_state(bench.device);
  return run;
}

}  // namespace lockstep::harness
