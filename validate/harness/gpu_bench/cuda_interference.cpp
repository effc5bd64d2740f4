// What kernels and steps lose beside a kernel that holds multiprocessors and copies memory.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "validate/harness/device/cuda_check.h"
#include "validate/harness/gpu_bench/cuda_parts.h"
#include "validate/harness/gpu_bench/interference_cases.h"
#include "validate/harness/gpu_bench/whole_step.h"
#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t occupant_memory_bytes = 512 << 20;
constexpr std::size_t most_blocks = 64;
// Beyond what any victim is timed for; an occupant that nobody stops ends by itself.
constexpr std::int64_t most_nanoseconds = 20'000'000'000;
constexpr auto most_wait = std::chrono::seconds(2);
constexpr double usual_clock_mhz = 1500;

// Holds multiprocessors from `begin` to `end`.
class Occupant {
 public:
  explicit Occupant(CudaStage& stage)
      : stage_(stage),
        share_(whole_multiprocessor(stage.runtime().device())),
        memory_(stage.device(), occupant_memory_bytes / 4, Type::fp32),
        stop_(1),
        reports_(most_blocks) {
    stage.device().fill_zero(memory_.tensor());
    stage.device().synchronize();
  }
  Occupant(const Occupant&) = delete;
  Occupant& operator=(const Occupant&) = delete;
  ~Occupant() {
    stop();
    ignore_failure(cudaStreamSynchronize(stream_.get()));
  }

  bool holds_whole() const { return share_.is_whole; }

  // False where not all of them came to run: something else holds the GPU.
  bool begin(int blocks, const MemoryRate& rate) {
    blocks_ = static_cast<std::size_t>(blocks);
    stop_[0] = 0;
    for (std::size_t block = 0; block < blocks_; ++block) {
      reports_[block].has_begun = 0;
      reports_[block].was_stopped = 0;
    }
    launch_occupant(stream_.get(),
                    {.blocks = blocks,
                     .shared_bytes = share_.bytes,
                     .memory = memory_.tensor().data,
                     .memory_bytes = occupant_memory_bytes,
                     .chunk_cycles = chunk_cycles(rate, occupant_chunk_bytes,
                                                  stage_.clock_mhz().value_or(usual_clock_mhz)),
                     .most_nanoseconds = most_nanoseconds,
                     .stop = stop_.get(),
                     .reports = reports_.get()});
    return wait_until_all_run();
  }

  void stop() { stop_[0] = 1; }

  std::vector<OccupantWord> end() {
    stop();
    check_call(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    std::vector<OccupantWord> words;
    for (std::size_t block = 0; block < blocks_; ++block) {
      const volatile OccupantReport& report = reports_[block];
      words.push_back({.was_stopped = report.was_stopped != 0,
                       .multiprocessor = report.multiprocessor,
                       .seconds = static_cast<double>(report.nanoseconds) / 1e9,
                       .bytes = static_cast<double>(report.bytes)});
    }
    return words;
  }

 private:
  bool all_run() const {
    for (std::size_t block = 0; block < blocks_; ++block)
      if (reports_[block].has_begun == 0)
        return false;
    return true;
  }

  bool wait_until_all_run() const {
    const auto until = std::chrono::steady_clock::now() + most_wait;
    while (!all_run()) {
      if (std::chrono::steady_clock::now() > until)
        return false;
      std::this_thread::yield();
    }
    return true;
  }

  CudaStage& stage_;
  WholeShare share_;
  Buffer memory_;
  CudaStream stream_;
  MappedValues<std::uint32_t> stop_;
  MappedValues<OccupantReport> reports_;
  std::size_t blocks_ = 0;
};

// Whatever happens while it holds: nothing else could be allocated until it ran out of time.
struct StopAtEnd {
  explicit StopAtEnd(Occupant& one) : occupant(one) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { occupant.stop(); }
  Occupant& occupant;
};

ModelSpec model_of_step(const std::string& victim) {
  if (victim == "resnet50_step")
    return {.name = "resnet50", .sizes = {{"image_size", 224}}, .batch = 64, .activations = Type::bf16};
  return {.name = "gpt",
          .sizes = {{"layers", 6}, {"hidden", 768}, {"heads", 12}, {"sequence", 1024}, {"vocabulary", 50257}},
          .batch = 8,
          .activations = Type::bf16};
}

// Made at their first use and kept: making one takes longer than timing it.
class WholeSteps {
 public:
  explicit WholeSteps(Device& device) : device_(device) {}
  WholeStep* find(const std::string& victim) {
    if (!victim.ends_with("_step"))
      return nullptr;
    std::unique_ptr<WholeStep>& step = steps_[victim];
    if (step == nullptr)
      step = std::make_unique<WholeStep>(device_, model_of_step(victim));
    return step.get();
  }

 private:
  Device& device_;
  std::map<std::string, std::unique_ptr<WholeStep>> steps_;
};

// What is slowed: a kernel, timed on a held stream, or a whole step, which is longer than its launches.
class Victim {
 public:
  Victim(const KernelBench& bench, CudaStage& stage, const std::string& name, WholeStep* step)
      : bench_(bench), stage_(stage), name_(name), step_(step) {
    if (step == nullptr)
      prepare_kernel();
  }

  std::optional<KernelTime> time() {
    if (step_ == nullptr)
      return time_held(stage_, kernel_, {.seconds = 20e-3});
    return time_steps();
  }

 private:
  void prepare_kernel() {
    if (name_ == "copy_256_mib")
      prepare_pair(256 << 20);
    else if (name_ == "layer_norm_64_mib")
      prepare_pair(64 << 20);
    else
      prepare_gemm();
  }

  void prepare_pair(std::int64_t bytes) {
    const ArenaOperand half{.elements = bytes / 2, .type = Type::bf16};
    bench_.arena.prepare(stage_.device(), {half, half}, Type::bf16);
    if (name_ == "copy_256_mib")
      kernel_ = [this](std::int64_t call) { stage_.device().copy(operand(call, 0), operand(call, 1)); };
    else
      prepare_layer_norm(bytes / 2);
  }

  void prepare_layer_norm(std::int64_t elements) {
    constexpr std::int64_t columns = 1024;
    Normalisation norm;
    norm.rows = elements / columns;
    norm.columns = columns;
    for (Tensor* tensor : {&norm.gain, &norm.shift, &norm.mean, &norm.inverse_deviation}) {
      small_.emplace_back(stage_.device(), std::max(norm.rows, columns), Type::fp32);
      stage_.device().fill_zero(small_.back().tensor());
      *tensor = small_.back().tensor();
    }
    kernel_ = [this, norm](std::int64_t call) {
      stage_.device().layer_norm(norm, operand(call, 0), operand(call, 1));
    };
  }

  void prepare_gemm() {
    GemmCase gemm{.precision = "bf16", .m = 4096, .n = 4096, .k = 4096, .layout = "NT", .direction = "fwd"};
    if (name_ == "gemm_gpt2_up") {
      gemm.m = 8192;
      gemm.n = 3072;
      gemm.k = 768;
    } else if (name_ == "gemm_llama_70b_up") {
      gemm.n = 28672;
      gemm.k = 8192;
    }
    bench_.arena.prepare(stage_.device(), operands_of(gemm), Type::bf16);
    kernel_ = [this, gemm](std::int64_t call) {
      stage_.device().matmul(matmul_of(gemm, bench_.arena, call));
    };
  }

  Tensor operand(std::int64_t call, std::size_t index) const { return bench_.arena.operand(call, index); }

  std::optional<KernelTime> time_steps() {
    constexpr int blocks = 5;
    constexpr int steps = 3;  // without a wait between
    std::vector<double> seconds;
    step_->run();
    for (int block = 0; block < blocks; ++block)
      seconds.push_back(time_of(stage_.device(),
                                [&] {
                                  for (int step = 0; step < steps; ++step) step_->run();
                                }) /
                        steps);
    const Statistics statistics = summarise(seconds);
    return KernelTime{.median_us = statistics.median * 1e6,
                      .p10_us = statistics.p10 * 1e6,
                      .p90_us = statistics.p90 * 1e6,
                      .samples = blocks,
                      .clock_mhz = std::nullopt};
  }

  const KernelBench& bench_;
  CudaStage& stage_;
  std::string name_;
  WholeStep* step_;  // null: a kernel
  std::vector<Buffer> small_;
  std::function<void(std::int64_t)> kernel_;
};

class InterferenceBench {
 public:
  InterferenceBench(const KernelBench& bench, CudaStage& stage)
      : bench_(bench), stage_(stage), occupant_(stage), steps_(stage.device()) {}

  // Alone, beside, and alone again: a clock that moved meanwhile shows in the two.
  bool measure(const InterferenceCase& interference) {
    Victim victim(bench_, stage_, interference.victim, steps_.find(interference.victim));
    const std::optional<KernelTime> before = victim.time();
    const StopAtEnd guard(occupant_);
    std::string state = occupant_.begin(interference.multiprocessors, interference.rate)
                            ? ""
                            : "failed: the multiprocessors were not free";
    const std::optional<KernelTime> beside = state.empty() ? victim.time() : std::nullopt;
    const std::vector<OccupantWord> words = occupant_.end();
    const std::optional<KernelTime> after = victim.time();
    if (state.empty())
      state = failure_of(words);
    if (state.empty() && !(before && beside && after))
      state = "failed: the host is slower than the GPU";
    add_row(interference, state, {before, beside, after}, words);
    return true;
  }

 private:
  struct Times {
    std::optional<KernelTime> before;
    std::optional<KernelTime> beside;
    std::optional<KernelTime> after;
  };

  void add_row(const InterferenceCase& interference, const std::string& state, const Times& times,
               const std::vector<OccupantWord>& words) {
    const bool is_measured = state.empty();
    const auto cell = [&](const std::optional<KernelTime>& time) {
      return is_measured ? microseconds(time->median_us) : "";
    };
    Cells row = {bench_.gpu};
    const Cells key = key_cells(interference);
    row.insert(row.end(), key.begin(), key.end());
    const double alone = is_measured ? (times.before->median_us + times.after->median_us) / 2 : 0;
    row.insert(row.end(), {cell(times.before), cell(times.beside), cell(times.after),
                           is_measured ? fmt::format("{:.4f}", times.beside->median_us / alone) : "",
                           is_measured ? fmt::format("{:.1f}", gigabytes_per_second(words)) : "",
                           occupant_.holds_whole() ? "1" : "0", is_measured ? "measured" : state,
                           bench_.source, is_measured ? microseconds(times.beside->p10_us) : "",
                           is_measured ? microseconds(times.beside->p90_us) : "",
                           is_measured ? clock_text(times.beside->clock_mhz) : ""});
    bench_.table.add(row);
  }

  const KernelBench& bench_;
  CudaStage& stage_;
  Occupant occupant_;
  WholeSteps steps_;
};

}  // namespace

TableLayout interference_layout() {
  return {.columns = {"gpu", "victim", "multiprocessors", "rate_of_each", "alone_before_us", "beside_us",
                      "alone_after_us", "slowdown", "taken_gbs", "holds_whole", "state", "source", "p10",
                      "p90", "clock_mhz"},
          .key = {"victim", "multiprocessors", "rate_of_each"}};
}

PartResult measure_sm_interference(const KernelBench& bench, CudaStage& stage) {
  InterferenceBench interference(bench, stage);
  return run_cases(
      bench, interference_cases(), [](const InterferenceCase& one) { return key_cells(one); },
      [&](const InterferenceCase& one) { return interference.measure(one); });
}

}  // namespace lockstep::harness
