// Copies between host and GPU: by direction, by kind of host memory, by size.

#include <fmt/format.h>

#include <chrono>

#include "validate/harness/device/cuda_check.h"
#include "validate/harness/gpu_bench/cuda_parts.h"
#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t least_bytes = 4 << 10;
constexpr std::int64_t most_bytes = 1 << 30;

struct HostCopy {
  std::string direction;  // host_to_device, device_to_host, both
  bool is_pinned = true;
  std::int64_t bytes = 0;
};

// Large ones first: bandwidth is worth more than latency, and both ends of the range come early.
std::vector<HostCopy> host_copies() {
  std::vector<HostCopy> copies;
  for (const bool is_pinned : {true, false})
    for (std::int64_t bytes = most_bytes / 4; bytes >= least_bytes; bytes /= 4)
      for (const char* direction : {"host_to_device", "device_to_host", "both"})
        if (is_pinned || std::string(direction) != "both")
          copies.push_back({.direction = direction, .is_pinned = is_pinned, .bytes = bytes});
  return copies;
}

struct PinnedMemory {
  PinnedMemory() { check_call(cudaMallocHost(&memory, most_bytes), "cudaMallocHost"); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { ignore_failure(cudaFreeHost(memory)); }
  void* memory = nullptr;
};

class HostCopies {
 public:
  explicit HostCopies(CudaStage& stage)
      : stage_(stage), pageable_(most_bytes / 2, 'x'), device_(stage.device(), most_bytes / 4, Type::fp32) {}

  std::optional<KernelTime> time(const HostCopy& copy) {
    if (!copy.is_pinned)
      return time_on_host(copy);
    return time_held(stage_, [&](std::int64_t) { run(copy); }, {.most_calls = 16});
  }

 private:
  // What is sent and what is received are halves of one memory each.
  void run(const HostCopy& copy) {
    const bool is_both = copy.direction == "both";
    if (is_both)
      fork();
    if (copy.direction != "device_to_host")
      send(pinned_.memory, copy.bytes);
    if (copy.direction != "host_to_device")
      receive(static_cast<char*>(pinned_.memory) + most_bytes / 2, copy.bytes,
              is_both ? beside_.get() : stage_.stream());
    if (is_both)
      join();
  }

  void send(const void* host, std::int64_t bytes) {
    check_call(cudaMemcpyAsync(device_.tensor().data, host, static_cast<std::size_t>(bytes),
                               cudaMemcpyHostToDevice, stage_.stream()),
               "cudaMemcpyAsync to the GPU");
  }
  void receive(void* host, std::int64_t bytes, cudaStream_t stream) {
    check_call(cudaMemcpyAsync(host, device_.tensor().as<char>() + most_bytes / 2,
                               static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream),
               "cudaMemcpyAsync from the GPU");
  }

  void order(cudaStream_t before, cudaStream_t after) {
    const std::uint32_t mark = stage_.runtime().marks().record(before);
    check_call(cudaStreamWaitEvent(after, stage_.runtime().marks().at(mark), 0), "cudaStreamWaitEvent");
  }
  void fork() { order(stage_.stream(), beside_.get()); }
  void join() { order(beside_.get(), stage_.stream()); }

  // A pageable copy keeps the host busy: its time is the host's.
  std::optional<KernelTime> time_on_host(const HostCopy& copy) {
    const bool is_sent = copy.direction == "host_to_device";
    const auto once = [&] {
      const auto begin = std::chrono::steady_clock::now();
      if (is_sent)
        send(pageable_.data(), copy.bytes);
      else
        receive(pageable_.data(), copy.bytes, stage_.stream());
      stage_.device().synchronize();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const double estimate = once();
    std::vector<double> seconds;
    for (std::int64_t left = count_repeats({.seconds = 0.2, .least = 5, .most = 50}, estimate); left > 0;
         --left)
      seconds.push_back(once());
    const Statistics statistics = summarise(seconds);
    return KernelTime{.median_us = statistics.median * 1e6,
                      .p10_us = statistics.p10 * 1e6,
                      .p90_us = statistics.p90 * 1e6,
                      .samples = statistics.count,
                      .clock_mhz = std::nullopt};
  }

  CudaStage& stage_;
  PinnedMemory pinned_;
  std::vector<char> pageable_;
  Buffer device_;
  CudaStream beside_;
};

Cells copy_key(const HostCopy& copy) {
  return {copy.direction, copy.is_pinned ? "pinned" : "pageable", fmt::to_string(copy.bytes)};
}

bool add_row(const KernelBench& bench, const HostCopy& copy, const std::optional<KernelTime>& time) {
  if (!time)
    return false;
  const double both = copy.direction == "both" ? 2 : 1;
  Cells row = {bench.gpu};
  const Cells key = copy_key(copy);
  row.insert(row.end(), key.begin(), key.end());
  row.insert(
      row.end(),
      {microseconds(time->median_us), bench.source, microseconds(time->p10_us), microseconds(time->p90_us),
       fmt::format("{:.3f}", both * static_cast<double>(copy.bytes) / 1e3 / time->median_us)});
  bench.table.add(row);
  return true;
}

}  // namespace

TableLayout host_copies_layout() {
  return {.columns = {"gpu", "direction", "memory", "bytes", "time_us", "source", "p10", "p90", "gbs"},
          .key = {"direction", "memory", "bytes"}};
}

PartResult measure_host_copies(const KernelBench& bench, CudaStage& stage) {
  HostCopies copies(stage);
  return run_cases(bench, host_copies(), copy_key,
                   [&](const HostCopy& copy) { return add_row(bench, copy, copies.time(copy)); });
}

}  // namespace lockstep::harness
