#include "sim/training/torch_ring.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "sim/base/units.h"
#include "sim/training/context_block.h"

namespace lockstep {
namespace {

PrimitiveWork& operator+=(PrimitiveWork& sum, const PrimitiveWork& more) {
  sum.elements += more.elements;
  sum.wide_elements += more.wide_elements;
  sum.cast_elements += more.cast_elements;
  sum.kernels += more.kernels;
  sum.casts += more.casts;
  return sum;
}

PrimitiveWork copied(std::int64_t elements, int kernels) {
  return {.elements = 2 * elements, .kernels = kernels};
}

PrimitiveWork copied_wide(std::int64_t elements, int kernels) {
  return {.wide_elements = 2 * elements, .kernels = kernels};
}

PrimitiveWork cast(std::int64_t elements) {
  return {.cast_elements = elements, .casts = 1};
}

// In half precision, which alone flash attention takes, an fp32 element is two.
std::int64_t half_elements(const PrimitiveWork& work) {
  return work.elements + 2 * work.wide_elements;
}

// An fp32 sum and what is added to it, in the activations' precision.
PrimitiveWork added(std::int64_t elements, int kernels) {
  return {.elements = elements, .wide_elements = 2 * elements, .kernels = kernels};
}

// `steps` blocks; forward meets block 0 first, backward last.
class TorchRing {
 public:
  TorchRing(const Layer& attention, const ParallelDegrees& degrees)
      : attention_(with_repeated_keys(attention)),
        steps_(degrees.context),
        is_gathered_(degrees.context_kind == ContextKind::rotate_all_gather),
        is_compiled_(degrees.is_compiled),
        elements_(elements_of(shape(), divided_up(shape().sequence, steps_))) {}

  std::vector<SlicedLayer> layers() const {
    std::vector<SlicedLayer> layers{between(0)};
    for (std::int64_t index = 0; index < steps_; ++index) {
      layers.push_back({.layer = layer_of_block(attention_, steps_, index), .exchanges = exchanges(index)});
      layers.push_back(between(index + 1));
    }
    return layers;
  }

 private:
  static Layer with_repeated_keys(Layer attention) {
    auto& shape = std::get<AttentionShape>(*attention.product);
    shape.kv_heads = shape.heads;
    return attention;
  }
  const AttentionShape& shape() const { return std::get<AttentionShape>(*attention_.product); }

  // After the forward of the block before, and the backward of the block behind it.
  SlicedLayer between(std::int64_t index) const {
    const PrimitiveWork merged = fused_forward(index);
    const PrimitiveWork added_up = fused_backward(index);
    SlicedLayer between{.layer = {.name = fmt::format("{}.merge_{}", attention_.name, index),
                                  .kind = LayerKind::vector,
                                  .split = attention_.split,
                                  .block = attention_.block,
                                  .forward_elements = half_elements(merged),
                                  .backward_elements = half_elements(added_up),
                                  .composition = Composition{.forward = forward(index),
                                                             .backward = backward(index),
                                                             .by = ComposedBy::operators},
                                  .forward_kernels = merged.kernels,
                                  .backward_kernels = added_up.kernels}};
    if (index == 0)
      between.exchanges.after_backward.push_back(gradients());
    return between;
  }

  // Of a block's keys and values, to be sent. Operator by operator every block is copied, of which a rank that gathers
  // sends its own alone.
  PrimitiveWork block_copy(std::int64_t step) const {
    return step + 1 < steps_ ? copied(elements_.keys_values, 1) : PrimitiveWork{};
  }
  PrimitiveWork read_copy(std::int64_t step) const {
    return sends_block(step) ? copied(elements_.keys_values, 1) : PrimitiveWork{};
  }

  PrimitiveWork forward(std::int64_t index) const {
    PrimitiveWork work = block_copy(index);
    if (index == 0) {
      work += copied(elements_.keys_values, 2);  // made contiguous
      return work;
    }
    work += cast(elements_.outputs);
    if (index > 1)
      work += merge();
    if (index == steps_)
      work += cast(elements_.outputs);
    return work;
  }

  // out - sigmoid(lse of the block - lse) * (out - out of the block): two differences and a product of the outputs;
  // of the log-sums two differences, a sigmoid, a logarithm of it and its difference.
  PrimitiveWork merge() const { return {.wide_elements = (3 + 2 + 3) * elements_.outputs, .kernels = 3 + 5}; }

  // One kernel for outputs and one for log-sums, which reads the first block's output where it lies, and writes the
  // last sum as it is handed on.
  PrimitiveWork fused_forward(std::int64_t index) const {
    PrimitiveWork work = read_copy(index);
    if (index == 0) {
      work.elements += elements_.keys_values;  // the same kernel writes them contiguous
      return work;
    }
    if (index == 1)
      return work;
    work.elements += elements_.outputs;
    (index == 2 ? work.elements : work.wide_elements) += elements_.outputs;
    (index == steps_ ? work.elements : work.wide_elements) += elements_.outputs;
    work.kernels += 2;
    return work;
  }

  // Block `index` comes after so many others in backward.
  std::int64_t backward_step(std::int64_t index) const { return steps_ - 1 - index; }

  PrimitiveWork backward(std::int64_t index) const {
    if (index == steps_)
      return begin_backward();
    const std::int64_t step = backward_step(index);
    PrimitiveWork work = block_copy(step + 1);
    work += gradients_of_keys(step);
    work += copied_wide(elements_.keys_values, 1);  // to be sent
    work += added(elements_.queries, 1);
    if (index > 0)
      return work;
    work += cast(elements_.queries);
    work += cast(elements_.keys_values);
    return work;
  }

  // Sums of zeros; keys and values made contiguous once more.
  PrimitiveWork begin_backward() const {
    PrimitiveWork work = block_copy(0);
    work += {.wide_elements = elements_.queries + elements_.keys_values, .kernels = 3};
    work += copied(elements_.keys_values, 2);
    return work;
  }

  // Of later blocks half have one: it is added to its half of the sum, and the halves are joined.
  PrimitiveWork gradients_of_keys(std::int64_t step) const {
    if (step == 0)
      return added(elements_.keys_values, 2);
    PrimitiveWork work = added(divided_up(elements_.keys_values, 2), 2);
    work += copied_wide(elements_.keys_values, 2);
    return work;
  }

  // One kernel adds to what has come and writes what is sent, another the sum of the queries' gradients.
  PrimitiveWork fused_backward(std::int64_t index) const {
    if (index == steps_) {
      PrimitiveWork work = read_copy(0);
      work.elements += elements_.keys_values;
      return work;
    }
    const std::int64_t step = backward_step(index);
    const bool is_begun = step > 0;
    PrimitiveWork work = read_copy(step + 1);
    work +=
        {.elements = divided_up(elements_.keys_values, is_begun ? 2 : 1) + elements_.queries,
         .wide_elements = (is_begun ? 2 : 1) * elements_.keys_values + (is_begun ? 1 : 0) * elements_.queries,
         .kernels = 2};
    (index == 0 ? work.elements : work.wide_elements) += elements_.queries;
    if (index == 0)
      work += {.elements = elements_.keys_values, .wide_elements = elements_.keys_values, .kernels = 1};
    return work;
  }

  LayerExchanges exchanges(std::int64_t index) const {
    LayerExchanges exchanges;
    if (sends_block(index))
      exchanges.before_forward.push_back(keys_values());
    const std::int64_t step = backward_step(index);
    if (step > 0)
      exchanges.before_backward.push_back(beside(gradients()));
    if (sends_block(step))
      exchanges.before_backward.push_back(keys_values());
    return exchanges;
  }

  bool sends_block(std::int64_t step) const { return step + 1 < steps_ && (!is_gathered_ || step == 0); }

  Exchange keys_values() const {
    if (is_gathered_)
      return beside(of_context("keys and values", CollectiveOp::all_gather, steps_ * elements_.keys_values));
    return beside(of_context("keys and values", CollectiveOp::send_recv, elements_.keys_values));
  }

  // In fp32 to the next rank; the last ones come home.
  Exchange gradients() const {
    Exchange sent =
        of_context("gradients of keys and values", CollectiveOp::send_recv, elements_.keys_values);
    sent.is_wide = true;
    return sent;
  }

  Exchange beside(Exchange exchange) const {
    exchange.beside_kernel = !is_compiled_;
    return exchange;
  }

  const Layer attention_;
  std::int64_t steps_;
  bool is_gathered_;
  bool is_compiled_;
  TokenElements elements_;
};

}  // namespace

std::vector<SlicedLayer> torch_ring_steps(const Layer& attention, const ParallelDegrees& degrees) {
  return TorchRing(attention, degrees).layers();
}

}  // namespace lockstep
