#include <cmath>

#include "validate/harness/gpu_bench/kernel_parts.h"

namespace lockstep::harness {
namespace {

// As the harness's own attention computes it: scores are stored, and softmax is a kernel of its own.
constexpr const char* kernel_name = "unfused";

enum OperandIndex : std::uint8_t {
  query,
  key,
  value,
  output,  // or its gradient
  scores,  // or their gradient
  weights,
  query_gradient,
  key_gradient,
  value_gradient,
  weights_gradient
};

class UnfusedAttention {
 public:
  UnfusedAttention(const KernelBench& bench, const AttentionCase& attention)
      : attention_(attention),
        arena_(bench.arena),
        device_(bench.stage_of(attention.precision).device()),
        type_(type_of(attention.precision)),
        scale_(1 / std::sqrt(static_cast<float>(attention.head_width))) {}

  std::vector<ArenaOperand> operands() const {
    const std::int64_t heads = attention_.batch * attention_.heads;
    const ArenaOperand narrow{.elements = heads * attention_.sequence * attention_.head_width, .type = type_};
    const ArenaOperand square{.elements = heads * attention_.sequence * attention_.sequence, .type = type_};
    std::vector<ArenaOperand> operands = {narrow, narrow, narrow, narrow, square, square};
    if (attention_.is_backward)
      operands.insert(operands.end(), {narrow, narrow, narrow, square});
    return operands;
  }

  void run(std::int64_t call) const {
    if (attention_.is_backward)
      backward(call);
    else
      forward(call);
  }

 private:
  void forward(std::int64_t call) const {
    to_squares(call, query, key, scores, scale_);
    device_.causal_softmax(at(call, weights), at(call, scores), attention_.sequence);
    to_heads(call, weights, false, value, output, 1);
  }

  void backward(std::int64_t call) const {
    to_heads(call, weights, true, output, value_gradient, 1);
    to_squares(call, output, value, weights_gradient, 1);
    device_.causal_softmax_backward(at(call, scores), at(call, weights_gradient), at(call, weights),
                                    attention_.sequence);
    to_heads(call, scores, false, key, query_gradient, scale_);
    to_heads(call, scores, true, query, key_gradient, scale_);
  }

  Tensor at(std::int64_t call, OperandIndex index) const { return arena_.operand(call, index); }

  Factor narrow(std::int64_t call, OperandIndex index, bool is_transposed = false) const {
    return {.tensor = at(call, index),
            .is_transposed = is_transposed,
            .batch_stride = attention_.sequence * attention_.head_width};
  }

  Factor square(std::int64_t call, OperandIndex index, bool is_transposed = false) const {
    return {.tensor = at(call, index),
            .is_transposed = is_transposed,
            .batch_stride = attention_.sequence * attention_.sequence};
  }

  void to_squares(std::int64_t call, OperandIndex left, OperandIndex right, OperandIndex result,
                  float scale) const {
    device_.matmul({.a = narrow(call, left),
                    .b = narrow(call, right, true),
                    .output = square(call, result),
                    .rows = attention_.sequence,
                    .columns = attention_.sequence,
                    .inner = attention_.head_width,
                    .batches = attention_.batch * attention_.heads,
                    .scale = scale});
  }

  void to_heads(std::int64_t call, OperandIndex squares, bool is_transposed, OperandIndex heads,
                OperandIndex result, float scale) const {
    device_.matmul({.a = square(call, squares, is_transposed),
                    .b = narrow(call, heads),
                    .output = narrow(call, result),
                    .rows = attention_.sequence,
                    .columns = attention_.head_width,
                    .inner = attention_.sequence,
                    .batches = attention_.batch * attention_.heads,
                    .scale = scale});
  }

  AttentionCase attention_;
  const Arena& arena_;
  Device& device_;
  Type type_;
  float scale_;
};

}  // namespace

PartResult measure_attentions(const KernelBench& bench, const std::vector<AttentionCase>& cases) {
  const auto key = [](const AttentionCase& attention) { return key_cells(attention, kernel_name); };
  return run_cases(bench, cases, key, [&](const AttentionCase& attention) {
    const UnfusedAttention unfused(bench, attention);
    return measure_kernel(bench, {.part = "attention",
                                  .precision = attention.precision,
                                  .key = key(attention),
                                  .operands = unfused.operands(),
                                  .run = [&](std::int64_t call) { unfused.run(call); },
                                  .cells = [&] { return key(attention); }});
  });
}

}  // namespace lockstep::harness
