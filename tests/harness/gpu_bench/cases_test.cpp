// What is timed is what the simulator's models do.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tests/models/instance.h"
#include "validate/harness/gpu_bench/attention_cases.h"
#include "validate/harness/gpu_bench/convolution_cases.h"
#include "validate/harness/gpu_bench/gemm_cases.h"
#include "validate/harness/gpu_bench/interference_cases.h"
#include "validate/harness/gpu_bench/memory_cases.h"

namespace lockstep::harness::cases_test {

using Products = std::set<std::pair<std::int64_t, std::int64_t>>;  // weights, FLOPs a sample

// Of a convolution: 2 operations for each weight and place.
Products products_of(const std::vector<Convolution>& shapes) {
  Products products;
  for (const Convolution& shape : shapes) {
    const std::int64_t weights = shape.outputs * shape.patch();
    products.insert({weights, 2 * weights * shape.output_height() * shape.output_width()});
  }
  return products;
}

// A bias is no factor; ResNet's convolutions have none.
Products convolutions_of(const Model& model) {
  Products products;
  for (const Layer& layer : model.layers)
    if (layer.kind == LayerKind::matmul && !layer.name.starts_with("classifier") && layer.name != "fc")
      products.insert({model.parameters[layer.parameters.front()].elements, layer.forward_flops});
  return products;
}

const TransformerShape& network_named(const std::string& name) {
  const auto& all = benched_transformers();
  return *std::find_if(all.begin(), all.end(), [&](const auto& network) { return network.name == name; });
}

std::int64_t forward_flops_of(const LinearShape& layer) {
  return 2 * layer.count * layer.rows * layer.inputs * layer.outputs;
}

std::int64_t flops_of_block(const Model& model, int block) {
  std::int64_t flops = 0;
  for (const Layer& layer : model.layers)
    if (layer.kind == LayerKind::matmul && layer.block == block)
      flops += layer.forward_flops;
  return flops;
}

template <class Case, class Key>
void check_distinct(const std::vector<Case>& cases, Key key) {
  std::set<Cells> keys;
  for (const Case& one : cases) CHECK(keys.insert(key(one)).second);
}

TEST_CASE("the convolutions of ResNet-50 and VGG-16 are those of the simulator's models, each once") {
  CHECK(products_of(resnet50_convolutions(32)) == convolutions_of(shipped_model("resnet50")));
  CHECK(products_of(vgg16_convolutions(32)) == convolutions_of(shipped_model("vgg16")));
  check_distinct(convolution_cases(), [](const ConvolutionCase& one) { return key_cells(one); });
}

// VGG-16 has 13 convolutions, of which each stage's from the third on repeat the one before: 9 differ. Nine
// by three passes, less the gradient of images.
TEST_CASE("images need no gradient") {
  CHECK(vgg16_convolutions(1).size() == 9);
  const auto cases = convolution_cases();
  const auto of_images = std::count_if(cases.begin(), cases.end(), [](const ConvolutionCase& one) {
    return one.shape.inputs == 3 && one.pass == ConvolutionPass::by_data;
  });
  CHECK(of_images == 0);
}

TEST_CASE("the layers of a benched transformer have the operations of a block of the simulator's model") {
  for (const TransformerShape& network : benched_transformers()) {
    CAPTURE(network.name);
    const Model model = shipped_model(network.name);
    std::int64_t flops = 0;
    for (const LinearShape& layer : block_layers_of(network)) flops += forward_flops_of(layer);
    CHECK(flops == network.tokens / model.tokens_per_sample * flops_of_block(model, 0));
    CHECK(model.transformer->vocabulary == network.vocabulary);
    CHECK(model.tokens_per_sample == network.sequence);
  }
}

// Shoeybi et al. 1909.08053: what spreads a token is cut by outputs, what gathers it again by inputs, so that
// between the two nothing is exchanged.
TEST_CASE("tensor parallelism cuts a column layer's outputs and a row layer's inputs") {
  for (const std::int64_t ways : {2, 4, 8})
    for (const LinearShape& layer : block_layers_of(network_named("llama2_70b"))) {
      const bool gathers = layer.name.ends_with("projection") || layer.name.ends_with("down");
      const LinearShape part = divided(layer, ways);
      CHECK(part.inputs * (gathers ? ways : 1) == layer.inputs);
      CHECK(part.outputs * (gathers ? 1 : ways) == layer.outputs);
      CHECK(part.rows == layer.rows);
    }
}

TEST_CASE("a layer's three products do the same work, and each has its own layout") {
  const LinearShape layer{.name = "any", .rows = 5, .inputs = 7, .outputs = 11};
  const std::vector<GemmCase> products = products_of(layer, "bf16");
  REQUIRE(products.size() == 3);
  for (const GemmCase& gemm : products) CHECK(gemm.m * gemm.n * gemm.k == 5 * 7 * 11);
  // y [5, 11] = x [5, 7] W' with W [11, 7]
  CHECK(key_cells(products[0]) == Cells{"bf16", "1", "5", "11", "7", "NT", "fwd"});
  // dx [5, 7] = dy [5, 11] W
  CHECK(key_cells(products[1]) == Cells{"bf16", "1", "5", "7", "11", "NN", "bwd_data"});
  // dW [11, 7] = dy' x
  CHECK(key_cells(products[2]) == Cells{"bf16", "1", "11", "7", "5", "TN", "bwd_weight"});
}

TEST_CASE("no product, attention, kernel or neighbourhood stands twice in its list") {
  check_distinct(gemm_cases(), [](const GemmCase& one) { return key_cells(one); });
  check_distinct(attention_cases(), [](const AttentionCase& one) { return key_cells(one, "unfused"); });
  check_distinct(memory_cases(), [](const MemoryCase& one) { return key_cells(one); });
  check_distinct(interference_cases(), [](const InterferenceCase& one) { return key_cells(one); });
}

TEST_CASE("every precision is in every list, and whole networks in bf16 come before any other precision") {
  for (const std::string precision : {"bf16", "fp16", "tf32", "fp32"}) {
    const auto gemms = gemm_cases();
    const auto has = [&](const auto& one) { return one.precision == precision; };
    CHECK(std::any_of(gemms.begin(), gemms.end(), has));
    const auto convolutions = convolution_cases();
    CHECK(std::any_of(convolutions.begin(), convolutions.end(), has));
    const auto attentions = attention_cases();
    CHECK(std::any_of(attentions.begin(), attentions.end(), has));
  }
  const auto gemms = gemm_cases();
  const Cells head = key_cells(products_of(head_of(network_named("llama2_70b")), "bf16").front());
  const auto last_head =
      std::find_if(gemms.begin(), gemms.end(), [&](const GemmCase& one) { return key_cells(one) == head; });
  CHECK(std::all_of(gemms.begin(), last_head, [](const GemmCase& one) { return one.precision == "bf16"; }));
  CHECK(last_head != gemms.end());
}

TEST_CASE("kernels bound by memory cover 64 KiB to 1 GiB") {
  std::int64_t least = INT64_MAX;
  std::int64_t most = 0;
  for (const MemoryCase& one : memory_cases()) {
    const std::int64_t bytes = one.rows * one.hidden * (one.precision == "fp32" ? 4 : 2);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  CHECK(least <= 64 << 10);
  CHECK(most == 1 << 30);
}

}  // namespace lockstep::harness::cases_test
