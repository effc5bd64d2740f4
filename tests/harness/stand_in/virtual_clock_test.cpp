#include "validate/harness/stand_in/virtual_clock.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <functional>

#include "validate/harness/stand_in/machine.h"
#include "validate/harness/stand_in/operation.h"

namespace lockstep::harness::stand_in::virtual_clock_test {

constexpr double microsecond = 1e-6;
constexpr double relative = 1e-6;  // of what cudaEventElapsedTime has of digits

// A kernel of so many microseconds lasts as long as its bytes take.
ClockRates rates() {
  return {.least_kernel = 0, .memory_bytes = 1e12};
}

struct Stream {
  cudaStream_t stream = nullptr;
  Stream() { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
  ~Stream() { cudaStreamDestroy(stream); }

  void run(double microseconds) const {
    enqueue(
        stream,
        {.name = "a kernel", .run = [] {}, .work = {.bytes = static_cast<std::int64_t>(microseconds * 1e6)}});
  }
};

struct Event {
  cudaEvent_t event = nullptr;
  explicit Event(const Stream& stream) {
    cudaEventCreate(&event);
    cudaEventRecord(event, stream.stream);
  }
  ~Event() { cudaEventDestroy(event); }
};

double microseconds_between(const Event& from, const Event& to) {
  cudaEventSynchronize(from.event);
  cudaEventSynchronize(to.event);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, from.event, to.event) == cudaSuccess);
  return static_cast<double>(milliseconds) * 1e3;
}

void run_with(const ClockRates& clock, const std::function<void()>& program) {
  Machine machine({.clock = clock, .computes = false});
  for (const RankEnd& end : machine.run([&](int) { program(); })) CHECK(end.exit_code == 0);
  CHECK(machine.findings().empty());
}

TEST_CASE("kernels in a row last as long as they are, but for the launch of the first") {
  ClockRates clock = rates();
  clock.launch = 2 * microsecond;
  run_with(clock, [] {
    const Stream stream;
    const Event begin(stream);
    for (int kernel = 0; kernel < 10; ++kernel) stream.run(10);
    const Event end(stream);
    CHECK(microseconds_between(begin, end) == doctest::Approx(2 + 10 * 10).epsilon(relative));
  });
}

TEST_CASE("kernels that are shorter than their launch follow the host") {
  ClockRates clock = rates();
  clock.launch = 20 * microsecond;
  run_with(clock, [] {
    const Stream stream;
    const Event begin(stream);
    for (int kernel = 0; kernel < 10; ++kernel) stream.run(10);
    const Event end(stream);
    CHECK(microseconds_between(begin, end) == doctest::Approx(10 * 20 + 10).epsilon(relative));
  });
}

TEST_CASE("a host waits while a queue is full") {
  ClockRates clock = rates();
  clock.launch = 1 * microsecond;
  clock.queue = 4;
  run_with(clock, [] {
    const Stream stream;
    const Stream idle;
    const Event begin(idle);
    for (int kernel = 0; kernel < 10; ++kernel) stream.run(10);
    // The tenth had room when the sixth had ended; the first began when it was launched.
    const Event launched(idle);
    CHECK(microseconds_between(begin, launched) == doctest::Approx(1 + 6 * 10).epsilon(relative));
  });
}

TEST_CASE("what runs beside a copy is slower for as long as the copy lasts") {
  ClockRates clock = rates();
  clock.compute_beside_copy = 2;
  run_with(clock, [] {
    const Stream computing;
    const Stream copying;
    void* memory = nullptr;
    cudaMalloc(&memory, 50'000'000);
    cudaMemsetAsync(memory, 0, 50'000'000, copying.stream);
    cudaStreamSynchronize(copying.stream);
    const Event begin(computing);
    computing.run(100);
    // Read and written: 50 us, in which 25 of the 100 are done.
    cudaMemcpyAsync(memory, static_cast<char*>(memory) + 25'000'000, 25'000'000, cudaMemcpyDeviceToDevice,
                    copying.stream);
    const Event end(computing);
    CHECK(microseconds_between(begin, end) == doctest::Approx(50 + 75).epsilon(relative));
    cudaFree(memory);
  });
}

TEST_CASE("an event waits for what it is recorded behind, on its own stream and on those that wait") {
  run_with(rates(), [] {
    const Stream one;
    const Stream other;
    const Event begin(other);
    one.run(30);
    const Event done(one);
    cudaStreamWaitEvent(other.stream, done.event);
    other.run(10);
    const Event end(other);
    CHECK(microseconds_between(begin, end) == doctest::Approx(30 + 10).epsilon(relative));
  });
}

}  // namespace lockstep::harness::stand_in::virtual_clock_test
