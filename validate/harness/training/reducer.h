#pragma once

// The gradients' all-reduce, bucket by bucket, while backward still runs: PyTorch DDP's Reducer.
//
// Problem:   what the simulator predicts is this piece's schedule; it has to be PyTorch's, not one like it.
// Idea:      the layout is the simulator's own code (sim/training/bucketing.h). A gradient that is complete
//            is divided by the number of ranks into its place of a bucket; a full bucket is reduced once all
//            buckets before it are on their way; `finish` waits for each in order and copies it back.
//            Iteration 1 has one bucket of everything; the order in which its gradients became ready makes
//            the layout of all later ones.
// Invariant: all ranks launch the same buckets in the same order. Buckets are parts of one memory: rebuilding
//            and stepping allocate nothing on the device.
// Reference: torch/csrc/distributed/c10d/reducer.cpp; default_hooks.py of ddp_comm_hooks for bf16.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/training/bucketing.h"
#include "validate/harness/communication/communicator.h"
#include "validate/harness/layers/module.h"

namespace lockstep::harness {

// Room for every gradient in any layout; reducers that take turns may share one.
class BucketMemory {
 public:
  BucketMemory(Device& device, const Parameters& parameters, bool is_compressed);

  Tensor values() const { return values_.tensor(); }
  Tensor compressed() const { return compressed_.tensor(); }  // bf16; empty where nothing is compressed

 private:
  Buffer values_;
  Buffer compressed_;
};

struct ReducerOptions {
  double bucket_cap_mb = 25;
  double first_bucket_mb = 1;
  bool overlaps = true;     // else every bucket is launched after backward
  bool compresses = false;  // buckets travel as bf16
};

// What happened to a bucket in the last iteration.
struct BucketRecord {
  Mark ready;     // its last gradient is in place
  Mark finished;  // it has been waited for
  Ticket ticket;
};

class Reducer : public StepObserver {
 public:
  Reducer(Device& device, Communicator& communicator, const Parameters& parameters, BucketMemory& memory,
          const ReducerOptions& options);

  // Before the backward whose gradients are reduced. Gradients that become ready without it stay where they
  // are: micro-batches under no_sync.
  void begin();
  void gradient_ready(std::uint32_t parameter) override;
  // After that backward: when the device comes to what is asked of it next, gradients are averages over
  // ranks.
  void finish();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::int64_t bytes_of_bucket(std::size_t bucket) const { return places_[bucket].values.bytes(); }
  const std::vector<BucketRecord>& last_records() const { return records_; }

 private:
  struct Place {
    Tensor values;
    Tensor travelling;  // what is reduced: `values`, or its half
    std::size_t missing = 0;
  };

  void lay_out(const std::vector<Bucket>& buckets);
  void rebuild_once();
  void launch_complete_buckets();
  void launch(std::size_t bucket);
  void copy_back(std::size_t bucket);

  Device& device_;
  Communicator& communicator_;
  const Parameters& parameters_;
  BucketMemory& memory_;
  ReducerOptions options_;

  std::vector<BucketTensor> tensors_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;               // of buckets
  std::vector<std::uint32_t> bucket_of_;    // by parameter
  std::vector<Tensor> place_of_;            // by parameter
  std::vector<BucketRecord> records_;       // of buckets
  std::vector<std::uint32_t> ready_order_;  // of the first iteration
  bool is_rebuilt_ = false;
  bool is_reducing_ = false;
  std::size_t launched_ = 0;
};

}  // namespace lockstep::harness
