#pragma once

// What a product loses where its matrices' rows begin between the places that vector loads begin at.
//
// Problem:   tensor cores are fed by loads of 16 bytes; a vocabulary of 50,257 words or heads 150 wide let rows begin at
//            multiples of 2 or 4 only, and libraries take kernels that load as little at a time: half the rate, or less.
// Idea:      rows are as long as the depth, where an operand lies along it, or as the output is wide; the greatest power
//            of two in their bytes bounds what an SM is fed in a clock, whatever its tensor cores could do. The worse of
//            the two counts. Lanes stand for the clock; loads of as many bytes bring fewer of wider operands.
// Invariant: the number of rows changes nothing. By weights the depth is the batch's rows, along which nothing lies.
// Reference: NVIDIA, "Matrix Multiplication Background User's Guide" (Tensor Core requirements); measured: sources of
//            hw_profiles/compute/ampere.json.

#include "sim/base/units.h"
#include "sim/compute/product_time.h"
#include "sim/plan/kernel.h"

namespace lockstep {

// Of the unit's efficiency, what is left; `shape` as it is forward.
Ratio aligned_part(const ProductUnit& unit, const GemmShape& shape, KernelDirection direction);

}  // namespace lockstep
