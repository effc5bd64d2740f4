#include "validate/harness/gpu_bench/gemm_cases.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace lockstep::harness {
namespace {

const std::vector<std::string> all_precisions = {"bf16", "tf32", "fp16", "fp32"};

// The classifiers of image networks, which see one row an image.
std::vector<LinearShape> classifier_layers() {
  std::vector<LinearShape> layers;
  for (const std::int64_t batch : {256, 32}) {
    layers.push_back({.name = "resnet50 fc", .rows = batch, .inputs = 2048, .outputs = 1000});
    layers.push_back({.name = "vgg16 classifier.0", .rows = batch, .inputs = 25088, .outputs = 4096});
    layers.push_back({.name = "vgg16 classifier.3", .rows = batch, .inputs = 4096, .outputs = 4096});
    layers.push_back({.name = "vgg16 classifier.6", .rows = batch, .inputs = 4096, .outputs = 1000});
  }
  return layers;
}

// Square ones: what data sheets and other laboratories quote.
std::vector<LinearShape> square_layers() {
  std::vector<LinearShape> layers;
  for (std::int64_t size = 8192; size >= 256; size /= 2)
    layers.push_back({.name = "square", .rows = size, .inputs = size, .outputs = size});
  return layers;
}

class CaseList {
 public:
  void add(const std::vector<GemmCase>& cases) {
    for (const GemmCase& gemm : cases)
      if (keys_.insert(key_cells(gemm)).second)
        cases_.push_back(gemm);
  }
  void add(const std::vector<LinearShape>& layers, const std::string& precision, std::int64_t ways = 1) {
    for (const LinearShape& layer : layers) add(products_of(divided(layer, ways), precision));
  }
  std::vector<GemmCase> take() { return std::move(cases_); }

 private:
  std::set<Cells> keys_;
  std::vector<GemmCase> cases_;
};

// Scores and weighted values of all heads at once, and the four products of their backward.
std::vector<GemmCase> attention_products(const TransformerShape& network, const std::string& precision) {
  const std::int64_t batch = network.tokens / network.sequence * network.heads;
  const std::int64_t sequence = network.sequence;
  const std::int64_t width = network.hidden / network.heads;
  const GemmCase square{.precision = precision,
                        .batch = batch,
                        .m = sequence,
                        .n = sequence,
                        .k = width,
                        .layout = "NT",
                        .direction = "fwd"};
  const GemmCase heads{.precision = precision,
                       .batch = batch,
                       .m = sequence,
                       .n = width,
                       .k = sequence,
                       .layout = "NN",
                       .direction = "fwd"};
  GemmCase square_gradient = square;
  square_gradient.direction = "bwd_data";
  GemmCase heads_gradient = heads;
  heads_gradient.direction = "bwd_data";
  GemmCase transposed_gradient = heads_gradient;
  transposed_gradient.layout = "TN";
  return {square, heads, square_gradient, heads_gradient, transposed_gradient};
}

std::vector<LinearShape> layers_of(const TransformerShape& network) {
  std::vector<LinearShape> layers = block_layers_of(network);
  layers.push_back(head_of(network));
  return layers;
}

}  // namespace

// name, tokens, sequence, hidden, heads, kv_heads, ffn, vocabulary, is_gated, is_joined
const std::vector<TransformerShape>& benched_transformers() {
  static const std::vector<TransformerShape> networks = {
      {"gpt2", 8192, 1024, 768, 12, 12, 3072, 50257, false, true},
      {"bert_large", 8192, 512, 1024, 16, 16, 4096, 30522, false, false},
      {"llama2_7b", 4096, 4096, 4096, 32, 32, 11008, 32000, true, false},
      {"llama3_8b", 8192, 8192, 4096, 32, 8, 14336, 128256, true, false},
      {"gpt2_xl", 4096, 1024, 1600, 25, 25, 6400, 50257, false, true},
      {"bert_base", 8192, 512, 768, 12, 12, 3072, 30522, false, false},
      {"llama2_13b", 4096, 4096, 5120, 40, 40, 13824, 32000, true, false},
      {"llama2_70b", 4096, 4096, 8192, 64, 8, 28672, 32000, true, false}};
  return networks;
}

std::vector<LinearShape> block_layers_of(const TransformerShape& network) {
  const std::int64_t width = network.hidden / network.heads * network.kv_heads;
  std::vector<LinearShape> layers;
  const auto add = [&](const char* name, std::int64_t inputs, std::int64_t outputs, Split split,
                       std::int64_t count) {
    layers.push_back({.name = network.name + " " + name,
                      .rows = network.tokens,
                      .inputs = inputs,
                      .outputs = outputs,
                      .split = split,
                      .count = count});
  };
  if (network.is_joined) {
    add("query_key_value", network.hidden, network.hidden + 2 * width, Split::column, 1);
  } else {
    add("query", network.hidden, network.hidden, Split::column, 1);
    add("key and value", network.hidden, width, Split::column, 2);
  }
  add("projection", network.hidden, network.hidden, Split::row, 1);
  add("up", network.hidden, network.ffn, Split::column, network.is_gated ? 2 : 1);
  add("down", network.ffn, network.hidden, Split::row, 1);
  return layers;
}

LinearShape head_of(const TransformerShape& network) {
  return {.name = network.name + " head",
          .rows = network.tokens,
          .inputs = network.hidden,
          .outputs = network.vocabulary};
}

LinearShape divided(LinearShape layer, std::int64_t ways) {
  std::int64_t& side = layer.split == Split::column ? layer.outputs : layer.inputs;
  if (side % ways == 0)
    side /= ways;
  return layer;
}

std::vector<GemmCase> products_of(const LinearShape& layer, const std::string& precision) {
  return {{.precision = precision,
           .m = layer.rows,
           .n = layer.outputs,
           .k = layer.inputs,
           .layout = "NT",
           .direction = "fwd"},
          {.precision = precision,
           .m = layer.rows,
           .n = layer.inputs,
           .k = layer.outputs,
           .layout = "NN",
           .direction = "bwd_data"},
          {.precision = precision,
           .m = layer.outputs,
           .n = layer.inputs,
           .k = layer.rows,
           .layout = "TN",
           .direction = "bwd_weight"}};
}

std::vector<GemmCase> gemm_cases() {
  CaseList list;
  for (const std::string& precision : all_precisions) {
    list.add(square_layers(), precision);
    for (const TransformerShape& network : benched_transformers()) list.add(layers_of(network), precision);
    for (const TransformerShape& network : benched_transformers())
      list.add(attention_products(network, precision));
    list.add(classifier_layers(), precision);
  }
  for (const std::string precision : {"bf16", "fp16"})
    for (const std::int64_t ways : {8, 4, 2})
      for (const TransformerShape& network : benched_transformers())
        list.add(layers_of(network), precision, ways);
  return list.take();
}

std::vector<GemmCase> sustained_cases() {
  std::vector<GemmCase> cases;
  for (const std::string& precision : all_precisions)
    for (const std::int64_t size : {8192, 4096})
      cases.push_back(
          {.precision = precision, .m = size, .n = size, .k = size, .layout = "NT", .direction = "fwd"});
  return cases;
}

TableLayout gemm_layout() {
  return {.columns = {"gpu", "precision", "batch", "m", "n", "k", "layout", "direction", "time_us", "source",
                      "p10", "p90", "clock_mhz", "cold"},
          .key = {"precision", "batch", "m", "n", "k", "layout", "direction"}};
}

Cells key_cells(const GemmCase& gemm) {
  return {gemm.precision,         fmt::to_string(gemm.batch), fmt::to_string(gemm.m),
          fmt::to_string(gemm.n), fmt::to_string(gemm.k),     gemm.layout,
          gemm.direction};
}

}  // namespace lockstep::harness
