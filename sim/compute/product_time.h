#pragma once

// How long a matrix product takes on a GPU.
//
// Problem:   the same FLOPs take five times as long in one shape as in another: tiles that stick out over the
//            edge, SMs without a tile, operands that arrive too late, weights that are read for a few rows.
// Idea:      a library cuts the output into tiles, one to an SM at a time, and where there are too few it cuts
//            the depth as well. A tile takes the longer of multiplying and of loading its two strips from the
//            shared cache, plus what it takes to begin and to end; tiles come in waves. Beside that the
//            operands cross memory once, and no SM has its first strips before it has drawn them itself. Of all
//            tiles and cuts the library would know, the quickest is taken, as its heuristics aim to.
// Invariant: integers; rounded up. More rows, columns or depth never take less.
// Cost:      some 20 ns a candidate, about 20 candidates, 150 where the output is small.
// Reference: NVIDIA, "Matrix Multiplication Background User's Guide" (tiles, waves, split-k); Osama et al.
//            2301.03598 (the depth as work to share).

#include <cstdint>
#include <limits>

#include "sim/base/units.h"
#include "sim/compute/kernel_constants.h"
#include "sim/plan/kernel.h"

namespace lockstep {

// The unit that multiplies, and the memory it is fed from.
struct ProductUnit {
  FlopRate peak;
  std::int64_t sms = 1;
  Bandwidth memory;
  std::int64_t element_bytes = 2;
  bool has_tensor_cores = true;
  const ProductConstants& constants;
  FlopRate lanes{std::numeric_limits<std::int64_t>::max()};  // the vector lanes beside it
  AlignmentConstants alignment = {};                         // all zeros: nothing is lost
  Bytes cache;  // that still holds what attention's call before left there; none in a training step

  // At so much of their peaks.
  FlopRate of_sm(Ratio efficiency) const;
  FlopRate lanes_of_sm(Ratio efficiency) const;
  Bandwidth memory_at(Ratio efficiency) const;
};

Duration product_time(const ProductUnit& unit, const GemmShape& shape);

// A product whose operands are read as they are, `elements` in all: a convolution's patches are no matrix in
// memory. Where the depth is shared the partial sums come on top.
Duration product_time(const ProductUnit& unit, const GemmShape& shape, std::int64_t elements);

}  // namespace lockstep
