#include "validate/harness/device/cuda_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/device/cuda_check.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t staging_bytes = 4 << 20;

// Makes the GPU the thread's current one before the members after it need one.
int made_current(int device) {
  check_call(cudaSetDevice(device), "cudaSetDevice");
  return device;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  check_call(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

}  // namespace

int count_cuda_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  const bool is_absent = code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver;
  if (!is_absent)
    check_call(code, "cudaGetDeviceCount");
  if (count > 0)
    return count;
  throw EnvironmentError(
      fmt::format("no CUDA device was found ({}); lockstep_ddp_cpu runs the same step on the CPU",
                  code == cudaErrorInsufficientDriver
                      ? fmt::format("there is no NVIDIA driver, or it is too old for CUDA {}",
                                    version_text(CUDART_VERSION))
                      : "none is visible to this process"));
}

void* allocate_on_gpu(std::int64_t bytes) {
  void* memory = nullptr;
  // cudaMalloc of nothing gives no memory, which a tensor takes for its absence.
  const cudaError_t code = cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  if (code != cudaErrorMemoryAllocation) {
    check_call(code, "cudaMalloc");
    return memory;
  }
  ignore_failure(cudaGetLastError());  // the next launch shall not report it again
  std::size_t free = 0;
  std::size_t total = 0;
  check_call(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  throw EnvironmentError(fmt::format(
      "out of GPU memory: asked for {} MiB, {} MiB free of {} MiB; take a smaller --batch or model",
      (bytes + (1 << 20) - 1) >> 20, free >> 20U, total >> 20U));
}

CudaStream::CudaStream() {
  check_call(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

CudaStream::~CudaStream() {
  ignore_failure(cudaStreamDestroy(stream_));
}

CudaEvent::CudaEvent() {
  check_call(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

CudaEvent::~CudaEvent() {
  ignore_failure(cudaEventDestroy(event_));
}

CudaEvents::~CudaEvents() {
  for (const cudaEvent_t event : events_) ignore_failure(cudaEventDestroy(event));
}

void CudaEvents::add() {
  cudaEvent_t event = nullptr;
  check_call(cudaEventCreate(&event), "cudaEventCreate");
  events_.push_back(event);
}

void CudaEvents::reserve(std::int64_t count) {
  const std::size_t wanted = used_ + static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  events_.reserve(wanted);
  while (events_.size() < wanted) add();
}

std::uint32_t CudaEvents::record(cudaStream_t stream) {
  if (used_ == events_.size())
    add();
  check_call(cudaEventRecord(events_[used_], stream), "cudaEventRecord");
  return used_++;
}

cudaEvent_t CudaEvents::at(std::uint32_t index) const {
  LOCKSTEP_CHECK(index < used_, "only moments that were recorded and not forgotten are asked for");
  return events_[index];
}

bool CudaEvents::has_passed(std::uint32_t index) const {
  const cudaError_t code = cudaEventQuery(at(index));
  if (code == cudaErrorNotReady) {
    ignore_failure(cudaGetLastError());  // the next launch shall not report it
    return false;
  }
  check_call(code, "cudaEventQuery");
  return true;
}

double seconds_between_events(cudaEvent_t from, cudaEvent_t to) {
  check_call(cudaEventSynchronize(from), "cudaEventSynchronize");
  check_call(cudaEventSynchronize(to), "cudaEventSynchronize");
  float milliseconds = 0;
  check_call(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) / 1e3;
}

CudaScratch::~CudaScratch() {
  ignore_failure(cudaFree(memory_));
}

void* CudaScratch::at_least(std::int64_t bytes) {
  if (bytes <= bytes_)
    return memory_;
  bytes_ = 0;
  // Waits until nothing uses it any more.
  check_call(cudaFree(std::exchange(memory_, nullptr)), "cudaFree");
  memory_ = allocate_on_gpu(bytes);
  bytes_ = bytes;
  return memory_;
}

CudaRuntime::Staging::Staging() {
  check_call(cudaMallocHost(&memory, staging_bytes), "cudaMallocHost");
}

CudaRuntime::Staging::~Staging() {
  ignore_failure(cudaFreeHost(memory));
}

CudaRuntime::CudaRuntime(int device) : device_(made_current(device)) {}

CudaRuntime::~CudaRuntime() {
  ignore_failure(cudaDeviceSynchronize());
}

std::string CudaRuntime::name() const {
  return properties_of(device_).name;
}

std::string CudaRuntime::versions() const {
  int runtime = 0;
  int driver = 0;
  check_call(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check_call(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return fmt::format("CUDA {} (driver for CUDA {})", version_text(runtime), version_text(driver));
}

std::string CudaRuntime::uuid() const {
  const cudaDeviceProp properties = properties_of(device_);
  std::string text;
  for (const char byte : properties.uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string CudaRuntime::pci_bus_id() const {
  std::array<char, 32> bus_id{};
  check_call(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device_),
             "cudaDeviceGetPCIBusId");
  return bus_id.data();
}

void CudaRuntime::upload(Tensor to, const void* host) {
  for (std::int64_t done = 0; done < to.bytes(); done += staging_bytes) {
    const auto size = static_cast<std::size_t>(std::min(staging_bytes, to.bytes() - done));
    const Staging& staging = staging_[next_staging_];
    next_staging_ = (next_staging_ + 1) % staging_.size();
    check_call(cudaEventSynchronize(staging.is_free.get()), "cudaEventSynchronize");
    std::memcpy(staging.memory, static_cast<const char*>(host) + done, size);
    check_call(cudaMemcpyAsync(to.as<char>() + done, staging.memory, size, cudaMemcpyHostToDevice, stream()),
               "cudaMemcpyAsync to the GPU");
    check_call(cudaEventRecord(staging.is_free.get(), stream()), "cudaEventRecord");
  }
}

void CudaRuntime::download(void* host, Tensor from) {
  check_call(cudaMemcpyAsync(host, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToHost,
                             stream()),
             "cudaMemcpyAsync from the GPU");
  check_call(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
}

void CudaRuntime::fill_zero(Tensor to) {
  check_call(cudaMemsetAsync(to.data, 0, static_cast<std::size_t>(to.bytes()), stream()), "cudaMemsetAsync");
}

void CudaRuntime::copy(Tensor to, Tensor from) {
  LOCKSTEP_CHECK(to.bytes() == from.bytes(), "a copy is as large as what is copied");
  check_call(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(to.bytes()),
                             cudaMemcpyDeviceToDevice, stream()),
             "cudaMemcpyAsync on the GPU");
}

void CudaRuntime::copy_beside(Tensor to, Tensor from) {
  LOCKSTEP_CHECK(to.bytes() == from.bytes(), "a copy is as large as what is copied");
  check_call(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(to.bytes()),
                             cudaMemcpyDeviceToDevice, beside_.get()),
             "cudaMemcpyAsync beside the work");
}

void CudaRuntime::synchronize() {
  check_call(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  check_call(cudaStreamSynchronize(beside_.get()), "cudaStreamSynchronize");
}

}  // namespace lockstep::harness
