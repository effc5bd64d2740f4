#pragma once

// What a fake library asks of the fake GPU.
//
// Problem:   code that calls CUDA, cuBLAS, cuDNN and NCCL can be right in every number and still race, and no
//            machine without a GPU would ever see it.
// Idea:      every asynchronous call of those libraries becomes an operation on a stream: what it reads, what
//            it writes, what it costs and a closure that does it in host memory. The GPU (gpu.h) runs
//            operations in any order that streams and events allow.
// Invariant: a closure touches nothing but what the operation states.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::harness::stand_in {

struct Memory {
  const void* begin = nullptr;
  std::int64_t bytes = 0;
};

// For the virtual clock: an operation lasts as long as its rates say, and never less than the GPU's least.
struct Work {
  double flops = 0;
  std::int64_t bytes = 0;  // moved in the GPU's memory
};

struct Operation {
  const char* name = "";  // of the entry point or kernel, for messages
  std::vector<Memory> reads = {};
  std::vector<Memory> writes = {};
  std::function<void()> run = {};
  Work work = {};
};

// At the end of `stream` of the calling thread's current GPU; nullptr is the legacy stream, which waits for
// every blocking stream and they for it.
void enqueue(cudaStream_t stream, Operation operation);

// Of a call that sets a stream or works on one: the stream given, or another where a test has put one in its
// place. Once a call, with __builtin_return_address(0) of the entry point.
cudaStream_t stream_argument(const char* entry_point, const void* call_site, cudaStream_t stream);

// Counts a call of this entry point by this thread's rank; true where a test asked for that call to fail.
bool must_fail(const char* entry_point);

// The launch of a kernel has failed: cudaGetLastError tells.
void fail_launch();

// What a library makes and ends: +1 and -1 of "cuBLAS handle", "cuDNN descriptor" and the like. What is left
// when a rank has ended is a leak.
void count_live(const char* kind, int change);

}  // namespace lockstep::harness::stand_in
