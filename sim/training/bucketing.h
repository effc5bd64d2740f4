#pragma once

// Which gradients are reduced together: PyTorch's rule, exactly.
//
// Problem:   the layout of buckets decides how much communication backward can hide.
// Idea:      walk the tensors in the order their gradients become ready, append each to the open bucket, and
//            close it once its bytes have reached the limit: buckets overshoot, they are never cut short.
//            The first bucket has a limit of its own. Tensors of different types never share a bucket.
// Invariant: every tensor is in exactly one bucket.
// Reference: torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size; recorded layouts of
//            PyTorch 1.13 in validate/measurements/gloo are tests.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

// A tensor to be reduced; `type` is any number that tells element types apart.
struct BucketTensor {
  Bytes bytes;
  std::uint32_t type = 0;
};

struct BucketLimits {
  Bytes first;
  Bytes cap;
};

using Bucket = std::vector<std::uint32_t>;  // indices of tensors

// `order` lists tensor indices as their gradients become ready. Buckets come in launch order.
std::vector<Bucket> assign_buckets(std::span<const BucketTensor> tensors,
                                   std::span<const std::uint32_t> order, const BucketLimits& limits);

// The layout before any gradient was seen: PyTorch fills buckets in registration order and launches them
// backwards. It stays when find_unused_parameters forbids rebuilding.
std::vector<Bucket> assign_initial_buckets(std::span<const BucketTensor> tensors, const BucketLimits& limits);

// `bucket_cap_mb` as PyTorch reads it: MiB, fractions allowed, rounded down to bytes.
Bytes mebibytes(double mib);

}  // namespace lockstep
