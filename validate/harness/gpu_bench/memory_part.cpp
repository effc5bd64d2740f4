#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "validate/harness/gpu_bench/kernel_parts.h"

namespace lockstep::harness {
namespace {

constexpr const char* own_kernel_name = "lockstep";

// Words of an embedding's table; GPT-2's.
constexpr std::int64_t vocabulary = 50257;
constexpr std::int64_t positions = 1024;

// What a kernel works on: tensors of the arena, in the order that its class asked for them, and small ones
// that stay.
class MemoryKernel {
 public:
  MemoryKernel(const KernelBench& bench, const MemoryCase& memory)
      : memory_(memory),
        arena_(bench.arena),
        device_(bench.stage_of(memory.precision).device()),
        type_(type_of(memory.precision)),
        gain_(device_, memory.hidden, Type::fp32),
        shift_(device_, memory.hidden, Type::fp32),
        mean_(device_, std::max(memory.rows, memory.hidden), Type::fp32),
        deviation_(device_, std::max(memory.rows, memory.hidden), Type::fp32) {
    for (const Buffer* small : {&gain_, &shift_, &mean_, &deviation_}) device_.fill_zero(small->tensor());
    if (memory.op == "embedding" || memory.op == "cross_entropy")
      indices_ = drawn_indices();
  }

  std::vector<ArenaOperand> operands() const {
    const std::string_view op = memory_.op;
    if (op == "embedding")
      return {main(), {.elements = vocabulary * memory_.hidden}, {.elements = positions * memory_.hidden}};
    if (op == "cast")
      return {main(), {.elements = main().elements, .type = Type::fp32}};
    if (op == "adamw")
      return {main(), main(), main(), main()};
    if (op == "add_bias" || op == "sum_columns")
      return {main()};
    const bool has_three = memory_.is_backward || op == "add" || op == "momentum";
    return has_three ? std::vector<ArenaOperand>{main(), main(), main()} : std::vector<ArenaOperand>{main(), main()};
  }

  void run(std::int64_t call) {
    const auto found = kernels().find({memory_.op, memory_.is_backward});
    LOCKSTEP_CHECK(found != kernels().end(), "every class that is timed has a kernel");
    (this->*found->second)(call);
  }

 private:
  using Kernel = void (MemoryKernel::*)(std::int64_t);
  static const std::map<std::pair<std::string, bool>, Kernel>& kernels();

  ArenaOperand main() const { return {.elements = memory_.rows * memory_.hidden, .type = type_}; }
  Tensor at(std::int64_t call, std::size_t index) const { return arena_.operand(call, index); }

  Buffer drawn_indices() const {
    const bool is_embedding = memory_.op == "embedding";
    const auto bound = static_cast<std::uint64_t>(is_embedding ? vocabulary : memory_.hidden);
    std::vector<std::int32_t> values(static_cast<std::size_t>(memory_.rows));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int32_t>(random_below(keyed_random(2, i, 0), bound));
    Buffer indices(device_, memory_.rows, Type::int32);
    device_.upload(indices.tensor(), values.data());
    device_.synchronize();
    return indices;
  }

  Normalisation norm() const {
    return {.rows = memory_.rows,
            .columns = memory_.hidden,
            .gain = gain_.tensor(),
            .shift = shift_.tensor(),
            .mean = mean_.tensor(),
            .inverse_deviation = deviation_.tensor()};
  }
  NormalisationGradients norm_gradients() const { return {.gain = gain_.tensor(), .shift = shift_.tensor()}; }

  void copy(std::int64_t call) { device_.copy(at(call, 0), at(call, 1)); }
  void cast(std::int64_t call) { device_.cast(at(call, 0), at(call, 1)); }
  void add(std::int64_t call) { device_.add(at(call, 0), at(call, 1), at(call, 2)); }
  void add_bias(std::int64_t call) { device_.add_bias(at(call, 0), gain_.tensor()); }
  void sum_columns(std::int64_t call) { device_.sum_columns(gain_.tensor(), at(call, 0), false); }
  void relu(std::int64_t call) { device_.relu(at(call, 0), at(call, 1)); }
  void relu_backward(std::int64_t call) { device_.relu_backward(at(call, 0), at(call, 1), at(call, 2)); }
  void gelu(std::int64_t call) { device_.gelu(at(call, 0), at(call, 1)); }
  void gelu_backward(std::int64_t call) { device_.gelu_backward(at(call, 0), at(call, 1), at(call, 2)); }
  void layer_norm(std::int64_t call) { device_.layer_norm(norm(), at(call, 0), at(call, 1)); }
  void layer_norm_backward(std::int64_t call) {
    device_.layer_norm_backward(norm(), norm_gradients(), at(call, 0), at(call, 1), at(call, 2));
  }
  void batch_norm(std::int64_t call) {
    device_.batch_norm(norm(), gain_.tensor(), shift_.tensor(), 0, at(call, 0), at(call, 1));
  }
  void batch_norm_backward(std::int64_t call) {
    device_.batch_norm_backward(norm(), norm_gradients(), at(call, 0), at(call, 1), at(call, 2));
  }
  void causal_softmax(std::int64_t call) { device_.causal_softmax(at(call, 0), at(call, 1), memory_.hidden); }
  void causal_softmax_backward(std::int64_t call) {
    device_.causal_softmax_backward(at(call, 0), at(call, 1), at(call, 2), memory_.hidden);
  }
  void cross_entropy(std::int64_t call) {
    device_.cross_entropy(mean_.tensor().part(0, 1), at(call, 0), at(call, 1), indices_.tensor(),
                          memory_.hidden, 1);
  }
  void embed(std::int64_t call) {
    device_.embed(at(call, 0), indices_.tensor(), at(call, 1), at(call, 2), memory_.hidden, positions);
  }
  void embed_backward(std::int64_t call) {
    device_.embed_backward(at(call, 1), at(call, 2), at(call, 0), indices_.tensor(), memory_.hidden,
                           positions);
  }
  void sgd(std::int64_t call) { device_.sgd(at(call, 0), at(call, 1), {}, {.learning_rate = 1e-3F}); }
  void momentum(std::int64_t call) {
    device_.sgd(at(call, 0), at(call, 1), at(call, 2), {.learning_rate = 1e-3F, .momentum = 0.9F});
  }
  void adamw(std::int64_t call) {
    device_.adamw(at(call, 0), at(call, 1), at(call, 2), at(call, 3), {.learning_rate = 1e-3F});
  }

  MemoryCase memory_;
  const Arena& arena_;
  Device& device_;
  Type type_;
  Buffer gain_;
  Buffer shift_;
  Buffer mean_;
  Buffer deviation_;
  Buffer indices_;
};

const std::map<std::pair<std::string, bool>, MemoryKernel::Kernel>& MemoryKernel::kernels() {
  static const std::map<std::pair<std::string, bool>, Kernel> table = {
      {{"copy", false}, &MemoryKernel::copy},
      {{"cast", false}, &MemoryKernel::cast},
      {{"add", false}, &MemoryKernel::add},
      {{"add_bias", false}, &MemoryKernel::add_bias},
      {{"sum_columns", false}, &MemoryKernel::sum_columns},
      {{"relu", false}, &MemoryKernel::relu},
      {{"relu", true}, &MemoryKernel::relu_backward},
      {{"gelu", false}, &MemoryKernel::gelu},
      {{"gelu", true}, &MemoryKernel::gelu_backward},
      {{"layer_norm", false}, &MemoryKernel::layer_norm},
      {{"layer_norm", true}, &MemoryKernel::layer_norm_backward},
      {{"batch_norm", false}, &MemoryKernel::batch_norm},
      {{"batch_norm", true}, &MemoryKernel::batch_norm_backward},
      {{"causal_softmax", false}, &MemoryKernel::causal_softmax},
      {{"causal_softmax", true}, &MemoryKernel::causal_softmax_backward},
      {{"cross_entropy", false}, &MemoryKernel::cross_entropy},
      {{"embedding", false}, &MemoryKernel::embed},
      {{"embedding", true}, &MemoryKernel::embed_backward},
      {{"sgd", false}, &MemoryKernel::sgd},
      {{"momentum", false}, &MemoryKernel::momentum},
      {{"adamw", false}, &MemoryKernel::adamw}};
  return table;
}

Cells row_cells(const MemoryCase& memory) {
  Cells cells = key_cells(memory);
  cells.back() = own_kernel_name;  // where the key has what is cold, the row has whose kernel it is
  return cells;
}

}  // namespace

PartResult measure_memory_bound(const KernelBench& bench, const std::vector<MemoryCase>& cases) {
  const auto key = [](const MemoryCase& memory) { return key_cells(memory); };
  return run_cases(bench, cases, key, [&](const MemoryCase& memory) {
    MemoryKernel kernel(bench, memory);
    return measure_kernel(bench, {.part = "memory_bound",
                                  .precision = memory.precision,
                                  .key = key(memory),
                                  .operands = kernel.operands(),
                                  .is_cold = memory.is_cold,
                                  .run = [&](std::int64_t call) { kernel.run(call); },
                                  .cells = [&] { return row_cells(memory); }});
  });
}

}  // namespace lockstep::harness
