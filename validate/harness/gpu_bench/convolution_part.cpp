#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "validate/harness/gpu_bench/kernel_parts.h"

namespace lockstep::harness {
namespace {

std::vector<ArenaOperand> operands_of(const ConvolutionCase& convolution) {
  const Convolution& shape = convolution.shape;
  const Type type = type_of(convolution.precision);
  return {
      {.elements = shape.batch * shape.output_height() * shape.output_width() * shape.outputs, .type = type},
      {.elements = shape.batch * shape.height * shape.width * shape.inputs, .type = type},
      {.elements = shape.outputs * shape.patch(), .type = type}};
}

// Of one shape: the GPU is as sound as before, so it does not count among failures in a row.
struct NoAlgorithm {};

void run(Convolver& convolver, const ConvolutionCase& convolution, const Arena& arena, std::int64_t call) {
  if (!convolver.run(convolution, arena.operand(call, 0), arena.operand(call, 1), arena.operand(call, 2)))
    throw NoAlgorithm{};
}

bool measure(const KernelBench& bench, Convolver& convolver, const ConvolutionCase& convolution) {
  const Cells key = key_cells(convolution);
  try {
    return measure_kernel(bench,
                          {.part = "conv2d",
                           .precision = convolution.precision,
                           .key = key,
                           .operands = operands_of(convolution),
                           .run = [&](std::int64_t call) { run(convolver, convolution, bench.arena, call); },
                           .cells =
                               [&] {
                                 Cells cells = key;
                                 cells.push_back(convolver.algorithm(convolution));
                                 return cells;
                               }});
  } catch (const NoAlgorithm&) {
    bench.tell(fmt::format("conv2d {}: left out, the library has no algorithm", fmt::join(key, " ")));
    return false;
  }
}

}  // namespace

PartResult measure_convolutions(const KernelBench& bench, Convolver& exact, Convolver& rounding,
                                const std::vector<ConvolutionCase>& cases) {
  const auto key = [](const ConvolutionCase& convolution) { return key_cells(convolution); };
  return run_cases(bench, cases, key, [&](const ConvolutionCase& convolution) {
    return measure(bench, convolution.precision == "tf32" ? rounding : exact, convolution);
  });
}

}  // namespace lockstep::harness
