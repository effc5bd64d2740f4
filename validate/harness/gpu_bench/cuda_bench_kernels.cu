#include <cuda_runtime.h>

#include "validate/harness/device/cuda_check.h"
#include "validate/harness/gpu_bench/cuda_bench_kernels.h"

namespace lockstep::harness {
namespace {

constexpr int occupant_threads = 1024;
constexpr int chunks_between_looks = 16;  // at the stop flag, which lies across PCIe
constexpr int values_of_thread = 4;       // of a chunk: independent loads, so that they overlap

__device__ std::uint64_t now_nanoseconds() {
  std::uint64_t time = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__device__ std::uint32_t own_multiprocessor() {
  std::uint32_t index = 0;
  asm volatile("mov.u32 %0, %smid;" : "=r"(index));
  return index;
}

__device__ std::uint64_t now_cycles() {
  return static_cast<std::uint64_t>(clock64());
}

__global__ void nothing_kernel() {}

// The timer steps by up to a microsecond: from one step to another, the cycles between are exact.
__global__ void hold_kernel(std::uint64_t nanoseconds, volatile HoldReport* report) {
  const std::uint64_t before = now_nanoseconds();
  std::uint64_t begin = before;
  while (begin == before) begin = now_nanoseconds();
  const std::uint64_t begin_cycles = now_cycles();
  std::uint64_t passed = 0;
  while (passed < nanoseconds) passed = now_nanoseconds() - begin;
  report->cycles = now_cycles() - begin_cycles;
  report->nanoseconds = passed;
}

// Copies the chunk that is `number`-th of this block's. Loads past the caches' first level, as a collective's
// do.
__device__ void copy_chunk(const Occupation& occupation, std::uint64_t number) {
  constexpr std::uint64_t values = occupant_threads * values_of_thread;
  const std::uint64_t half = static_cast<std::uint64_t>(occupation.memory_bytes) / 2 / sizeof(uint4);
  const std::uint64_t chunk = number * gridDim.x + blockIdx.x;
  auto* const from = static_cast<const uint4*>(occupation.memory) + chunk % (half / values) * values;
  auto* const to = const_cast<uint4*>(from) + half;
  uint4 held[values_of_thread];
#pragma unroll
  for (int i = 0; i < values_of_thread; ++i) held[i] = __ldcs(from + threadIdx.x + i * occupant_threads);
#pragma unroll
  for (int i = 0; i < values_of_thread; ++i) __stcs(to + threadIdx.x + i * occupant_threads, held[i]);
}

enum class Look : int { go_on, stopped, out_of_time };

// The same answer for all threads of the block.
__device__ Look look(const Occupation& occupation, std::uint64_t begin, int* shared) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const bool is_late = now_nanoseconds() - begin > static_cast<std::uint64_t>(occupation.most_nanoseconds);
    *shared =
        static_cast<int>(*occupation.stop != 0 ? Look::stopped : (is_late ? Look::out_of_time : Look::go_on));
  }
  __syncthreads();
  return static_cast<Look>(*shared);
}

__global__ void __launch_bounds__(occupant_threads, 1) occupant_kernel(Occupation occupation) {
  extern __shared__ int shared[];
  volatile OccupantReport* const report = occupation.reports + blockIdx.x;
  const std::uint64_t begin = now_nanoseconds();
  if (threadIdx.x == 0) {
    report->multiprocessor = own_multiprocessor();
    __threadfence_system();
    report->has_begun = 1;
  }
  std::uint64_t chunks = 0;
  std::uint64_t next = now_cycles();
  Look seen = Look::go_on;
  while (seen == Look::go_on) {
    for (int i = 0; i < chunks_between_looks && occupation.chunk_cycles >= 0; ++i) {
      while (now_cycles() < next) {
      }
      next = now_cycles() + static_cast<std::uint64_t>(occupation.chunk_cycles);
      copy_chunk(occupation, chunks++);
    }
    seen = look(occupation, begin, shared);
  }
  if (threadIdx.x == 0) {
    report->bytes = chunks * occupant_chunk_bytes;
    report->nanoseconds = now_nanoseconds() - begin;
    report->was_stopped = seen == Look::stopped ? 1 : 0;
  }
}

}  // namespace

void launch_hold(cudaStream_t stream, std::int64_t nanoseconds, HoldReport* report) {
  hold_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(nanoseconds), report);
  check_launch();
}

void launch_nothing(cudaStream_t stream) {
  nothing_kernel<<<1, 1, 0, stream>>>();
  check_launch();
}

void launch_occupant(cudaStream_t stream, const Occupation& occupation) {
  check_call(cudaFuncSetAttribute(occupant_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(occupation.shared_bytes)),
             "cudaFuncSetAttribute");
  occupant_kernel<<<static_cast<unsigned>(occupation.blocks), occupant_threads,
                    static_cast<std::size_t>(occupation.shared_bytes), stream>>>(occupation);
  check_launch();
}

// CUDA keeps some shared memory of each block for itself; where a block has all the rest, no other finds any.
WholeShare whole_multiprocessor(int device) {
  cudaDeviceProp properties{};
  check_call(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  const std::size_t taken = properties.sharedMemPerBlockOptin + properties.reservedSharedMemPerBlock;
  return {
      .bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin),
      .is_whole = properties.reservedSharedMemPerBlock > 0 && taken >= properties.sharedMemPerMultiprocessor};
}

}  // namespace lockstep::harness
