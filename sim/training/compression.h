#pragma once

// Gradients made smaller by more than a cast: PowerSGD's two thin factors, or the largest values alone.
//
// Problem:   what travels is no longer the bucket, and making it takes kernels before, between and after the
//            messages.
// Idea:      a hook takes a full bucket and hands back when each rank holds its average. PowerSGD: a matrix M
//            of m x k (first dimension by the rest) becomes P = M Q of m x r, which is summed and
//            orthogonalised, then Q = M^T P of k x r, which is summed; the average is P Q^T. Vectors, and
//            matrices that would not shrink to half, travel whole in one message before. Top-k: the values
//            and indices of the largest elements are gathered from all ranks and added up. Both add to the
//            next bucket what was left out of this one (error feedback).
// Invariant: messages of a rank: r (m + k) a matrix, in two all-reduces; n k values and as many indices of
//            4 bytes in two all-gathers. Until a bucket is handed to its hook nothing differs from DDP.
// Cost:      PowerSGD multiplies three times 2 m k r, orthogonalises in 2 m r^2 a matrix, and walks a bucket
//            eight times for the error feedback: read both and add, copy, read both and subtract. Top-k walks
//            it six times: the same addition, then magnitude, threshold and compaction; and writes every
//            rank's values into an emptied bucket. What follows a message runs on streams beside backward.
// Reference: Vogels et al., "PowerSGD", arXiv 1905.13727, and
//            torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py (min_compression_rate 2, one launch
//            a matrix, Gram-Schmidt column by column); Lin et al., "Deep Gradient Compression",
//            arXiv 1712.01887. That three walks select the largest is ours.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/training/step_writer.h"

namespace lockstep {

// What PowerSGD makes of some gradients.
struct LowRank {
  Bytes whole;     // of what travels as it is
  Bytes p, q;      // of the factors
  Bytes matrices;  // of the matrices they stand for
  std::uint32_t whole_tensors = 0;
  std::uint32_t matrix_tensors = 0;
  std::int64_t multiplication = 0;  // FLOPs of M Q, of M^T P and of P Q^T
  std::int64_t orthogonalisation = 0;
  std::int64_t columns = 0;  // of all P
};
LowRank low_rank(const Job& job, std::span<const std::uint32_t> gradients);

// At least one.
std::int64_t largest_count(std::int64_t elements, Ratio kept);

// A full bucket: the gradients in it and their bytes.
struct FullBucket {
  const std::string& name;
  std::span<const std::uint32_t> gradients;
  Bytes bytes;
};
// Both follow `ready` on the compute lanes and return when each representative holds the average.
std::vector<OpId> write_low_rank(const StrategyContext& context, const FullBucket& bucket,
                                 std::vector<OpId> ready);
std::vector<OpId> write_largest(const StrategyContext& context, const FullBucket& bucket,
                                std::vector<OpId> ready);

// What compression keeps from step to step: the errors, and PowerSGD's factors.
Bytes compression_state(const Job& job);

}  // namespace lockstep
