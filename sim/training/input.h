#pragma once

// How batches reach the GPU: loader workers, the storage they read from, and the copy to the device.
//
// Problem:   a GPU that waits for images computes nothing, and which of storage, decoding and copying holds
//            it up depends on rates that overlap.
// Idea:      PyTorch's DataLoader as lanes beside the compute lane. Batch j belongs to worker j mod workers,
//            which reads it (at a rank's share of its node's storage, one batch at a time) and prepares it.
//            It may begin once the training loop has taken the batch prefetch_factor x workers before. The
//            copy runs on a stream of its own, one batch ahead, or on the compute stream. Without workers the
//            training loop does all of it itself.
// Invariant: a micro-batch computes nothing before its batch is there. In the steady state an iteration of
//            one micro-batch takes the longest of computing, (reading + preparing) / workers, reading and
//            copying.
// Cost:      six ops a rank and micro-batch.
// Reference: torch/utils/data/dataloader.py (_MultiProcessingDataLoaderIter: _try_put_index, _next_data).

#include <cstdint>
#include <vector>

#include "sim/plan/plan_writer.h"
#include "sim/training/job.h"

namespace lockstep {

// Numbers of a rank's lanes beside those that a strategy has: of copies, and of host work (what it reads from, and its
// workers from the first on).
inline constexpr std::uint32_t batch_copy_lane = 0x10000;
inline constexpr std::uint32_t storage_lane = 0x10000;
inline constexpr std::uint32_t first_worker_lane = storage_lane + 1;

class InputPipeline {
 public:
  // A run begins with all workers at once; later their batches come spread evenly over what one takes.
  enum class Beginning : std::uint8_t { of_a_run, steady };

  // `compute`: the compute lanes, by representative.
  InputPipeline(PlanWriter& writer, std::span<const LaneId> compute, const InputWork& work,
                Beginning beginning);

  // Holds every compute lane until its rank's next batch is on the device.
  void write_batch();

  // The first op of each micro-batch so far: which batch an op works on is told by where it stands.
  const std::vector<OpId>& begins() const { return begins_; }

 private:
  // One rank's.
  struct Loader {
    std::vector<LaneId> workers;
    LaneId storage{};
    LaneId copy{};
    std::vector<OpId> taken = {};  // by batch: when the training loop had it
    OpId waited = no_op;           // the compute lane's last wait
  };

  OpId write_loading(Loader& loader);
  void write_beside(LaneId compute, Loader& loader);
  void write_on_compute_lane(LaneId compute);

  PlanWriter& writer_;
  std::vector<LaneId> compute_;
  InputWork work_;
  Beginning beginning_;
  std::vector<Loader> loaders_;  // by representative
  std::vector<OpId> begins_;
};

}  // namespace lockstep
