// The entry points of CUDA's runtime. Each is one Call (call.h): counted, perhaps failing, perhaps mutated.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "validate/harness/stand_in/call.h"

using lockstep::harness::stand_in::Access;
using lockstep::harness::stand_in::Call;
using lockstep::harness::stand_in::DeviceMemory;
using lockstep::harness::stand_in::Item;
using lockstep::harness::stand_in::Machine;
using lockstep::harness::stand_in::Memory;
using lockstep::harness::stand_in::Operation;
using lockstep::harness::stand_in::Place;
using lockstep::harness::stand_in::this_thread;
using lockstep::harness::stand_in::VectorClock;

namespace {

constexpr double no_time = 0;

double launch_cost() {
  const auto* const clock = Machine::current().clock();
  return clock == nullptr ? no_time : clock->rates().launch;
}

double question_cost() {
  const auto* const clock = Machine::current().clock();
  return clock == nullptr ? no_time : clock->rates().question;
}

double event_cost() {
  const auto* const clock = Machine::current().clock();
  return clock == nullptr ? no_time : clock->rates().event;
}

// The thread remembers it until it asks.
cudaError_t failed(cudaError_t error) {
  return this_thread().last_error = error;
}

bool is_a_gpu(int device) {
  return device >= 0 && device < Machine::current().options().gpus;
}

// What a host waits for, and knows once it is there.
void wait_for_gpu(Call& call) {
  auto& streams = call.machine().streams();
  const int gpu = call.gpu();
  call.wait_until([&streams, gpu] { return streams.is_idle(gpu); });
  call.see(streams.clock_of(gpu));
  this_thread().downloading = nullptr;
}

bool is_stream(Call& call, cudaStream_t stream) {
  if (stream != nullptr && !stream->is_live)
    call.machine().report(fmt::format("{} is given a stream that was destroyed", call.name()));
  return stream == nullptr || stream->is_live;
}

bool is_event(Call& call, cudaEvent_t event) {
  if (event == nullptr || !event->is_live)
    call.machine().report(fmt::format("{} is given an event that does not exist", call.name()));
  return event != nullptr && event->is_live;
}

// The host's own access to page-locked memory, which nothing shows but the call that hands it over.
void host_touches(Call& call, const Place& place, const char* name, bool writes) {
  const VectorClock clock = call.issue();
  auto& allocation = call.machine().memory().at(place.allocation);
  VectorClock own = clock;
  const Access access{.begin = place.begin,
                      .end = place.end,
                      .writes = writes,
                      .name = name,
                      .moment = own.advance(call.host().line)};
  call.see(own);
  if (const auto problem = allocation.history.add(access, own))
    call.machine().report(*problem);
}

cudaError_t release(Call& call, void* memory, bool is_page_locked, const char* name) {
  auto& records = call.machine().memory();
  const auto allocation = records.find_whole(memory);
  if (!allocation || (records.at(*allocation).gpu == DeviceMemory::of_host) != is_page_locked) {
    call.machine().report(fmt::format("{} is given what is no allocation", call.name()));
    return failed(cudaErrorInvalidValue);
  }
  if (!call.machine().is_broken())
    host_touches(call, {.allocation = *allocation, .begin = 0, .end = records.at(*allocation).bytes}, name,
                 true);
  records.release(*allocation);
  return cudaSuccess;
}

cudaError_t allocate(Call& call, void** memory, std::size_t bytes, int gpu) {
  if (call.must_fail())
    return failed(cudaErrorMemoryAllocation);
  *memory = bytes == 0 ? nullptr
                       : call.machine().memory().allocate(gpu, static_cast<std::int64_t>(bytes));
  return bytes > 0 && *memory == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event, const char* entry_point, bool tells_time) {
  Call call(entry_point);
  if (call.must_fail())
    return failed(cudaErrorMemoryAllocation);
  *event = call.machine().streams().make_event(tells_time);
  call.machine().count_live("event", 1);
  return cudaSuccess;
}

const char* name_of(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice)
    return "a copy to the GPU";
  return kind == cudaMemcpyDeviceToHost ? "a copy from the GPU" : "a copy on the GPU";
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "an error of the stand-in";
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "as a test asked, or a finding";
}

cudaError_t cudaGetLastError() {
  Call call("cudaGetLastError");
  if (call.must_fail())
    return cudaErrorUnknown;
  const cudaError_t error = this_thread().last_error;
  this_thread().last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  Call call("cudaGetDeviceCount");
  if (call.must_fail())
    return failed(cudaErrorUnknown);
  *count = call.machine().options().gpus;
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  Call call("cudaSetDevice");
  if (call.must_fail() || !is_a_gpu(device))
    return failed(cudaErrorInvalidDevice);
  this_thread().gpu = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Call call("cudaGetDeviceProperties");
  if (call.must_fail() || !is_a_gpu(device))
    return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "GPU in host memory");
  properties->uuid.bytes[0] = static_cast<char>(device);
  properties->totalGlobalMem = static_cast<std::size_t>(call.machine().memory().total_bytes());
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int length, int device) {
  Call call("cudaDeviceGetPCIBusId");
  if (call.must_fail() || !is_a_gpu(device))
    return failed(cudaErrorInvalidDevice);
  std::snprintf(bus_id, static_cast<std::size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device));
  return cudaSuccess;
}

// What reports the failure of earlier work has waited for it, here and below.
cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize", __builtin_return_address(0));
  const bool fails = call.must_fail();
  if (!call.is_dropped())
    wait_for_gpu(call);
  return fails ? failed(cudaErrorUnknown) : call.result();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  Call call("cudaRuntimeGetVersion");
  *version = CUDART_VERSION;
  return call.must_fail() ? failed(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  Call call("cudaDriverGetVersion");
  *version = CUDART_VERSION;
  return call.must_fail() ? failed(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  Call call("cudaMemGetInfo");
  if (call.must_fail())
    return failed(cudaErrorUnknown);
  *free = static_cast<std::size_t>(call.machine().memory().free_bytes(call.gpu()));
  *total = static_cast<std::size_t>(call.machine().memory().total_bytes());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  Call call("cudaMalloc");
  return allocate(call, memory, bytes, call.gpu());
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  Call call("cudaMallocHost");
  return allocate(call, memory, bytes, DeviceMemory::of_host);
}

// A destructor that calls it has nobody to tell, so a call that fails frees all the same.
cudaError_t cudaFree(void* memory) {
  Call call("cudaFree", __builtin_return_address(0));
  const bool fails = call.must_fail();
  if (memory == nullptr)
    return fails ? failed(cudaErrorUnknown) : cudaSuccess;
  if (!call.is_dropped())
    wait_for_gpu(call);
  const cudaError_t released = release(call, memory, false, "cudaFree");
  return fails ? failed(cudaErrorUnknown) : released;
}

// CUDA does not promise that it waits for anything.
cudaError_t cudaFreeHost(void* memory) {
  Call call("cudaFreeHost");
  const bool fails = call.must_fail();
  if (memory == nullptr)
    return fails ? failed(cudaErrorUnknown) : cudaSuccess;
  const cudaError_t released = release(call, memory, true, "cudaFreeHost");
  return fails ? failed(cudaErrorUnknown) : released;
}

// Memory of the host that is not page-locked is no allocation here. What is copied from it is taken at once; what
// is copied to it must be waited for next.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t argument) {
  Call call("cudaMemcpyAsync", __builtin_return_address(0), launch_cost());
  if (call.must_fail() || !is_stream(call, argument))
    return failed(cudaErrorInvalidValue);
  const auto size = static_cast<std::int64_t>(bytes);
  const cudaStream_t stream = call.stream(argument);
  Operation copy{.name = name_of(kind), .run = [=] { std::memcpy(to, from, bytes); }, .work = {.bytes = 2 * size}};
  const auto locked = kind == cudaMemcpyHostToDevice ? call.machine().memory().find(from, size) : std::nullopt;
  if (kind != cudaMemcpyHostToDevice || locked)
    copy.reads.push_back({.begin = from, .bytes = size});
  const bool is_pageable_target =
      kind == cudaMemcpyDeviceToHost && !call.machine().memory().find(to, size);
  if (!is_pageable_target)
    copy.writes.push_back({.begin = to, .bytes = size});
  if (locked)
    host_touches(call, *locked, "the host", true);
  if (kind == cudaMemcpyHostToDevice && !locked)
    copy.run = [to, values = std::string(static_cast<const char*>(from), bytes)] {
      std::memcpy(to, values.data(), values.size());
    };
  call.enqueue(stream, {.operation = std::move(copy), .is_copy = true});
  if (is_pageable_target)
    this_thread().downloading = stream;
  return call.result();
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t argument) {
  Call call("cudaMemsetAsync", __builtin_return_address(0), launch_cost());
  if (call.must_fail() || !is_stream(call, argument))
    return failed(cudaErrorInvalidValue);
  const auto size = static_cast<std::int64_t>(bytes);
  call.enqueue(call.stream(argument), {.operation = {.name = "a fill",
                                                     .writes = {{.begin = memory, .bytes = size}},
                                                     .run = [=] { std::memset(memory, value, bytes); },
                                                     .work = {.bytes = size}}});
  return call.result();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  Call call("cudaStreamCreateWithFlags");
  if (call.must_fail())
    return failed(cudaErrorMemoryAllocation);
  *stream = call.machine().streams().make_stream(call.gpu(), (flags & cudaStreamNonBlocking) == 0);
  call.machine().count_live("stream", 1);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Call call("cudaStreamDestroy");
  const bool fails = call.must_fail();
  if (!is_stream(call, stream))
    return failed(cudaErrorInvalidResourceHandle);
  stream->is_live = false;
  call.machine().count_live("stream", -1);
  return fails ? failed(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t argument) {
  Call call("cudaStreamSynchronize", __builtin_return_address(0));
  const bool fails = call.must_fail();
  if (!is_stream(call, argument))
    return failed(cudaErrorInvalidResourceHandle);
  if (!call.is_dropped())
    call.wait_for(call.stream(argument));
  return fails ? failed(cudaErrorUnknown) : call.result();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t argument, cudaEvent_t event, unsigned /*flags*/) {
  Call call("cudaStreamWaitEvent", __builtin_return_address(0), event_cost());
  if (call.must_fail() || !is_stream(call, argument) || !is_event(call, event))
    return failed(cudaErrorInvalidResourceHandle);
  if (!call.is_dropped() && event->recording)
    call.enqueue(call.stream(argument), {.kind = Item::Kind::wait, .recording = *event->recording});
  return call.result();
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make_event(event, "cudaEventCreate", true);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event(event, "cudaEventCreateWithFlags", (flags & cudaEventDisableTiming) == 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Call call("cudaEventDestroy");
  const bool fails = call.must_fail();
  if (event == nullptr)
    return failed(cudaErrorInvalidResourceHandle);
  if (!is_event(call, event))
    return failed(cudaErrorInvalidResourceHandle);
  event->is_live = false;
  call.machine().count_live("event", -1);
  return fails ? failed(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t argument) {
  Call call("cudaEventRecord", __builtin_return_address(0), event_cost());
  if (call.must_fail() || !is_stream(call, argument) || !is_event(call, event))
    return failed(cudaErrorInvalidResourceHandle);
  if (call.is_dropped())
    return call.result();
  event->recording = call.machine().streams().new_recording();
  call.enqueue(call.stream(argument), {.kind = Item::Kind::record, .recording = *event->recording});
  return call.result();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Call call("cudaEventQuery", nullptr, question_cost());
  if (call.must_fail() || !is_event(call, event))
    return failed(cudaErrorInvalidResourceHandle);
  if (!event->recording)
    return call.result();
  const auto& recording = call.machine().streams().recording(*event->recording);
  if (!recording.is_done && !call.machine().is_broken())
    return failed(cudaErrorNotReady);
  call.see(recording.clock);
  return call.result();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Call call("cudaEventSynchronize", __builtin_return_address(0));
  if (call.must_fail() || !is_event(call, event))
    return failed(cudaErrorInvalidResourceHandle);
  if (call.is_dropped() || !event->recording)
    return call.result();
  const auto& recording = call.machine().streams().recording(*event->recording);
  call.wait_until([&recording] { return recording.is_done; });
  call.see(recording.clock);
  return call.result();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  Call call("cudaEventElapsedTime");
  if (call.must_fail() || !is_event(call, from) || !is_event(call, to) || !from->tells_time || !to->tells_time)
    return failed(cudaErrorInvalidResourceHandle);
  if (!from->recording || !to->recording)
    return failed(cudaErrorInvalidResourceHandle);
  const auto& begin = call.machine().streams().recording(*from->recording);
  const auto& end = call.machine().streams().recording(*to->recording);
  if (!begin.is_done || !end.is_done)
    return failed(cudaErrorNotReady);
  *milliseconds = static_cast<float>((end.seconds - begin.seconds) * 1e3);
  return cudaSuccess;
}
