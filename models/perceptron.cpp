// Linear layers one after another: one product of a given size, or a stack of them.
//
// Keys: inputs, widths [outputs of each layer].
//   rows       of a sample that each product multiplies (1)
//   splits     ["column" or "row" for each layer]: how tensor parallelism divides it; left out: columns. What
//              columns leave side by side is gathered, unless the next layer reads it by rows.
//   biases     true; activation  false: one behind each layer but the last

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "models/instance_keys.h"
#include "models/token_network.h"
#include "sim/base/registry.h"
#include "sim/plan/model_family.h"

namespace lockstep {

namespace {

constexpr std::int64_t largest_width = 1 << 20;
constexpr std::int64_t most_rows = 1 << 20;
constexpr std::size_t most_layers = 1000;

struct PerceptronLayer {
  std::int64_t outputs = 1;
  TensorSplit split = TensorSplit::column;
};

std::vector<PerceptronLayer> read_layers(const JsonReader& json) {
  const JsonReader widths = json.required("widths");
  std::vector<PerceptronLayer> layers;
  for (const JsonReader& width : widths.elements())
    layers.push_back({.outputs = count_of(width, largest_width)});
  if (layers.empty() || layers.size() > most_layers) {
    widths.expected("1 to 1000 widths");
    layers.resize(1);
  }
  return layers;
}

void read_splits(const JsonReader& json, std::vector<PerceptronLayer>& layers) {
  const auto splits = json.optional("splits");
  if (!splits)
    return;
  const std::array<std::string, 2> names = {"column", "row"};
  const std::vector<JsonReader> found = splits->elements();
  if (found.size() != layers.size())
    return splits->expected("as many as there are widths");
  for (std::size_t index = 0; index < layers.size(); ++index)
    layers[index].split = found[index].one_of(names) == "row" ? TensorSplit::row : TensorSplit::column;
}

Model build_perceptron(JsonReader& json, const ModelRequest&) {
  const std::int64_t inputs = required_count(json, "inputs", largest_width);
  const std::int64_t rows = count_or(json, "rows", 1, most_rows);
  std::vector<PerceptronLayer> layers = read_layers(json);
  read_splits(json, layers);
  const bool has_biases = flag_or(json, "biases", true);
  const bool has_activation = flag_or(json, "activation", false);

  ModelBuilder builder;
  TokenNetwork network(builder);
  Tokens stream{.activation = builder.add_input(rows * inputs), .count = rows, .width = inputs};
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const std::string name = fmt::format("layers.{}", index);
    builder.add_parameter(name + ".weight", {layers[index].outputs, stream.width});
    if (has_biases)
      builder.add_parameter(name + ".bias", {layers[index].outputs});
    stream = network.linear({.name = name, .outputs = layers[index].outputs, .split = layers[index].split},
                            stream);
    if (has_activation && index + 1 < layers.size())
      stream = network.activation(name + ".activation", stream, TensorSplit::local);
  }
  return builder.finish();
}

const Registration<ModelFamily> perceptron_registration{
    "perceptron", ModelFamily{.build = build_perceptron,
                              .description = "linear layers one after another, by their widths"}};

}  // namespace

}  // namespace lockstep
