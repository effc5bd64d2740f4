#include "validate/harness/gpu_bench/kernel_parts.h"

namespace lockstep::harness {

std::vector<ArenaOperand> operands_of(const GemmCase& gemm) {
  const Type type = type_of(gemm.precision);
  return {{.elements = gemm.batch * gemm.m * gemm.k, .type = type},
          {.elements = gemm.batch * gemm.k * gemm.n, .type = type},
          {.elements = gemm.batch * gemm.m * gemm.n, .type = type}};
}

Matmul matmul_of(const GemmCase& gemm, const Arena& arena, std::int64_t call) {
  return {.a = {.tensor = arena.operand(call, 0),
                .is_transposed = gemm.layout.front() == 'T',
                .batch_stride = gemm.m * gemm.k},
          .b = {.tensor = arena.operand(call, 1),
                .is_transposed = gemm.layout.back() == 'T',
                .batch_stride = gemm.k * gemm.n},
          .output = {.tensor = arena.operand(call, 2), .batch_stride = gemm.m * gemm.n},
          .rows = gemm.m,
          .columns = gemm.n,
          .inner = gemm.k,
          .batches = gemm.batch};
}

PartResult measure_gemms(const KernelBench& bench, const std::vector<GemmCase>& cases) {
  const auto key = [](const GemmCase& gemm) { return key_cells(gemm); };
  return run_cases(bench, cases, key, [&](const GemmCase& gemm) {
    Device& device = bench.stage_of(gemm.precision).device();
    return measure_kernel(
        bench, {.part = "gemm",
                .precision = gemm.precision,
                .key = key(gemm),
                .operands = operands_of(gemm),
                .run = [&](std::int64_t call) { device.matmul(matmul_of(gemm, bench.arena, call)); },
                .cells = [&] { return key(gemm); }});
  });
}

}  // namespace lockstep::harness
