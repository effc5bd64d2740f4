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

constexpr std::string_view mixture =
    R"({"family": "transformer", "style": "llama", "layers": 3, "hidden": 256,
    "heads": 8, "kv_heads": 4, "ffn": 704, "vocabulary": 2048, "sequence_length": 128, "experts": 16,
    "experts_per_token": 4, "expert_ffn": 96, "shared_experts": 1, "dense_layers": 1})";
constexpr std::string_view latent = R"({"family": "transformer", "style": "llama", "layers": 3, "hidden": 256,
    "heads": 8, "head_width": 48, "vocabulary": 2048, "sequence_length": 128,
    "latent_attention": {"query_rank": 96, "kv_rank": 64, "rope_width": 16, "value_width": 32}})";

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

// With user buffers nothing of a block waits but the last of a row's pieces: of four ranks a quarter of its
// sum. Without any overlap nothing runs beside a product; how much is moved does not change.
TEST_CASE("overlap moves collectives beside products and keeps what they carry") {
  const Model model = model_from(llama);
  const auto with = [&](TensorOverlap overlap) {
    return parallel_model(model, {.tensor = 4, .sequence_parallel = true, .tensor_overlap = overlap});
  };
  const auto waiting = [](const std::vector<Exchange>& exchanges) {
    std::int64_t elements = 0;
    for (const Exchange& exchange : exchanges) elements += exchange.beside_kernel ? 0 : exchange.elements;
    return elements;
  };
  constexpr std::int64_t stream = 128 * 256;
  for (const TensorOverlap overlap : {TensorOverlap::none, TensorOverlap::backward, TensorOverlap::pieces}) {
    const ParallelModel rank = with(overlap);
    const std::vector<Exchange> forward = exchanges_of(rank, 1, forward_lists);
    const std::vector<Exchange> backward = exchanges_of(rank, 1, backward_lists);
    CHECK(elements_of(forward, CollectiveOp::all_gather) == 2 * stream);
    CHECK(elements_of(forward, CollectiveOp::reduce_scatter) == 2 * stream);
    const bool is_none = overlap == TensorOverlap::none;
    const bool is_in_pieces = overlap == TensorOverlap::pieces;
    CHECK(waiting(forward) == (is_in_pieces ? 2 * stream / 4 : 4 * stream));
    CHECK(waiting(backward) == (is_none ? 6 * stream : is_in_pieces ? 0 : 2 * stream));
    CHECK_FALSE(exchanges_of(rank, -1, forward_lists).front().beside_kernel);
  }
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
  CHECK(up.backward_pass_elements == 128 * 256);
  const Layer& down = layer_named(rank.model, "transformer.h.1.mlp.c_proj");
  CHECK(std::get<GemmShape>(*down.product) == GemmShape{.m = 128, .n = 256, .k = 256});
  CHECK(down.weight_elements == 256 * 256 + 256);
  CHECK(down.backward_elements == 2 * 128 * (256 + 256) + 128 * 256);
  const Layer& scores = layer_named(rank.model, "transformer.h.1.attention.scores");
  CHECK(std::get<GemmShape>(*scores.product).batch == 2);  // of 8 heads
}

TEST_CASE("a vocabulary is padded to a multiple of so many words a rank, divided or whole") {
  std::string text(gpt);
  text.replace(text.find("2048"), 4, "2000");
  const Model model = model_from(text);
  CHECK(words_of_rank(2000, {}) == 2000);
  CHECK(words_of_rank(2000, {.tensor = 4}) == 500);
  CHECK(words_of_rank(2000, {.tensor = 4, .vocabulary_multiple = 128}) == 512);
  CHECK(words_of_rank(2000, {.vocabulary_multiple = 128}) == 2048);
  CHECK_FALSE(pads_words(model, {.tensor = 4, .vocabulary_multiple = 100}));
  CHECK(pads_words(model, {.vocabulary_multiple = 128}));
  for (const std::int64_t ranks : {1, 4}) {
    CAPTURE(ranks);
    const std::int64_t words = 2048 / ranks;
    const ParallelModel rank = parallel_model(model, {.tensor = ranks, .vocabulary_multiple = 128});
    CHECK(rank.model.parameters[0].shape == std::vector<std::int64_t>{words, 256});
    CHECK(rank.model.parameters[0].elements == words * 256);
    CHECK(std::get<GemmShape>(*layer_named(rank.model, "lm_head").product).n == words);
    CHECK(layer_named(rank.model, "loss").saved_elements == 128 * words);
    CHECK(rank.model.output_elements == 128 * words);
  }
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

// The patches of a vision transformer, which every rank makes.
std::int64_t flops_of_patches(const Model& model) {
  std::int64_t flops = 0;
  for (const Layer& layer : model.layers)
    if (layer.product && std::holds_alternative<ConvolutionShape>(*layer.product))
      flops += layer.forward_flops + layer.backward_input_flops + layer.backward_weight_flops;
  return flops;
}

// Padded words and what is replicated are done more than once; nothing is done less than once.
TEST_CASE("ranks of every shipped transformer do and hold all of it, or are told why they cannot") {
  std::size_t divided = 0;
  for (const std::string& name : shipped_model_names()) {
    const Model model = shipped_model(name);
    for (const ParallelDegrees& degrees :
         {ParallelDegrees{.tensor = 4},
          ParallelDegrees{.tensor = 4, .context = 2, .sequence_parallel = true}}) {
      if (!problems(model, degrees).empty())
        continue;
      CAPTURE(name);
      ++divided;
      const ParallelModel rank = parallel_model(model, degrees);
      CHECK(rank.exchanges.size() == rank.model.layers.size());
      const std::int64_t flops = degrees.tensor * degrees.context * flops_of(rank.model);
      CHECK(flops >= flops_of(model));
      const std::int64_t again = (degrees.tensor * degrees.context - 1) * flops_of_patches(model);
      CHECK(100 * (flops - again) < 101 * flops_of(model));
      const std::int64_t parameters = parameters_of_all(rank, 4);
      CHECK(parameters >= parameter_count(model));
      CHECK(100 * parameters < 103 * parameter_count(model));
    }
  }
  CHECK(divided >= 30);
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

// Liu et al., and Transformer Engine: of S / c tokens' keys and values (2 x 4 heads of 32), c - 1 sends
// forward; and backward, of them and of their gradients, c - 1 each. No other layer exchanges anything.
TEST_CASE("a ring of context-parallel ranks sends keys and values on, and their gradients") {
  const Model model = model_from(llama);
  for (const std::int64_t c : {2, 4, 8}) {
    const ParallelModel rank = parallel_model(model, {.context = c});
    const std::int64_t block = 128 / c * 2 * 4 * 32;
    const std::vector<Exchange> forward = exchanges_of(rank, 1, forward_lists);
    CHECK(forward.size() == static_cast<std::size_t>(c - 1));
    CHECK(elements_of(forward, CollectiveOp::send_recv) == (c - 1) * block);
    CHECK(elements_of(exchanges_of(rank, 1, backward_lists), CollectiveOp::send_recv) == 2 * (c - 1) * block);
    for (const Exchange& exchange : forward) {
      CHECK(exchange.beside_kernel);
      CHECK(exchange.axis == ParallelAxis::context);
    }
    CHECK(c * flops_of(rank.model) == flops_of(model));
    CHECK(parameter_count(rank.model) == parameter_count(model));
  }
}

// A causal rank's own block is masked by half; of each other it needs half, whichever half that is.
TEST_CASE("every step of a ring does half of a square, causal or not masked at all") {
  const ParallelModel rank = parallel_model(model_from(llama), {.context = 4});
  const auto shape_of = [&](const char* name) {
    return std::get<AttentionShape>(*layer_named(rank.model, name).product);
  };
  const AttentionShape own = shape_of("model.layers.1.attention.ring_0");
  CHECK(own.sequence == 32);
  CHECK(own.is_causal);
  CHECK(own.keys == 0);
  const AttentionShape other = shape_of("model.layers.1.attention.ring_3");
  CHECK(other.sequence == 32);
  CHECK(other.keys == 16);
  CHECK_FALSE(other.is_causal);
  const Layer& last = layer_named(rank.model, "model.layers.1.attention.ring_3");
  CHECK(last.saved_elements == 0);
}

// Grattafiori et al., section 3.3.2: all keys and values before, their gradients after; gathered again for
// backward.
TEST_CASE("gathering context parallelism moves all keys and values twice and their gradients once") {
  const Model model = model_from(llama);
  const ParallelModel rank = parallel_model(model, {.context = 4, .context_kind = ContextKind::all_gather});
  constexpr std::int64_t keys_values = 128 * 2 * 4 * 32;
  CHECK(elements_of(exchanges_of(rank, 1, forward_lists), CollectiveOp::all_gather) == keys_values);
  const std::vector<Exchange> backward = exchanges_of(rank, 1, backward_lists);
  CHECK(elements_of(backward, CollectiveOp::all_gather) == keys_values);
  CHECK(elements_of(backward, CollectiveOp::reduce_scatter) == keys_values);
  const auto shape = std::get<AttentionShape>(*layer_named(rank.model, "model.layers.1.attention").product);
  CHECK(shape.sequence == 32);
  CHECK(shape.keys == 128);
  CHECK(4 * flops_of(rank.model) == flops_of(model));
}

// What stands between the blocks of PyTorch's ring, of one transformer layer.
std::vector<Layer> merges_of(const ParallelModel& rank) {
  std::vector<Layer> merges;
  for (const Layer& layer : rank.model.layers)
    if (layer.block == 1 && layer.name.find(".merge_") != std::string::npos)
      merges.push_back(layer);
  return merges;
}

// 128 / c tokens' keys and values of all 8 heads of 32, which the 4 of the model are repeated for. One gather each way,
// or c - 1 messages; and backward the gradients, in fp32, c times on: the last brings a rank's own home.
TEST_CASE("PyTorch's ring gathers keys and values or sends them on, and sends wide gradients round") {
  const Model model = model_from(llama);
  for (const std::int64_t c : {2, 4, 8})
    for (const ContextKind kind : {ContextKind::rotate_all_gather, ContextKind::rotate_all_to_all}) {
      const ParallelModel rank = parallel_model(model, {.context = c, .context_kind = kind});
      const std::int64_t block = 128 / c * 2 * 8 * 32;
      const bool is_gathered = kind == ContextKind::rotate_all_gather;
      const std::vector<Exchange> forward = exchanges_of(rank, 1, forward_lists);
      const std::vector<Exchange> backward = exchanges_of(rank, 1, backward_lists);
      CHECK(elements_of(forward, CollectiveOp::all_gather) == (is_gathered ? c * block : 0));
      CHECK(elements_of(backward, CollectiveOp::all_gather) == (is_gathered ? c * block : 0));
      CHECK(elements_of(forward, CollectiveOp::send_recv) == (is_gathered ? 0 : (c - 1) * block));
      CHECK(elements_of(backward, CollectiveOp::send_recv) == (is_gathered ? c : 2 * c - 1) * block);
      CHECK(std::ranges::count(backward, true, &Exchange::is_wide) == c);
      CHECK(c * flops_of(rank.model) == flops_of(model));
      CHECK(parameter_count(rank.model) == parameter_count(model));
    }
}

TEST_CASE(
    "Compiled, PyTorch's ring awaits every message where it is issued; else beside a block's attention") {
  for (const bool is_compiled : {false, true}) {
    const ParallelModel rank = parallel_model(
        model_from(llama),
        {.context = 4, .context_kind = ContextKind::rotate_all_gather, .is_compiled = is_compiled});
    std::vector<Exchange> all = exchanges_of(rank, 1, forward_lists);
    std::ranges::copy(exchanges_of(rank, 1, backward_lists), std::back_inserter(all));
    // Of a gather each way and four gradients the last has nothing to run beside.
    CHECK(std::ranges::count(all, true, &Exchange::beside_kernel) == (is_compiled ? 0 : 5));
  }
}

// _SDPAMerger and what stands around it, operator by operator, of E outputs and K keys and values of a rank. Forward: K
// made contiguous; K copied for each block but the last; each of c outputs cast to fp32, the sum back; for each block
// but the first two differences (2 read, 1 written) and a product with what is broadcast (1 and 1), all in fp32.
TEST_CASE("Outputs of c blocks are merged by c - 1 times two differences and a product in fp32") {
  for (const std::int64_t c : {2, 4, 8}) {
    PrimitiveWork sum;
    const ParallelModel rank =
        parallel_model(model_from(llama), {.context = c, .context_kind = ContextKind::rotate_all_gather});
    for (const Layer& layer : merges_of(rank)) {
      sum.elements += layer.composition->forward.elements;
      sum.wide_elements += layer.composition->forward.wide_elements;
      sum.cast_elements += layer.composition->forward.cast_elements;
    }
    const std::int64_t outputs = 128 / c * 8 * 32;
    const std::int64_t keys_values = 2 * outputs;
    CHECK(sum.elements == 2 * keys_values + (c - 1) * 2 * keys_values);
    CHECK(sum.wide_elements == (c - 1) * (3 + 2 + 3) * outputs);
    CHECK(sum.cast_elements == (c + 1) * outputs);
  }
}

// Sums of the gradients begin at zero in fp32. Of the first block K is added whole, of each other half of it, after
// which both halves are joined; each is copied to be sent; Q queries' are added each time; both are cast at the end.
TEST_CASE("Gradients of c blocks are added up in fp32, joined and copied to be sent") {
  for (const std::int64_t c : {2, 4, 8}) {
    PrimitiveWork sum;
    const ParallelModel rank =
        parallel_model(model_from(llama), {.context = c, .context_kind = ContextKind::rotate_all_gather});
    for (const Layer& layer : merges_of(rank)) {
      sum.elements += layer.composition->backward.elements;
      sum.wide_elements += layer.composition->backward.wide_elements;
      sum.cast_elements += layer.composition->backward.cast_elements;
    }
    const std::int64_t queries = 128 / c * 8 * 32;
    const std::int64_t keys_values = 2 * queries;
    const std::int64_t copies = 2 * keys_values + (c - 1) * 2 * keys_values;
    CHECK(sum.elements == copies + keys_values + (c - 1) * keys_values / 2 + c * queries);
    CHECK(sum.wide_elements == queries + keys_values + 2 * keys_values + (c - 1) * (1 + 2) * keys_values +
                                   c * 2 * keys_values + c * 2 * queries);
    CHECK(sum.cast_elements == queries + keys_values);
  }
}

// Compiled: keys and values are read once and written twice; each block's output is read once, and the sum written and
// read in fp32 (two elements) between the first merge and the last.
TEST_CASE("A compiler merges each block in one pass over its output and the sum") {
  for (const std::int64_t c : {2, 4, 8}) {
    std::int64_t elements = 0;
    const ParallelModel rank =
        parallel_model(model_from(llama), {.context = c, .context_kind = ContextKind::rotate_all_gather});
    for (const Layer& layer : merges_of(rank)) elements += layer.forward_elements;
    const std::int64_t outputs = 128 / c * 8 * 32;
    CHECK(elements == 3 * 2 * outputs + (c + 1) * outputs + (c - 2) * 2 * 2 * outputs);
  }
}

// Jacobs et al., section 3.2: queries, keys, values and outputs, each once forward and once backward: of
// multi-head attention 4 N h / P a rank each way.
TEST_CASE("Ulysses exchanges four times a rank's tokens forward and four times backward") {
  std::string text(llama);
  text.replace(text.find(R"("kv_heads": 4)"), 13, R"("kv_heads": 8)");
  const Model model = model_from(text);
  const ParallelModel rank = parallel_model(model, {.context = 4, .context_kind = ContextKind::ulysses});
  for (const Lists& lists : {forward_lists, backward_lists})
    CHECK(elements_of(exchanges_of(rank, 1, lists), CollectiveOp::all_to_all) == 4 * 128 * 256 / 4);
  const auto shape = std::get<AttentionShape>(*layer_named(rank.model, "model.layers.1.attention").product);
  CHECK(shape.sequence == 128);
  CHECK(shape.heads == 2);
  CHECK(4 * flops_of(rank.model) == flops_of(model));
  CHECK(problems(model, {.context = 8, .context_kind = ContextKind::ulysses}).empty());
  CHECK(problems(model, {.context = 16, .context_kind = ContextKind::ulysses}).size() == 1);
}

// Each rank sends its tokens' copies out and gets them back: S top_k h forward, twice, and backward as often.
TEST_CASE("expert parallelism dispatches and combines every token's copies, forward and backward") {
  const Model model = model_from(mixture);
  const ParallelModel rank = parallel_model(model, {.expert = 4});
  constexpr std::int64_t copies = 128 * 4 * 256;
  for (const Lists& lists : {forward_lists, backward_lists}) {
    const std::vector<Exchange> found = exchanges_of(rank, 1, lists);
    CHECK(count_of(found, CollectiveOp::all_to_all) == 2);
    CHECK(elements_of(found, CollectiveOp::all_to_all) == 2 * copies);
    for (const Exchange& exchange : found) CHECK(exchange.axis == ParallelAxis::expert);
    CHECK(exchanges_of(rank, 0, lists).empty());  // the first layer is dense
  }
}

TEST_CASE("a library that sends a token to a node once is told of how many experts it has how many") {
  const Model model = model_from(mixture);
  const ParallelModel plain = parallel_model(model, {.expert = 4});
  for (const TokenDispatch kind : {TokenDispatch::deepep, TokenDispatch::hybridep}) {
    const ParallelModel rank = parallel_model(model, {.expert = 4, .token_dispatch = kind});
    for (const Lists& lists : {forward_lists, backward_lists}) {
      const std::vector<Exchange> found = exchanges_of(rank, 1, lists);
      CHECK(elements_of(found, CollectiveOp::all_to_all) ==
            elements_of(exchanges_of(plain, 1, lists), CollectiveOp::all_to_all));
      for (const Exchange& exchange : found)
        if (exchange.op == CollectiveOp::all_to_all)
          CHECK(exchange.relayed == TokenRouting{.experts = 16, .per_token = 4});
    }
  }
}

// S h of each of four ranks, once.
TEST_CASE("where all tokens go to all ranks each is gathered once, and what comes back is a sum") {
  const ParallelModel rank =
      parallel_model(model_from(mixture), {.expert = 4, .token_dispatch = TokenDispatch::allgather});
  constexpr std::int64_t all_tokens = 4 * 128 * 256;
  for (const bool is_forward : {true, false}) {
    const std::vector<Exchange> found = exchanges_of(rank, 1, is_forward ? forward_lists : backward_lists);
    CHECK(count_of(found, CollectiveOp::all_to_all) == 0);
    CHECK(elements_of(found, CollectiveOp::reduce_scatter) == all_tokens);
    const std::int64_t counts = is_forward ? 4 * 16 : 0;
    CHECK(elements_of(found, CollectiveOp::all_gather) == all_tokens + counts);
  }
}

TEST_CASE("ranks tell each other how many tokens come, unless every expert computes its capacity") {
  const ParallelModel rank = parallel_model(model_from(mixture), {.expert = 4});
  CHECK(elements_of(exchanges_of(rank, 1, forward_lists), CollectiveOp::all_gather) == 4 * 16);
  std::string text(mixture);
  text.replace(text.rfind('}'), 1, R"(, "capacity_factor": 1})");
  const ParallelModel padded = parallel_model(model_from(text), {.expert = 4});
  CHECK(count_of(exchanges_of(padded, 1, forward_lists), CollectiveOp::all_gather) == 0);
}

// A quarter of the experts, each with the tokens of four ranks.
TEST_CASE("a rank of an expert-parallel group holds some experts and computes as much as before") {
  const Model model = model_from(mixture);
  const ParallelModel rank = parallel_model(model, {.expert = 4});
  CHECK(flops_of(rank.model) == flops_of(model));
  const std::string name = "model.layers.1.experts.mlp.up_proj";
  CHECK(std::get<GemmShape>(*layer_named(rank.model, name).product) ==
        GemmShape{.batch = 4, .m = 4 * 128 * 4 / 16, .n = 96, .k = 256});
  std::int64_t experts = 0;
  for (std::size_t index = 0; index < rank.parameters.size(); ++index)
    experts += rank.parameters[index].is_expert ? rank.model.parameters[index].elements : 0;
  constexpr std::int64_t all_experts = 2 * 16 * 3 * 256 * 96;
  CHECK(4 * experts == all_experts);
  CHECK(parameter_count(model) - parameter_count(rank.model) == all_experts - all_experts / 4);
}

TEST_CASE("the busiest rank's experts get and compute as much more as the imbalance says") {
  const Model model = model_from(mixture);
  const ParallelModel even = parallel_model(model, {.expert = 4});
  const ParallelModel busy = parallel_model(model, {.expert = 4, .expert_imbalance = Ratio::percent(125)});
  for (std::size_t layer = 0; layer < even.model.layers.size(); ++layer) {
    const Layer& same = even.model.layers[layer];
    CHECK(4 * busy.model.layers[layer].forward_flops == (same.is_expert() ? 5 : 4) * same.forward_flops);
  }
  CHECK(4 * elements_of(exchanges_of(busy, 1, forward_lists), CollectiveOp::all_to_all) ==
        5 * elements_of(exchanges_of(even, 1, forward_lists), CollectiveOp::all_to_all));
}

// Tokens are divided by sequence parallelism, routed, and gathered over the ranks that share each expert.
TEST_CASE("experts shared by tensor-parallel ranks gather their tokens, whole ones do not") {
  const Model model = model_from(mixture);
  constexpr std::int64_t copies = 128 * 4 * 256;
  for (const std::int64_t shared : {0, 1, 2}) {
    CAPTURE(shared);
    const ParallelModel rank =
        parallel_model(model, {.tensor = 4, .expert = 4, .expert_tensor = shared, .sequence_parallel = true});
    CHECK(4 * flops_of(rank.model) == flops_of(model));
    const auto at = [&](const std::string& name) {
      const auto found = std::ranges::find(rank.model.layers, name, &Layer::name);
      return rank.exchanges[static_cast<std::size_t>(found - rank.model.layers.begin())];
    };
    const std::string gate = "model.layers.1.experts.mlp.gate_proj";
    const std::string down = "model.layers.1.experts.mlp.down_proj";
    REQUIRE(at(gate).before_forward.size() == (shared == 1 ? 2 : 3));  // the first: counts
    CHECK(at(gate).before_forward[1].op == CollectiveOp::all_to_all);
    CHECK(at(gate).before_forward[1].elements == copies / 4);
    CHECK(at(down).after_forward.back().elements == copies / 4);
    const std::int64_t sharers = shared == 0 ? 4 : shared;
    if (sharers > 1) {
      CHECK(at(gate).before_forward.back().op == CollectiveOp::all_gather);
      CHECK(at(gate).before_forward.back().axis ==
            (sharers == 4 ? ParallelAxis::tensor : ParallelAxis::expert_tensor));
      CHECK(at(gate).before_forward.back().elements == copies / 4 * sharers);
      CHECK(at(down).after_forward.front().op == CollectiveOp::reduce_scatter);
    }
    const std::int64_t experts_of_rank = 4 * 3 * 256 * 96 / sharers;
    CHECK(layer_named(rank.model, gate).weight_elements * 3 == experts_of_rank);
  }
  CHECK(problems(model, {.tensor = 4, .expert = 4}).front().find("sequence_parallel") != std::string::npos);
  CHECK(problems(model, {.expert = 3}).front() ==
        "expert_parallel 3 does not divide the 16 experts; nearest that does: 2 and 4");
  CHECK(problems(model, {.expert = 8, .expert_imbalance = Ratio::percent(1000)}).front().find("at most") !=
        std::string::npos);
  CHECK(problems(model, {.tensor = 8, .expert_tensor = 5, .sequence_parallel = true}).front() ==
        "expert_tensor_parallel 5 does not divide an expert's width (96); nearest that does: 4 and 6");
}

// Queries and keys are widened from two narrow vectors of 96 and 64, which all ranks hold: backward sums a
// gradient of each, beside that of the feed-forward part.
TEST_CASE("latent attention's columns are two groups, each with its own input") {
  const Model model = model_from(latent);
  const ParallelModel rank = parallel_model(model, {.tensor = 4});
  CHECK(exchanges_of(rank, 1, forward_lists).size() == 2);
  const std::vector<Exchange> backward = exchanges_of(rank, 1, backward_lists);
  CHECK(backward.size() == 3);
  CHECK(elements_of(backward, CollectiveOp::all_reduce) == 128 * (96 + 64 + 256));
  CHECK(parameters_of_all(rank, 4) == parameter_count(model));
}

// One weight of a head's width for all heads: each rank's gradient is of its heads alone.
TEST_CASE("norms of heads are replicated and their gradients partial") {
  std::string text(llama);
  text.replace(text.rfind('}'), 1, R"(, "query_key_norm": true})");
  const ParallelModel rank = parallel_model(model_from(text), {.tensor = 4});
  std::int64_t partial = 0;
  for (std::size_t index = 0; index < rank.parameters.size(); ++index)
    partial += rank.parameters[index].is_partial ? rank.model.parameters[index].elements : 0;
  CHECK(partial == 3 * 2 * 32);
}

// [1024, 1024] as four [1024, 256], and the parts side by side again. No gradient of the data is summed.
TEST_CASE("a plain product is divided by columns and its output gathered") {
  const Model model = model_from(R"({"family": "perceptron", "inputs": 1024, "widths": [1024, 1024]})");
  REQUIRE(problems(model, {.tensor = 4}).empty());
  const ParallelModel rank = parallel_model(model, {.tensor = 4});
  CHECK(rank.model.parameters[0].shape == std::vector<std::int64_t>{256, 1024});
  for (std::size_t layer = 0; layer < 2; ++layer) {
    CHECK(std::get<GemmShape>(*rank.model.layers[layer].product) == GemmShape{.m = 1, .n = 256, .k = 1024});
    const LayerExchanges& exchanges = rank.exchanges[layer];
    REQUIRE(exchanges.after_forward.size() == 1);
    CHECK(exchanges.after_forward[0].op == CollectiveOp::all_gather);
    CHECK(exchanges.after_forward[0].elements == 1024);
    CHECK(exchanges.after_backward_input.size() == layer);
  }
  CHECK(rank.exchanges[1].after_backward_input[0].op == CollectiveOp::all_reduce);
  CHECK(rank.exchanges[1].after_backward_input[0].elements == 1024);
  CHECK(problems(model, {.tensor = 3}).size() == 2);
}

// What columns leave divided, rows read as it is: only their sums are exchanged.
TEST_CASE("columns before rows exchange nothing in between") {
  const Model model = model_from(R"({"family": "perceptron", "inputs": 64, "widths": [256, 64], "rows": 8,
      "splits": ["column", "row"], "activation": true})");
  const ParallelModel rank = parallel_model(model, {.tensor = 4});
  CHECK(is_empty(rank.exchanges[0]));
  CHECK(is_empty(rank.exchanges[1]));
  REQUIRE(rank.exchanges[2].after_forward.size() == 1);
  CHECK(rank.exchanges[2].after_forward[0].op == CollectiveOp::all_reduce);
  CHECK(rank.exchanges[2].after_forward[0].elements == 8 * 64);
  CHECK(4 * flops_of(rank.model) == flops_of(model));
}

// Each rank reads its part of a whole input; what it hands back is a part too, gathered unless nobody asks.
TEST_CASE("rows of a whole input gather its gradient, but not the data's") {
  const Model model = model_from(R"({"family": "perceptron", "inputs": 64, "widths": [256, 32], "rows": 8,
      "splits": ["row", "row"]})");
  const ParallelModel rank = parallel_model(model, {.tensor = 4});
  CHECK(rank.exchanges[0].after_backward.empty());
  REQUIRE(rank.exchanges[1].after_backward.size() == 1);
  CHECK(rank.exchanges[1].after_backward[0].op == CollectiveOp::all_gather);
  CHECK(rank.exchanges[1].after_backward[0].elements == 8 * 256);
}

}  // namespace lockstep::parallel_model_test
