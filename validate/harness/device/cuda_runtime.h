#pragma once

// A GPU's memory, its order of work and its moments in time.
//
// Problem:   the device, its matrix products, its convolutions and NCCL share one GPU, one stream and one
//            clock.
// Idea:      a stream of its own for computing, events as marks, a second stream for copies beside the work.
//            Uploads go through two halves of page-locked memory in turn, so that only a third one waits.
// Invariant: the GPU stays the current one of the thread that made this. Events are kept and used again.
// Errors:    EnvironmentError where there is no GPU, or its memory is used up.

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/device/cuda_scratch.h"
#include "validate/harness/device/device.h"

namespace lockstep::harness {

// Of the GPUs this process can see; throws EnvironmentError where it sees none.
int count_cuda_devices();

void* allocate_on_gpu(std::int64_t bytes);

class CudaStream {
 public:
  CudaStream();  // beside the legacy stream, not after it
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream();
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// For order alone: it tells no time.
class CudaEvent {
 public:
  CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent();
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Events in the order they were recorded, used again after `forget`.
class CudaEvents {
 public:
  CudaEvents() = default;
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents();

  std::uint32_t record(cudaStream_t stream);
  cudaEvent_t at(std::uint32_t index) const;
  bool has_passed(std::uint32_t index) const;
  // So many more can be recorded without one being made.
  void reserve(std::int64_t count);
  void forget() { used_ = 0; }

 private:
  void add();

  std::vector<cudaEvent_t> events_;
  std::uint32_t used_ = 0;
};

// Waits for both.
double seconds_between_events(cudaEvent_t from, cudaEvent_t to);

class CudaRuntime {
 public:
  explicit CudaRuntime(int device);
  CudaRuntime(const CudaRuntime&) = delete;
  CudaRuntime& operator=(const CudaRuntime&) = delete;
  ~CudaRuntime();

  int device() const { return device_; }
  cudaStream_t stream() const { return stream_.get(); }
  cudaStream_t stream_beside() const { return beside_.get(); }
  CudaScratch& scratch() { return scratch_; }
  CudaEvents& marks() { return marks_; }

  std::string name() const;
  std::string versions() const;  // of CUDA and the driver
  std::string uuid() const;      // of this GPU alone, wherever it is
  std::string pci_bus_id() const;

  void upload(Tensor to, const void* host);
  void download(void* host, Tensor from);
  void fill_zero(Tensor to);
  void copy(Tensor to, Tensor from);
  void copy_beside(Tensor to, Tensor from);
  void synchronize();

 private:
  struct Staging {
    Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    ~Staging();

    CudaEvent is_free;
    void* memory = nullptr;
  };

  int device_;
  CudaStream stream_;
  CudaStream beside_;
  CudaScratch scratch_;
  CudaEvents marks_;
  std::array<Staging, 2> staging_;
  std::size_t next_staging_ = 0;
};

}  // namespace lockstep::harness
