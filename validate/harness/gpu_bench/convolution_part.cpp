#include <array>

#include "sim/base/error.h"
#include "validate/harness/gpu_bench/kernel_parts.h"

namespace lockstep::harness {
namespace {

std::vector<Operand> operands_of(const ConvolutionCase& convolution) {
  const Convolution& shape = convolution.shape;
  const Type type = type_of(convolution.precision);
  return {
      {.elements = shape.batch * shape.output_height() * shape.output_width() * shape.outputs, .type = type},
      {.elements = shape.batch * shape.height * shape.width * shape.inputs, .type = type},
      {.elements = shape.outputs * shape.patch(), .type = type}};
}

void run(Convolver& convolver, const ConvolutionCase& convolution, const Arena& arena, std::int64_t call) {
  if (!convolver.run(convolution, arena.operand(call, 0), arena.operand(call, 1), arena.operand(call, 2)))
    throw EnvironmentError("the library has no algorithm for this convolution");
}

}  // namespace

PartResult measure_convolutions(const KernelBench& bench, Convolver& exact, Convolver& rounding,
                                const std::vector<ConvolutionCase>& cases) {
  const auto key = [](const ConvolutionCase& convolution) { return key_cells(convolution); };
  return run_cases(bench, cases, key, [&](const ConvolutionCase& convolution) {
    Convolver& convolver = convolution.precision == "tf32" ? rounding : exact;
    return measure_kernel(bench,
                          {.part = "conv2d",
                           .precision = convolution.precision,
                           .key = key(convolution),
                           .operands = operands_of(convolution),
                           .run = [&](std::int64_t call) { run(convolver, convolution, bench.arena, call); },
                           .cells =
                               [&] {
                                 Cells cells = key(convolution);
                                 cells.push_back(convolver.algorithm(convolution));
                                 return cells;
                               }});
  });
}

}  // namespace lockstep::harness
