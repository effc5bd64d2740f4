#include "validate/harness/gpu_bench/nccl_bench.h"

#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_runtime.h"
#include "validate/harness/gpu_bench/collective_log_text.h"
#include "validate/harness/measure/measurement.h"

namespace lockstep::harness {
namespace {

void check_nccl(ncclResult_t code, const char* call) {
  if (code != ncclSuccess)
    throw EnvironmentError(fmt::format("{} failed with \"{}\" ({}): NCCL_DEBUG=WARN makes NCCL tell more",
                                       call, ncclGetErrorString(code), ncclGetLastError(nullptr)));
}

void select_device(int device) {
  check_call(cudaSetDevice(device), "cudaSetDevice");
}

class DeviceMemory {
 public:
  explicit DeviceMemory(std::int64_t bytes) : memory_(allocate_on_gpu(bytes)) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { ignore_failure(cudaFree(memory_)); }
  float* get() const { return static_cast<float*>(memory_); }

 private:
  void* memory_;
};

// What one GPU has of the group; made and ended with that GPU the current one.
struct Member {
  Member(int index, std::int64_t bytes) : device(index), sent(bytes), received(bytes) {}
  int device;
  CudaStream stream;
  DeviceMemory sent;
  DeviceMemory received;
  ncclComm_t communicator = nullptr;
};

class Group {
 public:
  Group(int gpus, std::int64_t most_bytes) {
    std::vector<int> devices(static_cast<std::size_t>(gpus));
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<ncclComm_t> communicators(devices.size());
    check_nccl(ncclCommInitAll(communicators.data(), gpus, devices.data()), "ncclCommInitAll");
    for (const int device : devices) {
      select_device(device);
      members_.push_back(std::make_unique<Member>(device, most_bytes));
      members_.back()->communicator = communicators[static_cast<std::size_t>(device)];
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    for (const auto& member : members_) {
      ignore_failure(cudaSetDevice(member->device));
      ncclCommAbort(member->communicator);
    }
  }

  int size() const { return static_cast<int>(members_.size()); }

  void start(const std::string& op, std::int64_t bytes) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (const auto& member : members_) start(*member, op, bytes);
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  }

  void synchronize() {
    for (const auto& member : members_) {
      select_device(member->device);
      check_call(cudaStreamSynchronize(member->stream.get()), "cudaStreamSynchronize");
    }
  }

  // Every rank sends its own number plus one, in every element.
  void write_inputs(std::int64_t bytes) {
    for (const auto& member : members_) {
      const std::vector<float> values(static_cast<std::size_t>(bytes / 4),
                                      static_cast<float>(member->device + 1));
      select_device(member->device);
      check_call(cudaMemcpy(member->sent.get(), values.data(), values.size() * 4, cudaMemcpyHostToDevice),
                 "cudaMemcpy to the GPU");
      check_call(cudaMemset(member->received.get(), 0, values.size() * 4), "cudaMemset");
      // The legacy stream, which set the memory, is nothing that the group's streams wait for.
      check_call(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
  }

  std::int64_t count_wrong(const std::string& op, std::int64_t bytes) {
    std::int64_t wrong = 0;
    for (const auto& member : members_) wrong += count_wrong(*member, op, bytes);
    return wrong;
  }

 private:
  void start(Member& member, const std::string& op, std::int64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes / 4);
    const std::size_t part = count / members_.size();
    const cudaStream_t stream = member.stream.get();
    float* const sent = member.sent.get();
    float* const received = member.received.get();
    if (op == "all_reduce")
      check_nccl(ncclAllReduce(sent, received, count, ncclFloat32, ncclSum, member.communicator, stream),
                 "ncclAllReduce");
    else if (op == "all_gather")
      check_nccl(ncclAllGather(sent, received, part, ncclFloat32, member.communicator, stream),
                 "ncclAllGather");
    else if (op == "reduce_scatter")
      check_nccl(ncclReduceScatter(sent, received, part, ncclFloat32, ncclSum, member.communicator, stream),
                 "ncclReduceScatter");
    else if (op == "broadcast")
      check_nccl(ncclBroadcast(sent, received, count, ncclFloat32, 0, member.communicator, stream),
                 "ncclBroadcast");
    else if (op == "all_to_all")
      start_all_to_all(member, part);
    else
      start_ring_shift(member, count);
  }

  void send_and_receive(Member& member, const float* sent, int to, float* received, int from,
                        std::size_t count) {
    check_nccl(ncclSend(sent, count, ncclFloat32, to, member.communicator, member.stream.get()), "ncclSend");
    check_nccl(ncclRecv(received, count, ncclFloat32, from, member.communicator, member.stream.get()),
               "ncclRecv");
  }

  void start_all_to_all(Member& member, std::size_t part) {
    for (int peer = 0; peer < size(); ++peer) {
      const std::size_t offset = static_cast<std::size_t>(peer) * part;
      send_and_receive(member, member.sent.get() + offset, peer, member.received.get() + offset, peer, part);
    }
  }

  void start_ring_shift(Member& member, std::size_t count) {
    const int next = (member.device + 1) % size();
    const int previous = (member.device + size() - 1) % size();
    send_and_receive(member, member.sent.get(), next, member.received.get(), previous, count);
  }

  // What element `index` of this rank must be.
  float expected(const Member& member, const std::string& op, std::size_t index, std::size_t part) const {
    const auto ranks = static_cast<float>(size());
    if (op == "all_reduce" || op == "reduce_scatter")
      return ranks * (ranks + 1) / 2;
    if (op == "broadcast")
      return 1;
    if (op == "send_recv")
      return static_cast<float>((member.device + size() - 1) % size() + 1);
    return static_cast<float>(index / part + 1);
  }

  std::int64_t count_wrong(Member& member, const std::string& op, std::int64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes / 4);
    const std::size_t part = std::max<std::size_t>(count / members_.size(), 1);
    std::vector<float> values(op == "reduce_scatter" ? part : count);
    select_device(member.device);
    check_call(cudaMemcpy(values.data(), member.received.get(), values.size() * 4, cudaMemcpyDeviceToHost),
               "cudaMemcpy from the GPU");
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += values[i] != expected(member, op, i, part) ? 1 : 0;
    return wrong;
  }

  std::vector<std::unique_ptr<Member>> members_;
};

double seconds_of(Group& group, const std::string& op, std::int64_t bytes, std::int64_t calls) {
  group.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t call = 0; call < calls; ++call) group.start(op, bytes);
  group.synchronize();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / static_cast<double>(calls);
}

CollectiveLogLine time_size(Group& group, const std::string& op, std::int64_t bytes) {
  group.write_inputs(bytes);
  group.start(op, bytes);
  group.synchronize();
  CollectiveLogLine line{.bytes = bytes, .wrong = group.count_wrong(op, bytes)};
  const double estimate = seconds_of(group, op, bytes, 5);
  const std::int64_t calls = count_repeats({.seconds = 0.3, .least = 10, .most = 200}, estimate);
  line.seconds = seconds_of(group, op, bytes, calls);
  return line;
}

std::vector<std::string> gpu_names(int gpus) {
  std::vector<std::string> names;
  for (int device = 0; device < gpus; ++device) {
    cudaDeviceProp properties{};
    check_call(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    names.emplace_back(properties.name);
  }
  return names;
}

}  // namespace

struct OneGpuNccl::State {
  State(int device, cudaStream_t on) : stream(on), memory(2 * 64) {
    check_nccl(ncclCommInitAll(&communicator, 1, &device), "ncclCommInitAll");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ncclCommAbort(communicator); }

  cudaStream_t stream;
  DeviceMemory memory;
  ncclComm_t communicator = nullptr;
};

OneGpuNccl::OneGpuNccl(int device, cudaStream_t stream) : state_(std::make_unique<State>(device, stream)) {}

OneGpuNccl::~OneGpuNccl() = default;

void OneGpuNccl::all_reduce_few() const {
  float* const memory = state_->memory.get();
  check_nccl(
      ncclAllReduce(memory, memory + 16, 16, ncclFloat32, ncclSum, state_->communicator, state_->stream),
      "ncclAllReduce");
}

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

bool measure_collective(const CollectiveBenchOptions& options) {
  Group group(options.gpus, options.most_bytes);
  const CollectiveLogHeader header{
      .op = options.op, .library_version = nccl_version(), .gpus = gpu_names(options.gpus)};
  std::vector<CollectiveLogLine> lines;
  std::int64_t before = 0;
  for (std::int64_t size = options.least_bytes; size <= options.most_bytes; size *= 2) {
    const std::int64_t bytes = whole_bytes(options.op, size, options.gpus);
    if (bytes <= before)
      continue;
    if (options.time_is_up())
      return false;
    before = bytes;
    lines.push_back(time_size(group, options.op, bytes));
    write_file_atomically(options.path, collective_log_text(header, lines));
  }
  return true;
}

}  // namespace lockstep::harness
