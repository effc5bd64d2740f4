#pragma once

// What kernels reach on a GPU of one architecture, beside its data sheet.
//
// Problem:   a data sheet says what a GPU could do at most; two GPUs of one architecture differ in SMs, clocks
//            and memory, and run the same kernels.
// Idea:      constants of what an SM does with a tile and of how memory is reached, fitted to timed kernels of
//            the architecture; the data sheet's figures scale them to a GPU.
// Invariant: ratios are parts per million; nothing belongs to a model, a shape or a row.
// Reference: compute/product_time.h and clock.h say what each is for.

#include <cstdint>
#include <string>

#include "sim/base/units.h"

namespace lockstep {

struct Milliwatts {
  std::int64_t count = 0;
  auto operator<=>(const Milliwatts&) const = default;
};

// Products on one kind of unit: tensor cores, or the vector lanes.
struct ProductConstants {
  std::int64_t efficiency_ppm = 800'000;         // of the peak, inside a tile
  Bandwidth operands{60'000'000'000};            // into one SM, from the cache all SMs share
  std::int64_t operand_loss_ppm = 0;             // of the shorter of computing and loading, not hidden
  Duration tile = Duration::nanoseconds(1'000);  // to begin and to end one
  std::int64_t whole_waves_ppm = 500'000;  // of a wave that is begun and not full: 0 costs its part alone
  std::int64_t memory_efficiency_ppm = 850'000;
  Bandwidth memory_of_sm{50'000'000'000};         // the most that one SM draws
  std::int64_t overlap_loss_ppm = 150'000;        // of the shorter of memory and tiles, not hidden
  std::int64_t split_traffic_ppm = 500'000;       // of the partial sums, that reaches memory
  Duration split = Duration::nanoseconds(1'000);  // to add partial sums up
  Duration start = Duration::microseconds(2);
  std::int64_t across_ppm = million;  // of that efficiency, where an operand lies across the depth
  // The same where tensor cores multiply operands of four bytes, which nothing turns on their way to them (PTX ISA:
  // ldmatrix .trans and transposed wgmma operands are for elements of two bytes).
  std::int64_t across_wide_ppm = million;
  Milliwatts draw;  // of the board, for each TFLOP/s that is made at the boost clock; 0: nobody knows
  auto operator<=>(const ProductConstants&) const = default;
};

// Attention in one kernel.
struct AttentionConstants {
  std::int64_t efficiency_ppm = 600'000;           // of the peak, inside a block
  std::int64_t backward_efficiency_ppm = 500'000;  // the same of its backward
  std::int64_t softmax_ppm = 40'000'000;           // in elements of a head: costs as many more
  Duration block = Duration::nanoseconds(500);     // to begin and to end one
  Duration backward_block = Duration::microseconds(10);
  std::int64_t whole_waves_ppm = 800'000;  // of a wave that is begun and not full
  std::int64_t alone_ppm = 600'000;        // of an SM's rate, that one block reaches
  std::int64_t memory_efficiency_ppm = 700'000;
  std::int64_t rotation_ppm = 2'000'000;  // of the queries' bytes, where a server fills its cache
  Duration start = Duration::microseconds(8);
  auto operator<=>(const AttentionConstants&) const = default;
};

// What memory gives to kernels that compute next to nothing.
struct MemoryConstants {
  std::int64_t efficiency_ppm = 850'000;
  Duration start = Duration::microseconds(3);
  auto operator<=>(const MemoryConstants&) const = default;
};

// Convolutions, relative to products on the same unit.
struct ConvolutionConstants {
  std::int64_t forward_ppm = 850'000;
  std::int64_t by_data_ppm = 750'000;
  std::int64_t by_weights_ppm = 700'000;
  std::int64_t winograd_ppm = 0;         // of the same efficiency, for tiles of 2 x 2 in one kernel; 0: none
  std::int64_t large_winograd_ppm = 0;   // and for tiles of 6 x 6 through memory
  std::int64_t transform_ppm = 600'000;  // of memory's bandwidth, into and out of those
  auto operator<=>(const ConvolutionConstants&) const = default;
};

struct KernelConstants {
  std::string name;
  std::string source;
  ProductConstants tensor;
  ProductConstants vector;
  AttentionConstants attention;
  ConvolutionConstants tensor_convolution;
  ConvolutionConstants vector_convolution{.winograd_ppm = 700'000, .large_winograd_ppm = 800'000};
  MemoryConstants memory;
  auto operator<=>(const KernelConstants&) const = default;
};

}  // namespace lockstep
