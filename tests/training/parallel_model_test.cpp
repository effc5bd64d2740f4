// One rank's model against the whole: closed forms of Shoeybi, Korthikanti, Liu and Jacobs.

#include "sim/training/parallel_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/models/instance.h"

namespace lockstep::parallel_model_test {
namespace {

constexpr std::string_view gpt = R"({"family": "transformer", "style": "gpt2", "layers": 3, "hidden": 256,
    "heads": 8, "ffn": 1024, "vocabulary": 2048, "sequence_length": 128})";
constexpr std::string_view llama = R"({"family": "transformer", "style": "llama", "layers": 3, "hidden": 256,
    "heads": 8, "kv_heads": 4, "ffn": 704, "vocabulary": 2048, "sequence_length": 128})";

using Lists = std::vector<std::vector<Exchange> LayerExchanges::*>;

const Lists forward_lists = {&LayerExchanges::before_forward, &LayerExchanges::after_forward};
const Lists backward_lists = {&LayerExchanges::before_backward, &LayerExchanges::after_backward_input,
                              &LayerExchanges::after_backward};

// Of the layers of one block (-1: those outside of all), in these lists.
std::vector<Exchange> exchanges_of(const ParallelModel& rank, int block, const Lists& lists) {
  std::vector<Exchange> found;
  for (std::size_t layer = 0; layer < rank.exchanges.size(); ++layer) {
    if (rank.model.layers[layer].block != block)
      continue;
    for (const auto list : lists) std::ranges::copy(rank.exchanges[layer].*list, std::back_inserter(found));
  }
  return found;
}

std::int64_t elements_of(const std::vector<Exchange>& exchanges, CollectiveOp op) {
  std::int64_t elements = 0;
  for (const Exchange& exchange : exchanges) elements += exchange.op == op ? exchange.elements : 0;
  return elements;
}

std::size_t count_of(const std::vector<Exchange>& exchanges, CollectiveOp op) {
  return static_cast<std::size_t>(std::ranges::count(exchanges, op, &Exchange::op));
}

std::int64_t flops_of(const Model& model) {
  return forward_flops(model) + backward_flops(model);
}

// All ranks' tensors, those that each of them holds counted once.
std::int64_t parameters_of_all(const ParallelModel& rank, std::int64_t tensor) {
  std::int64_t elements = 0;
  for (std::size_t index = 0; index < rank.parameters.size(); ++index)
    elements += rank.model.parameters[index].elements * (rank.parameters[index].is_replicated ? 1 : tensor);
  return elements;
}

bool is_empty(const LayerExchanges& exchanges) {
  return exchanges.before_forward.empty() && exchanges.after_forward.empty() &&
         exchanges.before_backward.empty() && exchanges.after_backward_input.empty() &&
         exchanges.after_backward.empty();
}

}  // namespace

TEST_CASE("degrees of one return the model as it is, with nothing to exchange") {
  const Model model = model_from(gpt);
  const ParallelModel rank = parallel_model(model, {.sequence_parallel = true});
  REQUIRE(rank.model.layers.size() == model.layers.size());
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    CHECK(rank.model.layers[layer].forward_flops == model.layers[layer].forward_flops);
    CHECK(rank.model.layers[layer].backward_elements == model.layers[layer].backward_elements);
    CHECK(rank.model.layers[layer].saved_elements == model.layers[layer].saved_elements);
  }
  CHECK(parameter_count(rank.model) == parameter_count(model));
  CHECK(std::ranges::all_of(rank.exchanges, is_empty));
}

TEST_CASE("the FLOPs of a tensor-parallel group's ranks add up to the model's") {
  for (const std::string_view text : {gpt, llama})
    for (const std::int64_t t : {2, 4})
      for (const bool is_sequence_parallel : {false, true}) {
        CAPTURE(t);
        const Model model = model_from(text);
        const ParallelModel rank =
            parallel_model(model, {.tensor = t, .sequence_parallel = is_sequence_parallel});
        CHECK(t * flops_of(rank.model) == flops_of(model));
      }
}

TEST_CASE("the tensors of a tensor-parallel group add up to the model's, replicated ones counted once") {
  for (const std::string_view text : {gpt, llama})
    for (const std::int64_t t : {2, 4, 8}) {
      CAPTURE(t);
      const Model model = model_from(text);
      const ParallelModel rank = parallel_model(model, {.tensor = t});
      CHECK(parameters_of_all(rank, t) == parameter_count(model));
      for (const ParameterTensor& tensor : rank.model.parameters)
        CHECK(std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                              std::multiplies<>()) == tensor.elements);
    }
}

// Norms' weights and biases (2 x 2 a block, 2 behind), the biases of both rows of a block, positions.
TEST_CASE("norms, positions and the biases of rows are replicated, everything else is divided") {
  const ParallelModel rank = parallel_model(model_from(gpt), {.tensor = 4});
  std::int64_t elements = 0;
  for (std::size_t index = 0; index < rank.parameters.size(); ++index) {
    elements += rank.parameters[index].is_replicated ? rank.model.parameters[index].elements : 0;
    CHECK_FALSE(rank.parameters[index].is_partial);
  }
  CHECK(elements == 3 * (4 * 256 + 2 * 256) + 2 * 256 + 128 * 256);
}

// Each rank saw its own tokens alone in norms and after rows; positions were added before tokens were
// divided.
TEST_CASE("with sequence parallelism gradients of norms and of rows' biases are partial") {
  const ParallelModel rank = parallel_model(model_from(gpt), {.tensor = 4, .sequence_parallel = true});
  std::int64_t elements = 0;
  for (std::size_t index = 0; index < rank.parameters.size(); ++index)
    elements += rank.parameters[index].is_partial ? rank.model.parameters[index].elements : 0;
  CHECK(elements == 3 * (4 * 256 + 2 * 256) + 2 * 256);
}

// Shoeybi, section 3: two all-reduces of b s h forward and two backward a block; queries, keys and values are
// one product's worth, gate and up too.
TEST_CASE("a tensor-parallel block has two all-reduces of its stream forward and two backward") {
  for (const std::string_view text : {gpt, llama}) {
    const ParallelModel rank = parallel_model(model_from(text), {.tensor = 4});
    for (const Lists& lists : {forward_lists, backward_lists}) {
      const std::vector<Exchange> found = exchanges_of(rank, 1, lists);
      CHECK(found.size() == 2);
      CHECK(count_of(found, CollectiveOp::all_reduce) == 2);
      CHECK(elements_of(found, CollectiveOp::all_reduce) == 2 * 128 * 256);
    }
  }
}

// A ring's all-reduce is a reduce-scatter and an all-gather of the same size. Backward gathers what columns
// read once more, for their weights.
TEST_CASE("sequence parallelism moves what tensor parallelism moves, and gathers columns' inputs again") {
  for (const std::string_view text : {gpt, llama}) {
    constexpr std::int64_t stream = 128 * 256;
    const ParallelModel rank = parallel_model(model_from(text), {.tensor = 4, .sequence_parallel = true});
    const std::vector<Exchange> forward = exchanges_of(rank, 1, forward_lists);
    CHECK(elements_of(forward, CollectiveOp::all_gather) == 2 * stream);
    CHECK(elements_of(forward, CollectiveOp::reduce_scatter) == 2 * stream);
    CHECK(forward.size() == 4);
    const std::vector<Exchange> backward = exchanges_of(rank, 1, backward_lists);
    CHECK(elements_of(backward, CollectiveOp::all_gather) == 4 * stream);
    CHECK(elements_of(backward, CollectiveOp::reduce_scatter) == 2 * stream);
    CHECK(backward.size() == 6);
    const ParallelModel keeping = parallel_model(
        model_from(text), {.tensor = 4, .sequence_parallel = true, .keeps_gathered_inputs = true});
    CHECK(elements_of(exchanges_of(keeping, 1, backward_lists), CollectiveOp::all_gather) == 2 * stream);
  }
}

// The last of the group is the first in backward: its product by data runs while the input comes again, its
// product by weights after. The first of the group is the last: then the input's gradient is whole.
TEST_CASE("a group's input comes again before its first backward and leaves after its last") {
  const ParallelModel rank = parallel_model(model_from(llama), {.tensor = 4, .sequence_parallel = true});
  const auto at = [&](const std::string& name) {
    const auto found = std::ranges::find(rank.model.layers, name, &Layer::name);
    return rank.exchanges[static_cast<std::size_t>(found - rank.model.layers.begin())];
  };
  const std::string prefix = "model.layers.1.self_attn.";
  CHECK(at(prefix + "q_proj").before_forward.size() == 1);
  CHECK(at(prefix + "q_proj").after_backward_input.size() == 1);
  CHECK(at(prefix + "q_proj").before_backward.empty());
  CHECK(is_empty(at(prefix + "k_proj")));
  CHECK(at(prefix + "v_proj").before_forward.empty());
  REQUIRE(at(prefix + "v_proj").before_backward.size() == 1);
  CHECK(at(prefix + "v_proj").before_backward.front().beside_kernel);
}

// Korthikanti, table 2: s b h (10 + 24 / t + 5 a s / (h t)) bytes, and everything by t with sequence
// parallelism.
TEST_CASE("a rank's kept bytes are Korthikanti's") {
  const Model model = model_from(gpt);
  constexpr std::int64_t s = 128;
  constexpr std::int64_t h = 256;
  constexpr std::int64_t a = 8;
  for (const std::int64_t t : {2, 4, 8}) {
    const ParallelModel rank = parallel_model(model, {.tensor = t});
    CHECK(saved_bytes_of_block(rank.model, 1) == 10 * s * h + (24 * s * h + 5 * a * s * s) / t);
    const ParallelModel divided = parallel_model(model, {.tensor = t, .sequence_parallel = true});
    CHECK(saved_bytes_of_block(divided.model, 1) == (34 * s * h + 5 * a * s * s) / t);
  }
}

// By columns the input is read whole and the output written in parts, by rows the other way round.
TEST_CASE("a rank's products are thinner and move what their sides say") {
  const ParallelModel rank = parallel_model(model_from(gpt), {.tensor = 4});
  const Layer& up = layer_named(rank.model, "transformer.h.1.mlp.c_fc");
  CHECK(std::get<GemmShape>(*up.product) == GemmShape{.m = 128, .n = 256, .k = 256});
  CHECK(up.forward_elements == 128 * (256 + 256));
  CHECK(up.weight_elements == 256 * 256 + 256);
  CHECK(up.backward_elements == 2 * 128 * (256 + 256) + 128 * 256);  // and once for the bias
  const Layer& down = layer_named(rank.model, "transformer.h.1.mlp.c_proj");
  CHECK(std::get<GemmShape>(*down.product) == GemmShape{.m = 128, .n = 256, .k = 256});
  CHECK(down.weight_elements == 256 * 256 + 256);
  CHECK(down.backward_elements == 2 * 128 * (256 + 256) + 128 * 256);
  const Layer& scores = layer_named(rank.model, "transformer.h.1.attention.scores");
  CHECK(std::get<GemmShape>(*scores.product).batch == 2);  // of 8 heads
}

TEST_CASE("a vocabulary is padded to a multiple of 128 words a rank, and only where it is divided") {
  std::string text(gpt);
  text.replace(text.find("2048"), 4, "2000");
  const Model model = model_from(text);
  CHECK(words_of_rank(2000, {}) == 2000);
  CHECK(words_of_rank(2000, {.tensor = 4}) == 512);
  CHECK(words_of_rank(2000, {.tensor = 4, .vocabulary_multiple = 1}) == 500);
  const ParallelModel rank = parallel_model(model, {.tensor = 4});
  CHECK(rank.model.parameters[0].shape == std::vector<std::int64_t>{512, 256});
  CHECK(rank.model.parameters[0].elements == 512 * 256);
  CHECK(std::get<GemmShape>(*layer_named(rank.model, "lm_head").product).n == 512);
  CHECK(layer_named(rank.model, "loss").saved_elements == 128 * 512);
  CHECK(rank.model.output_elements == 128 * 512);
}

// Words: one sum of the stream. Loss: of each token the largest logit, the right word's and the sum of
// powers, in fp32. The projection's input gradient: one sum of the stream.
TEST_CASE("outside of blocks words are summed, and the loss exchanges three numbers a token") {
  const ParallelModel rank = parallel_model(model_from(llama), {.tensor = 4});
  const std::vector<Exchange> forward = exchanges_of(rank, -1, forward_lists);
  REQUIRE(forward.size() == 4);
  CHECK(forward[0].elements == 128 * 256);
  for (std::size_t index = 1; index < 4; ++index) {
    CHECK(forward[index].elements == 128);
    CHECK(forward[index].is_wide);
    CHECK(forward[index].op == CollectiveOp::all_reduce);
  }
  const std::vector<Exchange> backward = exchanges_of(rank, -1, backward_lists);
  REQUIRE(backward.size() == 1);
  CHECK(backward[0].elements == 128 * 256);
  CHECK(backward[0].beside_kernel);
}

// Positions are added to whole sums; without positions the sums are scattered at once.
TEST_CASE("sequence parallelism scatters words' sums where no positions are added") {
  const auto first_of = [](std::string_view text) {
    return parallel_model(model_from(text), {.tensor = 4, .sequence_parallel = true}).exchanges.front();
  };
  CHECK(first_of(llama).after_forward.front().op == CollectiveOp::reduce_scatter);
  CHECK(first_of(gpt).after_forward.front().op == CollectiveOp::all_reduce);
  CHECK(first_of(gpt).before_backward.front().op == CollectiveOp::all_gather);
}

// Megatron gathers what 8 ranks' columns made of 4 heads of keys and of values, and each takes its
// half-shared head.
TEST_CASE("fewer heads of keys than ranks are gathered, and their weights stay divided") {
  const Model model = model_from(llama);
  const ParallelModel rank = parallel_model(model, {.tensor = 8});
  CHECK(parameters_of_all(rank, 8) == parameter_count(model));
  const std::vector<Exchange> forward = exchanges_of(rank, 1, forward_lists);
  CHECK(count_of(forward, CollectiveOp::all_gather) == 2);
  CHECK(elements_of(forward, CollectiveOp::all_gather) == 2 * 128 * 4 * 32);
  const auto attention =
      std::get<AttentionShape>(*layer_named(rank.model, "model.layers.1.attention").product);
  CHECK(attention.heads == 1);
  CHECK(attention.kv_heads == 1);
  CHECK(problems(model, {.tensor = 8}).empty());
}

TEST_CASE("degrees that do not divide are told with the nearest that do") {
  const Model model = model_from(llama);
  CHECK(problems(model, {.tensor = 4, .context = 4, .sequence_parallel = true}).empty());
  REQUIRE(problems(model, {.tensor = 3}).size() == 1);
  CHECK(problems(model, {.tensor = 3}).front() ==
        "tensor_parallel 3 does not divide heads (8), the feed-forward width (704), heads of keys and values "
        "(4), "
        "nor they it; nearest that does: 2 and 4");
  CHECK(problems(model, {.tensor = 2, .context = 24, .sequence_parallel = true}).size() == 2);
  CHECK(problems(model, {.expert = 2}).front().find("has no experts") != std::string::npos);
  CHECK(problems(shipped_model("resnet50"), {.tensor = 2}).front().find("no layer") != std::string::npos);
  CHECK(problems(model_from(gpt), {.context = 2}).front().find("fused") != std::string::npos);
}

}  // namespace lockstep::parallel_model_test
