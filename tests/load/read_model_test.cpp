#include "sim/load/read_model.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"
#include "tests/support/ready_order.h"

namespace lockstep::read_model_test {

using testing::load_lab;
using testing::load_resnet;
using testing::problems_of_lab;
using testing::problems_of_resnet;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const measured = R"({"measured": {
  "forward": "100 ms", "backward": "250 ms", "optimizer": "2 ms",
  "parameters": [{"name": "w", "elements": 1000, "dtype": "fp32", "gradient_ready": "250 ms"},
                 {"name": "b", "elements": 10, "dtype": "fp16", "gradient_ready": "12.3 ms"}]}})";

TEST_CASE("gradients of stated layers become ready in the reverse of the written order") {
  const Model model = load_lab().model.model;
  REQUIRE(model.parameters.size() == 3);
  CHECK(model.parameters[0].name == "a.0");
  CHECK(model.parameters[2].elements == 500);
  CHECK(testing::gradient_ready_order(model) == std::vector<std::uint32_t>{2, 1, 0});
}

TEST_CASE("stated times stand beside their layers") {
  const ModelUse use = load_lab().model;
  REQUIRE(use.stated.size() == 2);
  CHECK(use.stated[0]->forward == Duration::microseconds(8'300));
  CHECK(use.stated[1]->backward == Duration::milliseconds(2));
}

TEST_CASE("a layer with work is priced: per sample, backward twice forward unless stated") {
  const Scenario scenario = load_lab(
      {{"model.batch_per_gpu", "4"},
       {"model.layers.0", R"({"parameters": [6], "forward_flops": "10 FLOP", "forward_bytes": "9 B"})"},
       {"model.layers.1",
        R"({"forward_flops": "10 FLOP", "forward_bytes": "8 B", "backward_flops": "7 FLOP"})"}});
  const Layer& first = scenario.model.model.layers[0];
  CHECK(first.forward_flops == 10);
  CHECK(first.backward_weight_flops == 10);
  CHECK(first.backward_input_flops == 10);
  CHECK(first.forward_elements == 3);  // 9 bytes in elements of 4, rounded up
  CHECK(first.weight_elements == 6);
  // Without parameters there is no gradient of weights: all of backward is for the input.
  CHECK(scenario.model.model.layers[1].backward_weight_flops == 0);
  CHECK(scenario.model.model.layers[1].backward_input_flops == 7);
  CHECK(scenario.model.stated.empty());
}

TEST_CASE("a layer that says both or neither of time and work is an error") {
  for (const char* layer : {R"({"parameters": [1]})", R"({"forward_time": "1 ms", "backward_time": "1 ms",
                             "forward_flops": "1 FLOP"})"}) {
    CHECK(contains(problems_of_lab({{"model.layers.0", layer}}), "/model/layers/0: expected either"));
  }
  CHECK(contains(problems_of_lab({{"model.layers.0", R"({"forward_time": "1 ms"})"}}), "\"backward_time\""));
  CHECK(contains(problems_of_lab({{"model.layers", "[]"}}), "/model/layers: "));
}

TEST_CASE("a measured model keeps registration order, sizes and ready times") {
  const ModelUse use = load_lab({{"model", measured}}).model;
  REQUIRE(use.measured.has_value());
  CHECK(use.measured->backward == Duration::milliseconds(250));
  REQUIRE(use.measured->parameters.size() == 2);
  CHECK(use.measured->parameters[0].gradient_ready == Duration::milliseconds(250));
  CHECK(use.measured->parameters[1].element_bytes == 2);
  CHECK(use.model.layers.empty());
  CHECK(parameter_count(use.model) == 1000 + 10);
  CHECK(use.batch_per_gpu == 1);
}

TEST_CASE("a gradient that is ready after backward has ended is an error") {
  const std::string found =
      problems_of_lab({{"model", measured}, {"model.measured.parameters.1.gradient_ready", "251 ms"}});
  CHECK(contains(found, "/model/measured/parameters/1/gradient_ready: "));
  CHECK(contains(found, "within backward"));
}

TEST_CASE("a model says exactly one of name, family, layers and measured") {
  CHECK(contains(problems_of_lab({{"model", "{}"}}), "\"name\""));
  CHECK(contains(problems_of_lab({{"model.measured", R"({"forward": "1 ms", "backward": "1 ms",
      "parameters": []})"}}),
                 "exactly one of name, family, layers, measured"));
}

TEST_CASE("a family is built from its sizes and takes the scenario's sequence length") {
  const Scenario scenario = load_resnet({{"model", R"({"family": "transformer", "style": "gpt2", "layers": 2,
      "hidden": 64, "heads": 4, "kv_heads": 4, "ffn": 256, "vocabulary": 1000, "sequence_length": 128,
      "positions": 128, "batch_per_gpu": 8})"},
                                         {"compute", "null"}});
  CHECK(scenario.model.model.tokens_per_sample == 128);
  CHECK(scenario.model.batch_per_gpu == 8);
  CHECK(load_resnet({{"model.name", "gpt2"}, {"model.sequence_length", "512"}, {"compute", "null"}})
            .model.model.tokens_per_sample == 512);
  CHECK(problems_of_resnet(
            {{"model.name", "gpt2"}, {"model.learned_positions", "false"}, {"compute", "null"}}) == "");
}

TEST_CASE("a sequence length for a model without sequences is an error") {
  CHECK(contains(problems_of_resnet({{"model.sequence_length", "128"}}), "/model/sequence_length: "));
}

TEST_CASE("a model file may hold layers") {
  const testing::Folder folder;
  const std::string file = folder.write("tiny.json", R"({"name": "tiny", "source": "ours", "layers": [
      {"parameters": [5], "forward_time": "1 ms", "backward_time": "2 ms"}]})");
  const ModelUse use = load_lab({{"model", R"({"name": ")" + file + "\"}"}}).model;
  CHECK(use.name == "tiny");
  CHECK(parameter_count(use.model) == 5);
}

TEST_CASE("a precision that the GPU has no peak for is an error with those it has") {
  const std::string found =
      problems_of_resnet({{"cluster.machine", "dgx1_v100"}, {"model.precision", "fp8"}});
  CHECK(contains(found, "/model/precision: found \"fp8\""));
  CHECK(contains(found, "amp_fp16"));
}

}  // namespace lockstep::read_model_test
