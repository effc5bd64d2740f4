#include "validate/harness/stand_in/machine.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "validate/harness/communication/rendezvous.h"
#include "validate/harness/stand_in/operation.h"

namespace lockstep::harness::stand_in::harness_stand_in_machine_test {

constexpr int seeds = 40;

struct Stream {
  cudaStream_t stream = nullptr;
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { cudaStreamCreateWithFlags(&stream, flags); }
  ~Stream() { cudaStreamDestroy(stream); }
};

struct Event {
  cudaEvent_t event = nullptr;
  Event() { cudaEventCreate(&event); }
  ~Event() { cudaEventDestroy(event); }
};

struct GpuMemory {
  float* data = nullptr;
  explicit GpuMemory(std::size_t count) {
    void* memory = nullptr;
    cudaMalloc(&memory, count * sizeof(float));
    data = static_cast<float*>(memory);
  }
  ~GpuMemory() { cudaFree(data); }
};

void write(cudaStream_t stream, float* to, float value) {
  enqueue(stream, {.name = "a write", .writes = {{to, 4}}, .run = [=] { *to = value; }});
}

void copy(cudaStream_t stream, float* to, const float* from) {
  enqueue(stream, {.name = "a read", .reads = {{from, 4}}, .writes = {{to, 4}}, .run = [=] { *to = *from; }});
}

// What is found when one rank does this, in orders of many seeds: every finding, and "" for a run without.
std::set<std::string> findings_of(const std::function<void()>& program) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Machine machine({.seed = seed});
    machine.run([&](int) { program(); });
    found.insert(machine.findings().empty() ? "" : machine.findings().front());
  }
  return found;
}

TEST_CASE("a stream runs in its order, two streams in every order of each other") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::string order;
    Machine machine({.seed = seed});
    machine.run([&](int) {
      const Stream one;
      const Stream other;
      for (const char letter : {'a', 'b'})
        enqueue(one.stream, {.name = "one", .run = [&order, letter] { order += letter; }});
      enqueue(other.stream, {.name = "other", .run = [&order] { order += 'x'; }});
      cudaDeviceSynchronize();
    });
    CHECK(order.find('a') < order.find('b'));
    orders.insert(order);
  }
  CHECK(orders == std::set<std::string>{"abx", "axb", "xab"});
}

TEST_CASE("work is done at once under one seed and when it is waited for under another") {
  std::set<bool> was_done;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Machine machine({.seed = seed});
    machine.run([&](int) {
      bool is_done = false;
      const Stream stream;
      enqueue(stream.stream, {.name = "work", .run = [&] { is_done = true; }});
      int version = 0;
      cudaRuntimeGetVersion(&version);  // any call lets the GPU go on
      was_done.insert(is_done);
      cudaStreamSynchronize(stream.stream);
      CHECK(is_done);
    });
  }
  CHECK(was_done == std::set<bool>{false, true});
}

TEST_CASE("what no event orders is a race in every order, and none where an event orders it") {
  const auto program = [](bool records, bool waits) {
    return [=] {
      const GpuMemory from(1);
      const GpuMemory to(1);
      const Stream writer;
      const Stream reader;
      const Event written;
      write(writer.stream, from.data, 1);
      cudaStreamSynchronize(writer.stream);
      write(writer.stream, from.data, 2);
      if (records)
        cudaEventRecord(written.event, writer.stream);
      if (waits)
        cudaStreamWaitEvent(reader.stream, written.event);
      copy(reader.stream, to.data, from.data);
      cudaDeviceSynchronize();
    };
  };
  CHECK(findings_of(program(true, true)) == std::set<std::string>{""});
  for (const auto& [records, waits] : {std::pair(true, false), std::pair(false, true)}) {
    const std::set<std::string> found = findings_of(program(records, waits));
    CHECK_FALSE(found.contains(""));
    for (const std::string& finding : found) CHECK(finding.find("nothing orders the two") != finding.npos);
  }
}

TEST_CASE("a host that waited orders what it asks for next") {
  const auto program = [](bool waits) {
    return [=] {
      const GpuMemory memory(1);
      const Stream one;
      const Stream other;
      write(one.stream, memory.data, 1);
      if (waits)
        cudaStreamSynchronize(one.stream);
      write(other.stream, memory.data, 2);
      cudaDeviceSynchronize();
    };
  };
  CHECK(findings_of(program(true)) == std::set<std::string>{""});
  CHECK_FALSE(findings_of(program(false)).contains(""));
}

TEST_CASE("page-locked memory that is written again before its copy has run is a race") {
  const auto program = [](bool waits) {
    return [=] {
      const GpuMemory memory(2);
      void* locked = nullptr;
      cudaMallocHost(&locked, 4);
      const Stream stream;
      const Event copied;
      for (int half = 0; half < 2; ++half) {
        if (waits)
          cudaEventSynchronize(copied.event);
        std::memcpy(locked, &half, 4);
        cudaMemcpyAsync(memory.data + half, locked, 4, cudaMemcpyHostToDevice, stream.stream);
        cudaEventRecord(copied.event, stream.stream);
      }
      cudaDeviceSynchronize();
      cudaFreeHost(locked);
    };
  };
  CHECK(findings_of(program(true)) == std::set<std::string>{""});
  CHECK_FALSE(findings_of(program(false)).contains(""));
}

TEST_CASE("the legacy stream waits for blocking streams and they for it, and for no others") {
  const auto program = [](unsigned flags) {
    return [=] {
      const GpuMemory memory(1);
      const Stream stream(flags);
      write(stream.stream, memory.data, 1);
      write(nullptr, memory.data, 2);
      write(stream.stream, memory.data, 3);
      cudaDeviceSynchronize();
    };
  };
  CHECK(findings_of(program(cudaStreamDefault)) == std::set<std::string>{""});
  CHECK_FALSE(findings_of(program(cudaStreamNonBlocking)).contains(""));
}

TEST_CASE("freeing waits for the GPU, and what comes later than that is found") {
  CHECK(findings_of([] {
          const Stream stream;
          const GpuMemory memory(1);
          write(stream.stream, memory.data, 1);
        }) == std::set<std::string>{""});
  CHECK_FALSE(findings_of([] {
                const Stream stream;
                float* data = nullptr;
                {
                  const GpuMemory memory(1);
                  data = memory.data;
                }
                write(stream.stream, data, 1);
                cudaStreamSynchronize(stream.stream);
              }).contains(""));
}

TEST_CASE("what lies beyond an allocation and what nothing has written is found") {
  CHECK_FALSE(findings_of([] {
                const Stream stream;
                const GpuMemory memory(1);
                write(stream.stream, memory.data + 1, 1);
                cudaStreamSynchronize(stream.stream);
              }).contains(""));
  CHECK(findings_of([] {
          const Stream stream;
          const GpuMemory from(1);
          const GpuMemory to(1);
          copy(stream.stream, to.data, from.data);
          cudaStreamSynchronize(stream.stream);
        }) == std::set<std::string>{"a read reads what nothing has written"});
}

TEST_CASE("what was not ended is a leak, by kind") {
  Machine machine({});
  machine.run([](int) {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    void* memory = nullptr;
    cudaMalloc(&memory, 8);
    const Event ended;
  });
  CHECK(machine.leaks() == std::map<std::string, std::int64_t>{{"memory", 1}, {"stream", 1}});
}

TEST_CASE("memory that is used up is told as CUDA does, and again by the next question for an error") {
  Machine machine({.bytes_of_gpu = 8});
  machine.run([](int) {
    const GpuMemory first(1);
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 8) == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    CHECK(free == 8 - sizeof(float));
    CHECK(total == 8);
  });
}

// Each rank has a communicator, a stream and memory that holds its rank + 1.
struct NcclRank {
  Rendezvous rendezvous;
  ncclComm_t communicator = nullptr;
  Stream stream;
  GpuMemory values{4};

  NcclRank(int rank, int ranks) : rendezvous({.world = {.rank = rank, .size = ranks}}) {
    ncclUniqueId id{};
    if (rank == 0)
      ncclGetUniqueId(&id);
    const std::string text = rendezvous.exchange("id", id.internal).front();
    std::memcpy(id.internal, text.c_str(), text.size() + 1);
    ncclConfig_t configuration = NCCL_CONFIG_INITIALIZER;
    ncclCommInitRankConfig(&communicator, ranks, id, rank, &configuration);
    for (int index = 0; index < 4; ++index)
      write(stream.stream, values.data + index, static_cast<float>(rank + 1));
  }
  ~NcclRank() { ncclCommDestroy(communicator); }
};

TEST_CASE("an all-reduce sums over ranks and a broadcast spreads its root's values") {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Machine machine({.ranks = 3, .gpus = 3, .seed = seed});
    machine.run([&](int rank) {
      cudaSetDevice(rank);
      NcclRank own(rank, 3);
      ncclAllReduce(own.values.data, own.values.data, 2, ncclFloat32, ncclSum, own.communicator,
                    own.stream.stream);
      ncclBroadcast(own.values.data + 2, own.values.data + 2, 2, ncclFloat32, 1, own.communicator,
                    own.stream.stream);
      cudaStreamSynchronize(own.stream.stream);
      CHECK(own.values.data[1] == 1 + 2 + 3);
      CHECK(own.values.data[3] == 2);
    });
    CHECK(machine.findings().empty());
    CHECK(machine.leaks().empty());
  }
}

// What is found where rank 1 does not do what rank 0 does.
std::string finding_of_ranks(const std::function<void(NcclRank&, int rank)>& program) {
  Machine machine({.ranks = 2, .gpus = 2});
  machine.run([&](int rank) {
    cudaSetDevice(rank);
    NcclRank own(rank, 2);
    program(own, rank);
    cudaStreamSynchronize(own.stream.stream);
  });
  return machine.findings().empty() ? "" : machine.findings().front();
}

TEST_CASE("collectives that differ between ranks, in size or order, are found") {
  const auto finding = finding_of_ranks([](NcclRank& own, int rank) {
    ncclAllReduce(own.values.data, own.values.data, rank == 0 ? 2 : 3, ncclFloat32, ncclSum, own.communicator,
                  own.stream.stream);
  });
  CHECK(finding.find("would wait for ever") != finding.npos);
}

TEST_CASE("a rank that does not come to a collective is a hang that names who waits") {
  const auto finding = finding_of_ranks([](NcclRank& own, int rank) {
    if (rank == 0)
      ncclAllReduce(own.values.data, own.values.data, 2, ncclFloat32, ncclSum, own.communicator,
                    own.stream.stream);
  });
  CHECK(finding.find("nothing can go on") != finding.npos);
  CHECK(finding.find("rank 0 in cudaStreamSynchronize") != finding.npos);
}

TEST_CASE("a collective on a stream that has not waited for its values is a race") {
  const auto finding = finding_of_ranks([](NcclRank& own, int) {
    const Stream beside;
    ncclAllReduce(own.values.data, own.values.data, 4, ncclFloat32, ncclSum, own.communicator, beside.stream);
    cudaStreamSynchronize(beside.stream);
  });
  CHECK_FALSE(finding.empty());
}

TEST_CASE("an equal seed makes an equal run") {
  const auto order_of = [](std::uint64_t seed) {
    std::string order;
    Machine machine({.ranks = 2, .gpus = 2, .seed = seed});
    machine.run([&](int rank) {
      cudaSetDevice(rank);
      const Stream one;
      const Stream other;
      for (int index = 0; index < 5; ++index) {
        enqueue(one.stream, {.name = "one", .run = [&order, rank] { order += rank == 0 ? 'a' : 'A'; }});
        enqueue(other.stream, {.name = "other", .run = [&order, rank] { order += rank == 0 ? 'b' : 'B'; }});
      }
      cudaDeviceSynchronize();
    });
    return order;
  };
  CHECK(order_of(7) == order_of(7));
  CHECK(order_of(7) != order_of(8));
}

}  // namespace lockstep::harness::stand_in::harness_stand_in_machine_test
