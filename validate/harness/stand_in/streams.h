#pragma once

// Streams and events of all GPUs: what is queued, what may run, and what running it means.
//
// Problem:   CUDA promises order within a stream and across events, and nothing else.
// Idea:      a stream is a queue of items: an operation, the recording of an event, the wait for one, or this
//            rank's part of a collective. Whoever schedules (random_order.h, virtual_clock.h) asks which
//            streams could go on, and lets one finish its first item.
// Invariant: an event stands for its last recording at the time of a call. The legacy stream of a GPU waits
//            for the blocking streams and they for it.
// Reference: CUDA C++ Programming Guide, "Asynchronous Concurrent Execution".

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/stand_in/collectives.h"
#include "validate/harness/stand_in/device_memory.h"
#include "validate/harness/stand_in/operation.h"
#include "validate/harness/stand_in/vector_clock.h"

namespace lockstep::harness::stand_in {

struct Item {
  enum class Kind { operation, record, wait, collective } kind = Kind::operation;
  VectorClock issued = {};  // what its host thread had seen
  double not_before = 0;    // on the virtual clock
  Operation operation = {};
  std::vector<Place> reads = {};
  std::vector<Place> writes = {};
  bool is_copy = false;
  std::uint32_t recording = 0;
  CollectiveCall collective = {};
};

// One recording of an event.
struct Recording {
  bool is_done = false;
  VectorClock clock = {};
  double seconds = 0;
};

}  // namespace lockstep::harness::stand_in

struct CUstream_st {
  int gpu = 0;
  bool is_blocking = false;
  bool is_live = true;
  std::uint32_t line = 0;
  lockstep::harness::stand_in::VectorClock clock = {};
  std::deque<lockstep::harness::stand_in::Item> items = {};
  // Of the first item, on the virtual clock.
  bool is_running = false;
  double remaining = 0;
};

struct CUevent_st {
  bool tells_time = true;
  bool is_live = true;
  std::optional<std::uint32_t> recording = {};
};

namespace lockstep::harness::stand_in {

class Streams {
 public:
  // `report` is told what is wrong; `new_line` is a line of time of its own.
  struct Hooks {
    std::function<void(const std::string&)> report;
    std::function<std::uint32_t()> new_line;
  };
  Streams(int gpus, bool computes, DeviceMemory& memory, Collectives& collectives, Hooks hooks);

  cudaStream_t make_stream(int gpu, bool is_blocking);
  cudaEvent_t make_event(bool tells_time);
  cudaStream_t legacy_stream(int gpu) const { return legacy_[static_cast<std::size_t>(gpu)]; }
  // One that nothing else uses, for mutants.
  cudaStream_t spare_stream(int gpu);

  // To the end of the stream; on the legacy stream with its order towards the others.
  void push(cudaStream_t stream, Item item);

  std::uint32_t new_recording();
  const Recording& recording(std::uint32_t index) const { return recordings_[index]; }
  const std::vector<std::unique_ptr<CUstream_st>>& all() const { return streams_; }
  bool is_idle(int gpu) const;
  // Its first item could be done now.
  bool can_go_on(const CUstream_st& stream) const;
  // Does it: `seconds` is when it ends.
  void finish_first(CUstream_st& stream, double seconds);
  VectorClock clock_of(int gpu) const;

 private:
  void order(CUstream_st& first, CUstream_st& then, const VectorClock& issued);
  void run(CUstream_st& stream, const Item& item);
  void run_collective(const CollectiveCall& call);
  bool check(CUstream_st& stream, const char* name, const std::vector<Place>& reads,
             const std::vector<Place>& writes);
  bool check_place(const CUstream_st& stream, const Place& place, const Access& access);

  bool computes_;
  DeviceMemory& memory_;
  Collectives& collectives_;
  Hooks hooks_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;
  std::vector<cudaStream_t> legacy_;   // by GPU
  std::map<int, cudaStream_t> spare_;  // likewise, once one was asked for
  std::vector<std::unique_ptr<CUevent_st>> events_;
  std::deque<Recording> recordings_;
};

}  // namespace lockstep::harness::stand_in
