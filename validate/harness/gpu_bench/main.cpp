// lockstep_gpu_bench PART -o FILE: one part of the bench, from options to an exit code (failure.h).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/gpu_bench/bench_options.h"
#include "validate/harness/gpu_bench/collective_log_text.h"
#include "validate/harness/gpu_bench/cuda_parts.h"

#ifdef LOCKSTEP_HAS_NCCL
#include "validate/harness/gpu_bench/nccl_bench.h"
#endif

namespace lockstep::harness {
namespace {

constexpr const char* program = "lockstep_gpu_bench";
constexpr std::int64_t most_arena_bytes = std::int64_t{16} << 30;

void tell(const std::string& line) {
  fmt::print(stderr, "{}: {}\n", program, line);
}

class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}
  bool has_passed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() >= seconds_;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_;
};

TableLayout layout_of(const std::string& part) {
  if (part == "gemm")
    return gemm_layout();
  if (part == "conv2d")
    return convolution_table_layout();
  if (part == "attention")
    return attention_layout();
  if (part == "memory_bound")
    return memory_layout();
  if (part == "sustained")
    return sustained_layout();
  if (part == "interference")
    return interference_layout();
  return part == "launches" ? launches_layout() : host_copies_layout();
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  check_call(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

// Two fifths of what is free: models and workspaces want theirs as well.
ArenaSize arena_size(int device) {
  std::size_t free = 0;
  std::size_t total = 0;
  check_call(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {.bytes = std::min(most_arena_bytes, static_cast<std::int64_t>(free / 5 * 2)),
          .cache_bytes = properties_of(device).l2CacheSize};
}

PartResult measure_part(const BenchOptions& options, const KernelBench& bench, CudaStage& exact,
                        CudaStage& rounding) {
  if (options.part == "gemm")
    return measure_gemms(bench, gemm_cases());
  if (options.part == "conv2d")
    return measure_convolutions(bench, *make_cudnn_convolver(exact, false),
                                *make_cudnn_convolver(rounding, true), convolution_cases());
  if (options.part == "attention")
    return measure_attentions(bench, attention_cases());
  if (options.part == "memory_bound")
    return measure_memory_bound(bench, memory_cases());
  if (options.part == "sustained")
    return measure_sustained(bench, sustained_cases());
  if (options.part == "interference")
    return measure_sm_interference(bench, exact);
  return options.part == "launches" ? measure_launches(bench, exact) : measure_host_copies(bench, exact);
}

// One line, which scripts read: "gemm: 12 of 14 cases, 1 left out, 1 to go".
int report(const BenchOptions& options, const PartResult& result) {
  fmt::print("{}: {} of {} cases, {} left out, {} to go\n", options.part, result.measured, result.cases,
             result.left_out, result.cases - result.measured - result.left_out);
  return exit_done;
}

int measure_table(const BenchOptions& options, const Deadline& deadline) {
  MeasurementTable table(
      {.path = options.output, .layout = layout_of(options.part), .resumes = options.resumes});
  if (options.device >= count_cuda_devices())
    throw ConfigError(
        fmt::format("--device: found {}; valid: 0 to {}", options.device, count_cuda_devices() - 1));
  CudaStage exact(options.device);
  CudaStage rounding(options.device);
  rounding.device().use_tf32();
  Arena arena(exact.device(), arena_size(options.device));
  const KernelBench bench{.gpu = options.gpu.empty() ? exact.device().name() : options.gpu,
                          .source = fmt::format("{} {}", program, LOCKSTEP_VERSION),
                          .exact = exact,
                          .rounding = rounding,
                          .arena = arena,
                          .table = table,
                          .time_is_up = [&] { return deadline.has_passed(); },
                          .tell = tell};
  return report(options, measure_part(options, bench, exact, rounding));
}

nlohmann::ordered_json describe_device(int index) {
  const cudaDeviceProp properties = properties_of(index);
  CudaStage stage(index);
  return {{"index", index},
          {"name", properties.name},
          {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
          {"multiprocessors", properties.multiProcessorCount},
          {"memory_bytes", properties.totalGlobalMem},
          {"l2_bytes", properties.l2CacheSize},
          {"shared_bytes_per_multiprocessor", properties.sharedMemPerMultiprocessor},
          {"shared_bytes_per_block", properties.sharedMemPerBlockOptin},
          {"copy_engines", properties.asyncEngineCount},
          {"ecc", properties.ECCEnabled != 0},
          {"libraries", stage.device().libraries()}};
}

int describe_machine(const BenchOptions& options) {
  nlohmann::ordered_json machine = {{"schema", "lockstep.gpu_machine/1"},
                                    {"program", fmt::format("{} {}", program, LOCKSTEP_VERSION)}};
  for (int device = 0; device < count_cuda_devices(); ++device)
    machine["gpus"].push_back(describe_device(device));
#ifdef LOCKSTEP_HAS_NCCL
  machine["nccl"] = nccl_version();
#endif
  write_file_atomically(options.output, machine.dump(1) + "\n");
  return report(options, {.cases = 1, .measured = 1});
}

int measure_collectives(const BenchOptions& options, [[maybe_unused]] const Deadline& deadline) {
  { const AtomicFile probe(options.output); }
  const int gpus = count_cuda_devices();
  if (gpus < 2)
    throw EnvironmentError("a collective needs two GPUs; there is one");
#ifdef LOCKSTEP_HAS_NCCL
  const bool is_complete = measure_collective({.path = options.output,
                                               .op = options.collective,
                                               .gpus = gpus,
                                               .most_bytes = options.most_bytes,
                                               .time_is_up = [&] { return deadline.has_passed(); }});
  return report(options, {.cases = 1, .measured = is_complete ? 1 : 0});
#else
  throw EnvironmentError("this program was built without NCCL: collectives are not measured");
#endif
}

template <class Case, class Key>
void print_cases(const std::vector<Case>& cases, Key key) {
  for (const Case& one : cases) fmt::print("{}\n", fmt::join(key(one), ","));
}

int list_cases(const std::string& part) {
  const auto key = [](const auto& one) { return key_cells(one); };
  if (part == "gemm")
    print_cases(gemm_cases(), key);
  else if (part == "conv2d")
    print_cases(convolution_cases(), key);
  else if (part == "attention")
    print_cases(attention_cases(), [](const AttentionCase& one) { return key_cells(one, "unfused"); });
  else if (part == "memory_bound")
    print_cases(memory_cases(), key);
  else if (part == "sustained")
    print_cases(sustained_cases(), key);
  else
    throw ConfigError(fmt::format("--list: there is no list of part {}", part));
  return exit_done;
}

int run(const BenchOptions& options) {
  const Deadline deadline(options.seconds);
  if (options.lists)
    return list_cases(options.part);
  if (options.part == "machine")
    return describe_machine(options);
  return options.part == "collective" ? measure_collectives(options, deadline)
                                      : measure_table(options, deadline);
}

int guarded_main(int argument_count, char** arguments) {
  try {
    const std::optional<BenchOptions> options = read_bench_options(argument_count, arguments);
    return options ? run(*options) : exit_done;
  } catch (...) {
    const Failure failure = describe_failure();
    for (const std::string& line : failure.lines) tell(line);
    return failure.exit_code;
  }
}

}  // namespace
}  // namespace lockstep::harness

int main(int argument_count, char** arguments) {
  lockstep::end_cleanly_when_interrupted();
  return lockstep::harness::guarded_main(argument_count, arguments);
}
