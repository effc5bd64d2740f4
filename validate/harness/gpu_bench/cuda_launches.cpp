// What it costs to start something: on the host, on the device back to back, and from idle.

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>

#include "sim/base/error.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/gpu_bench/cuda_parts.h"
#include "validate/harness/gpu_bench/whole_step.h"
#include "validate/harness/measure/measurement.h"

#ifdef LOCKSTEP_HAS_NCCL
#include "validate/harness/gpu_bench/nccl_bench.h"
#endif

namespace lockstep::harness {
namespace {

constexpr int idle_samples = 50;
constexpr int host_samples = 20;
constexpr int calls_a_sample = 50;  // far from filling a queue of 1,024 launches

struct Launch {
  std::string what;
  std::int64_t count = 1;  // of kernels in it
  std::function<void()> call;
};

// A graph of `count` kernels that do nothing, one after another.
class NullGraph {
 public:
  NullGraph(cudaStream_t stream, int count) : stream_(stream) {
    check_call(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int kernel = 0; kernel < count; ++kernel) launch_nothing(stream);
    check_call(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    check_call(cudaGraphInstantiate(&instance_, graph_, 0), "cudaGraphInstantiate");
  }
  NullGraph(const NullGraph&) = delete;
  NullGraph& operator=(const NullGraph&) = delete;
  ~NullGraph() {
    ignore_failure(cudaGraphExecDestroy(instance_));
    ignore_failure(cudaGraphDestroy(graph_));
  }
  void launch() const { check_call(cudaGraphLaunch(instance_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t instance_ = nullptr;
};

class Event {
 public:
  Event() {
    check_call(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { ignore_failure(cudaEventDestroy(event_)); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

Statistics time_on_host(CudaStage& stage, const Launch& launch, int calls) {
  std::vector<double> seconds;
  for (int sample = 0; sample < host_samples; ++sample) {
    stage.device().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) launch.call();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    seconds.push_back(passed.count() / calls);
  }
  stage.device().synchronize();
  return summarise(seconds);
}

// Between two events on a stream that had nothing to do: the host's launch is part of it.
Statistics time_from_idle(CudaStage& stage, const Launch& launch) {
  std::vector<double> seconds;
  for (int sample = 0; sample < idle_samples; ++sample)
    seconds.push_back(time_of(stage.device(), launch.call));
  return summarise(seconds);
}

bool measure(const KernelBench& bench, CudaStage& stage, const Launch& launch) {
  const int calls = launch.what == "small_step" ? 1 : calls_a_sample;
  const auto run = [&](std::int64_t) { launch.call(); };
  const std::optional<KernelTime> back_to_back = time_held(stage, run, {.most_calls = calls});
  const Statistics host = time_on_host(stage, launch, calls);
  const Statistics idle = time_from_idle(stage, launch);
  bench.table.add({bench.gpu, launch.what, fmt::to_string(launch.count),
                   back_to_back ? microseconds(back_to_back->median_us) : "", microseconds(host.median * 1e6),
                   microseconds(idle.median * 1e6), bench.source,
                   back_to_back ? microseconds(back_to_back->p10_us) : "",
                   back_to_back ? microseconds(back_to_back->p90_us) : "", microseconds(host.p90 * 1e6),
                   microseconds(idle.p90 * 1e6), back_to_back ? clock_text(back_to_back->clock_mhz) : ""});
  return true;
}

// A product too small to take the device any time.
std::function<void()> tiny_product(const KernelBench& bench, CudaStage& stage) {
  const GemmCase gemm{.precision = "bf16", .m = 64, .n = 64, .k = 64, .layout = "NT", .direction = "fwd"};
  bench.arena.prepare(stage.device(), operands_of(gemm), Type::bf16, false);
  return [&bench, &stage, gemm] { stage.device().matmul(matmul_of(gemm, bench.arena, 0)); };
}

std::vector<Launch> plain_launches(const KernelBench& bench, CudaStage& stage, const Event& event,
                                   const MappedValues<std::uint32_t>& host) {
  const cudaStream_t stream = stage.stream();
  void* const memory = bench.arena.operand(0, 0).data;
  return {{.what = "null_kernel", .call = [=] { launch_nothing(stream); }},
          {.what = "event_record",
           .count = 0,
           .call = [stream, &event] { check_call(cudaEventRecord(event.get(), stream), "cudaEventRecord"); }},
          {.what = "event_record_and_wait",
           .count = 0,
           .call =
               [stream, &event] {
                 check_call(cudaEventRecord(event.get(), stream), "cudaEventRecord");
                 check_call(cudaStreamWaitEvent(stream, event.get(), 0), "cudaStreamWaitEvent");
               }},
          {.what = "memset_4_bytes",
           .call = [=] { check_call(cudaMemsetAsync(memory, 0, 4, stream), "cudaMemsetAsync"); }},
          {.what = "copy_4_bytes",
           .call =
               [stream, memory, &host] {
                 check_call(cudaMemcpyAsync(memory, host.get(), 4, cudaMemcpyHostToDevice, stream),
                            "cudaMemcpyAsync");
               }},
          {.what = "gemm_64", .call = tiny_product(bench, stage)}};
}

#ifdef LOCKSTEP_HAS_NCCL
// Null where NCCL does not start: the other launches are worth their table.
std::unique_ptr<OneGpuNccl> try_nccl(const KernelBench& bench, CudaStage& stage) {
  try {
    return std::make_unique<OneGpuNccl>(stage.runtime().device(), stage.stream());
  } catch (const EnvironmentError& error) {
    bench.tell(error.what());
    return nullptr;
  }
}
#endif

}  // namespace

TableLayout launches_layout() {
  return {.columns = {"gpu", "what", "kernels", "time_us", "host_us", "from_idle_us", "source", "p10", "p90",
                      "host_p90", "from_idle_p90", "clock_mhz"},
          .key = {"what", "kernels"}};
}

PartResult measure_launches(const KernelBench& bench, CudaStage& stage) {
  const cudaStream_t stream = stage.stream();
  const Event event;
  const MappedValues<std::uint32_t> host(1);
  bench.arena.prepare(stage.device(), {{.elements = 1024}}, Type::fp32, false);
  std::vector<Launch> launches = plain_launches(bench, stage, event, host);
  launch_nothing(stream);  // loaded before it is captured: loading is not for a stream that is being captured
  stage.device().synchronize();
  const std::array<NullGraph, 3> graphs = {NullGraph(stream, 1), NullGraph(stream, 10),
                                           NullGraph(stream, 100)};
  launches.push_back({.what = "graph", .count = 1, .call = [&] { graphs[0].launch(); }});
  launches.push_back({.what = "graph", .count = 10, .call = [&] { graphs[1].launch(); }});
  launches.push_back({.what = "graph", .count = 100, .call = [&] { graphs[2].launch(); }});
#ifdef LOCKSTEP_HAS_NCCL
  const std::unique_ptr<OneGpuNccl> nccl = try_nccl(bench, stage);
  if (nccl != nullptr)
    launches.push_back({.what = "nccl_all_reduce_of_one_rank", .call = [&] { nccl->all_reduce_few(); }});
#endif
  WholeStep step(stage.device());
  launches.push_back({.what = "small_step", .count = 0, .call = [&] { step.run(); }});
  return run_cases(
      bench, launches,
      [](const Launch& launch) {
        return Cells{launch.what, fmt::to_string(launch.count)};
      },
      [&](const Launch& launch) { return measure(bench, stage, launch); });
}

}  // namespace lockstep::harness
