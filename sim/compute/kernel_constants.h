#pragma once

// What kernels reach on a GPU of one architecture, beside its data sheet.
//
// Problem:   a data sheet says what a GPU could do at most; two GPUs of one architecture differ in SMs, clocks
//            and memory, and run the same kernels.
// Idea:      constants of what an SM does with a tile and of how memory is reached, fitted to timed kernels of
//            the architecture; the data sheet's figures scale them to a GPU.
// Invariant: nothing belongs to a model, a shape or a row.
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
  Ratio efficiency = Ratio::percent(80);         // of the peak, inside a tile
  Bandwidth operands{60'000'000'000};            // into one SM, from the cache all SMs share
  Ratio operand_loss = {};                       // of the shorter of computing and loading, not hidden
  Duration tile = Duration::nanoseconds(1'000);  // to begin and to end one
  Ratio whole_waves = Ratio::percent(50);  // of a wave that is begun and not full: 0 costs its part alone
  Ratio memory_efficiency = Ratio::percent(85);
  Bandwidth memory_of_sm{50'000'000'000};         // the most that one SM draws
  Ratio overlap_loss = Ratio::percent(15);        // of the shorter of memory and tiles, not hidden
  Ratio split_traffic = Ratio::percent(50);       // of the partial sums, that reaches memory
  Duration split = Duration::nanoseconds(1'000);  // to add partial sums up
  Duration start = Duration::microseconds(2);
  Ratio across = Ratio::one();  // of that efficiency, where an operand lies across the depth
  // The same where tensor cores multiply operands of four bytes, which nothing turns on their way to them (PTX ISA:
  // ldmatrix .trans and transposed wgmma operands are for elements of two bytes).
  Ratio across_wide = Ratio::one();
  Milliwatts draw;  // of the board, for each TFLOP/s that is made at the boost clock; 0: nobody knows
  auto operator<=>(const ProductConstants&) const = default;
};

// What an SM's tensor cores make of halves at most, in what its vector lanes make, where rows begin at multiples of so
// few bytes: of operands that lie along the depth, of the output or an operand that lies across it. 0: nobody knows.
struct AlignmentConstants {
  Ratio depth_by_2 = {};
  Ratio depth_by_4 = {};  // or 8
  Ratio depth_by_16 = {};
  Ratio width_by_2 = {};
  Ratio width_by_4 = {};  // or 8
  auto operator<=>(const AlignmentConstants&) const = default;
};

// Attention in one kernel.
struct AttentionConstants {
  Ratio efficiency = Ratio::percent(60);           // of the peak, inside a block
  Ratio backward_efficiency = Ratio::percent(50);  // the same of its backward
  Ratio softmax = Ratio::one() * 20;               // FLOPs of a vector lane for each score
  Duration block = Duration::nanoseconds(500);     // to begin and to end one
  Duration backward_block = Duration::microseconds(10);
  Ratio whole_waves = Ratio::percent(80);  // of a wave that is begun and not full
  Ratio alone = Ratio::percent(60);        // of an SM's rate, that one block reaches
  Ratio wide = Ratio::one();  // of the efficiency, where heads are wider than 128: smaller tiles fit the SM
  Ratio last = {};            // of the longest block, that a causal kernel runs when all else is done
  Ratio memory_efficiency = Ratio::percent(70);
  Ratio cached = Ratio::one() * 3;    // of memory's bandwidth, what the cache gives that all SMs share
  Ratio rotation = Ratio::one() * 2;  // of the queries' bytes, where a server fills its cache
  Duration fill = Duration::microseconds(4);  // of a block of threads that writes one token there
  Duration start = Duration::microseconds(8);
  Milliwatts draw;  // as products' (a file that leaves it out: that of products)
  auto operator<=>(const AttentionConstants&) const = default;
};

// What memory gives to kernels that compute next to nothing.
struct MemoryConstants {
  Ratio efficiency = Ratio::percent(85);
  Duration start = Duration::microseconds(3);
  // Of the board for each SM, whatever it does: what units draw comes on top. 0: nobody knows.
  Milliwatts standby;
  auto operator<=>(const MemoryConstants&) const = default;
};

// Convolutions, relative to products on the same unit: implicit ones by direction, transformed ones by transform.
struct ConvolutionConstants {
  Ratio forward = Ratio::percent(85);
  Ratio by_data = Ratio::percent(75);
  Ratio by_weights = Ratio::percent(70);
  Ratio winograd = {};                   // tiles of 2 x 2 in one kernel; 0: none
  Ratio large_winograd = {};             // and of 6 x 6 through memory, whose products lie there as others do
  Ratio transform = Ratio::percent(60);  // of memory's bandwidth, into and out of those
  auto operator<=>(const ConvolutionConstants&) const = default;
};

struct KernelConstants {
  std::string name;
  std::string source;
  ProductConstants tensor;
  AlignmentConstants alignment;
  ProductConstants vector;
  AttentionConstants attention;
  AttentionConstants flash_attention_2;
  AttentionConstants server_attention;  // of TensorRT-LLM's own kernels
  ConvolutionConstants tensor_convolution;
  ConvolutionConstants vector_convolution{.winograd = Ratio::percent(70),
                                          .large_winograd = Ratio::percent(80)};
  MemoryConstants memory;
  bool are_compared = true;  // with timed kernels of this architecture
  auto operator<=>(const KernelConstants&) const = default;
};

}  // namespace lockstep
