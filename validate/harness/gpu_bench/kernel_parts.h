#pragma once

// The parts of the bench that ask no more of a GPU than Device has: products, attention, what memory bounds.
//
// Idea:      they run on any device, so the tests run them on a CPU: what does not fit together is found
//            there, not in the half hour that a GPU is at hand.

#include <string>
#include <vector>

#include "validate/harness/gpu_bench/attention_cases.h"
#include "validate/harness/gpu_bench/convolution_cases.h"
#include "validate/harness/gpu_bench/gemm_cases.h"
#include "validate/harness/gpu_bench/kernel_bench.h"
#include "validate/harness/gpu_bench/memory_cases.h"

namespace lockstep::harness {

PartResult measure_gemms(const KernelBench& bench, const std::vector<GemmCase>& cases);
PartResult measure_attentions(const KernelBench& bench, const std::vector<AttentionCase>& cases);
PartResult measure_memory_bound(const KernelBench& bench, const std::vector<MemoryCase>& cases);

// A convolution by a library that chooses an algorithm.
class Convolver {
 public:
  virtual ~Convolver() = default;
  // False where the library has none for it.
  virtual bool run(const ConvolutionCase& convolution, Tensor output, Tensor input, Tensor weight) = 0;
  // Of the last `run`, as the library calls it.
  virtual std::string algorithm(const ConvolutionCase& convolution) = 0;
};

PartResult measure_convolutions(const KernelBench& bench, Convolver& exact, Convolver& rounding,
                                const std::vector<ConvolutionCase>& cases);

// What a product reads and writes, for others that run it.
std::vector<ArenaOperand> operands_of(const GemmCase& gemm);
Matmul matmul_of(const GemmCase& gemm, const Arena& arena, std::int64_t call);

}  // namespace lockstep::harness
