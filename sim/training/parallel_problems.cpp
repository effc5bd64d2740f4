#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <string_view>
#include <variant>

#include "sim/training/layer_slice.h"
#include "sim/training/parallel_model.h"

namespace lockstep {
namespace {

// "4", or "4 and 8": the largest degree below that works, and the smallest above.
template <std::predicate<std::int64_t> Works>
std::string nearest(std::int64_t degree, std::int64_t largest, const Works& works) {
  std::int64_t below = std::min(degree, largest + 1) - 1;
  while (below > 1 && !works(below)) --below;
  std::int64_t above = degree + 1;
  while (above <= largest && !works(above)) ++above;
  return above <= largest ? fmt::format("{} and {}", below, above) : fmt::format("{}", below);
}

// A number of things that a degree has to divide.
struct Divided {
  const char* what;
  std::int64_t count;
};

class ProblemFinder {
 public:
  ProblemFinder(const Model& model, const ParallelDegrees& degrees)
      : model_(model), degrees_(degrees), sizes_(model.transformer.value_or(TransformerSizes{})) {}

  std::vector<std::string> find() {
    if (degrees_.tensor > 1)
      check_tensor();
    if (degrees_.sequence_parallel && degrees_.tensor > 1)
      check_sequence();
    if (degrees_.context > 1)
      check_context();
    if (degrees_.expert > 1 || degrees_.expert_tensor > 0)
      check_experts();
    return std::move(problems_);
  }

 private:
  void add(std::string_view problem) { problems_.emplace_back(problem); }

  bool has_mixture() const { return sizes_.mixture.experts > 0; }
  // All of a tensor group share each expert, unless it is stated how many do.
  bool shares_experts() const { return degrees_.expert_tensor == 0; }

  std::int64_t dense_width() const {
    return has_mixture() && sizes_.mixture.dense_layers == 0 ? 0 : sizes_.ffn;
  }

  // Megatron lets fewer groups of queries than ranks be, where ranks share them evenly.
  bool are_shareable(std::int64_t kv_heads, std::int64_t tensor) const {
    return kv_heads % tensor == 0 || tensor % kv_heads == 0;
  }

  bool divides_block(std::int64_t tensor) const {
    const MixtureSizes& mixture = sizes_.mixture;
    return sizes_.heads % tensor == 0 && are_shareable(sizes_.kv_heads, tensor) &&
           dense_width() % tensor == 0 && (!shares_experts() || mixture.ffn % tensor == 0) &&
           mixture.shared_ffn % tensor == 0;
  }

  void check_tensor() {
    if (!model_.transformer)
      return check_plain_layers();
    if (has_mixture() && !degrees_.sequence_parallel)
      add("tensor parallelism of a mixture of experts needs sequence_parallel: routed tokens are divided by "
          "it");
    if (divides_block(degrees_.tensor))
      return;
    const std::string degrees =
        nearest(degrees_.tensor, sizes_.heads, [&](std::int64_t tensor) { return divides_block(tensor); });
    add(fmt::format("tensor_parallel {} does not divide {}; nearest that does: {}", degrees_.tensor,
                    undivided(), degrees));
  }

  std::string undivided() const {
    const std::array<Divided, 4> all = {{{"heads", sizes_.heads},
                                         {"the feed-forward width", dense_width()},
                                         {"an expert's width", shares_experts() ? sizes_.mixture.ffn : 0},
                                         {"the shared experts' width", sizes_.mixture.shared_ffn}}};
    std::string text;
    for (const auto& [what, count] : all)
      if (count % degrees_.tensor != 0)
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", what, count);
    if (!are_shareable(sizes_.kv_heads, degrees_.tensor))
      text += fmt::format("{}heads of keys and values ({}), nor they it", text.empty() ? "" : ", ",
                          sizes_.kv_heads);
    return text;
  }

  // Any model whose layers say how they are split.
  void check_plain_layers() {
    bool is_split = false;
    for (const Layer& layer : model_.layers) {
      if (layer.split != TensorSplit::column && layer.split != TensorSplit::row)
        continue;
      is_split = true;
      check_plain_layer(layer);
    }
    if (!is_split)
      add(fmt::format("{} has no layer that tensor parallelism can split", model_.name));
  }

  void check_plain_layer(const Layer& layer) {
    if (!is_linear(layer))
      return add(fmt::format("layer {} is to be split but is no linear layer with known sizes", layer.name));
    const GemmShape shape = sides_of(layer).shape;
    const bool is_column = layer.split == TensorSplit::column;
    const std::int64_t width = is_column ? shape.n : shape.k;
    if (width % degrees_.tensor != 0)
      add(fmt::format(
          "tensor_parallel {} does not divide the {} {} of layer {}; nearest that does: {}", degrees_.tensor,
          width, is_column ? "outputs" : "inputs", layer.name,
          nearest(degrees_.tensor, width, [&](std::int64_t tensor) { return width % tensor == 0; })));
  }

  void check_sequence() {
    const std::int64_t parts = degrees_.tensor * degrees_.context;
    if (model_.tokens_per_sample == 0)
      return add(fmt::format("{} has no sequence to divide", model_.name));
    if (model_.tokens_per_sample % parts != 0)
      add(fmt::format(
          "sequence_parallel divides a sequence by tensor_parallel x context_parallel: {} tokens are "
          "not divisible by {}",
          model_.tokens_per_sample, parts));
  }

  // A causal sequence is cut into twice as many pieces as there are ranks.
  std::int64_t pieces(std::int64_t context) const {
    return sizes_.causal && degrees_.context_kind != ContextKind::ulysses ? 2 * context : context;
  }

  bool divides_sequence(std::int64_t context) const {
    if (model_.tokens_per_sample % pieces(context) != 0)
      return false;
    return degrees_.context_kind != ContextKind::ulysses || divides_heads(context);
  }
  bool divides_heads(std::int64_t context) const {
    return sizes_.heads % (degrees_.tensor * context) == 0 &&
           sizes_.kv_heads % (degrees_.tensor * context) == 0;
  }

  void check_context() {
    if (!model_.transformer || model_.tokens_per_sample == 0)
      return add(fmt::format("{} has no sequence that context parallelism could divide", model_.name));
    if (!sizes_.fused_attention)
      add("context parallelism needs fused attention: \"attention\": \"fused\"");
    if (divides_sequence(degrees_.context))
      return;
    const std::string what =
        model_.tokens_per_sample % pieces(degrees_.context) != 0
            ? fmt::format("the sequence of {} tokens{}", model_.tokens_per_sample,
                          pieces(2) == 4 ? " into two equal pieces a rank" : "")
            : fmt::format("the {} heads, {} of keys and values, of each of {} tensor-parallel ranks",
                          sizes_.heads / degrees_.tensor, sizes_.kv_heads / degrees_.tensor, degrees_.tensor);
    add(fmt::format("context_parallel {} does not divide {}; nearest that does: {}", degrees_.context, what,
                    nearest(degrees_.context, model_.tokens_per_sample,
                            [&](std::int64_t context) { return divides_sequence(context); })));
  }

  void check_experts() {
    const std::int64_t experts = sizes_.mixture.experts;
    if (!has_mixture())
      return add(fmt::format("{} has no experts to divide (expert_parallel, expert_tensor_parallel)",
                             model_.name.empty() ? "the model" : model_.name));
    if (!shares_experts() && sizes_.mixture.ffn % degrees_.expert_tensor != 0)
      add(fmt::format(
          "expert_tensor_parallel {} does not divide an expert's width ({}); nearest that does: {}",
          degrees_.expert_tensor, sizes_.mixture.ffn,
          nearest(degrees_.expert_tensor, sizes_.mixture.ffn,
                  [&](std::int64_t degree) { return sizes_.mixture.ffn % degree == 0; })));
    if (experts % degrees_.expert != 0)
      return add(fmt::format(
          "expert_parallel {} does not divide the {} experts; nearest that does: {}", degrees_.expert,
          experts,
          nearest(degrees_.expert, experts, [&](std::int64_t degree) { return experts % degree == 0; })));
    check_imbalance();
  }

  // A token goes to experts that differ: to as many of one rank as it has, at most.
  void check_imbalance() {
    const std::int64_t chosen = std::max<std::int64_t>(sizes_.mixture.experts_per_token, 1);
    const std::int64_t of_one_rank = std::min(chosen, sizes_.mixture.experts / degrees_.expert);
    const double most = static_cast<double>(degrees_.expert * of_one_rank) / static_cast<double>(chosen);
    if (degrees_.expert > 1 && degrees_.expert_imbalance.in_real() > most)
      add(fmt::format(
          "expert_imbalance {:g}: the busiest of {} ranks gets at most {:g} times an even share, where each "
          "token goes to {} of {} experts",
          degrees_.expert_imbalance.in_real(), degrees_.expert, most, chosen, sizes_.mixture.experts));
  }

  const Model& model_;
  const ParallelDegrees& degrees_;
  TransformerSizes sizes_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> problems(const Model& model, const ParallelDegrees& degrees) {
  return ProblemFinder(model, degrees).find();
}

}  // namespace lockstep
