// Convolutional networks against torchvision: order, buffers, operations.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/models/instance.h"
#include "tests/support/ready_order.h"

namespace lockstep::convnet_test {

double giga_multiply_adds(const Model& model) {
  return static_cast<double>(forward_flops(model)) / 2e9;
}

double mega_multiply_adds(const Model& model, std::string_view layer) {
  return static_cast<double>(layer_named(model, layer).forward_flops) / 2e6;
}

// In MiB of fp32 gradients: the first limit is 1, the others 25; a bucket closes after it reaches its limit.
std::vector<double> ddp_buckets(const Model& model) {
  std::vector<double> buckets = {0};
  for (const std::uint32_t index : testing::gradient_ready_order(model)) {
    if (buckets.back() >= (buckets.size() == 1 ? 1 : 25))
      buckets.push_back(0);
    buckets.back() += static_cast<double>(model.parameters[index].elements) * 4 / (1 << 20);
  }
  return buckets;
}

TEST_CASE("ResNet-50 registers its 161 tensors as torchvision does") {
  const Model model = shipped_model("resnet50");
  REQUIRE(model.parameters.size() == 161);
  const std::vector<std::string> first = {
      "conv1.weight",          "bn1.weight",          "bn1.bias",
      "layer1.0.conv1.weight", "layer1.0.bn1.weight", "layer1.0.bn1.bias"};
  for (std::size_t index = 0; index < first.size(); ++index)
    CHECK(model.parameters[index].name == first[index]);
  CHECK(model.parameters[10].name == "layer1.0.bn3.weight");
  CHECK(model.parameters[12].name == "layer1.0.downsample.0.weight");
  CHECK(model.parameters[13].name == "layer1.0.downsample.1.weight");
  CHECK(model.parameters[159].name == "fc.weight");
  CHECK(model.parameters[160].name == "fc.bias");
  CHECK(model.parameters[0].shape == std::vector<std::int64_t>{64, 3, 7, 7});
}

// 53 batch norms; torch.nn.BatchNorm2d has running_mean, running_var (fp32) and num_batches_tracked (int64).
TEST_CASE("ResNet-50 has three buffers per batch norm") {
  const Model model = shipped_model("resnet50");
  CHECK(model.buffers.size() == 53 * 3);
  CHECK(model.buffers[0].name == "bn1.running_mean");
  CHECK(model.buffers[2].name == "bn1.num_batches_tracked");
  constexpr std::int64_t channels = 26'560;  // half of the batch norms' 53,120 parameters
  CHECK(buffer_bytes(model) == 2 * channels * 4 + 53 * 8);
}

// 224 x 224: output positions times inputs times outputs, for example 112*112 * 3*7*7 * 64 = 118.0 M.
TEST_CASE("ResNet-50's convolutions cost what their sizes say") {
  const Model model = shipped_model("resnet50");
  CHECK(mega_multiply_adds(model, "conv1") == doctest::Approx(118.0).epsilon(0.001));
  CHECK(mega_multiply_adds(model, "layer1.0.conv1") == doctest::Approx(12.8).epsilon(0.005));
  CHECK(mega_multiply_adds(model, "layer1.0.downsample.0") == doctest::Approx(51.4).epsilon(0.001));
  for (const std::string stage : {"layer2", "layer3", "layer4"}) {
    CAPTURE(stage);
    CHECK(mega_multiply_adds(model, stage + ".0.conv1") == doctest::Approx(102.8).epsilon(0.001));
    CHECK(mega_multiply_adds(model, stage + ".0.downsample.0") == doctest::Approx(102.8).epsilon(0.001));
    CHECK(mega_multiply_adds(model, stage + ".1.conv1") == doctest::Approx(51.4).epsilon(0.001));
    CHECK(mega_multiply_adds(model, stage + ".0.conv2") == doctest::Approx(115.6).epsilon(0.001));
    CHECK(mega_multiply_adds(model, stage + ".1.conv3") == doctest::Approx(51.4).epsilon(0.001));
  }
}

// torchvision's "_ops" of each model's weights, in 10^9 multiply-adds; Inception v3 without the auxiliary
// classifier.
TEST_CASE("image networks cost the published operations") {
  const std::vector<std::pair<std::string, double>> published = {{"alexnet", 0.714},
                                                                 {"vgg16", 15.47},
                                                                 {"vgg19", 19.632},
                                                                 {"resnet18", 1.814},
                                                                 {"resnet34", 3.664},
                                                                 {"resnet50", 4.089},
                                                                 {"resnet101", 7.801},
                                                                 {"resnet152", 11.514},
                                                                 {"densenet121", 2.834},
                                                                 {"vit_b_16", 17.564},
                                                                 {"resnext101_32x8d", 16.414},
                                                                 {"resnext50_32x4d", 4.23},
                                                                 {"regnet_y_400mf", 0.402},
                                                                 {"regnet_x_32gf", 31.736},
                                                                 {"convnext_tiny", 4.456},
                                                                 {"convnext_large", 34.361},
                                                                 {"swin_t", 4.491},
                                                                 {"swin_s", 8.741},
                                                                 {"swin_b", 15.431},
                                                                 {"efficientnet_b0", 0.386},
                                                                 {"efficientnet_b4", 4.394},
                                                                 {"vgg11", 7.609},
                                                                 {"vgg13_bn", 11.308},
                                                                 {"wide_resnet50_2", 11.398},
                                                                 {"wide_resnet101_2", 22.753},
                                                                 {"resnext101_64x4d", 15.46},
                                                                 {"densenet161", 7.728},
                                                                 {"densenet169", 3.36},
                                                                 {"densenet201", 4.291},
                                                                 {"efficientnet_b1", 0.687},
                                                                 {"efficientnet_b2", 1.088},
                                                                 {"efficientnet_b3", 1.827},
                                                                 {"efficientnet_b5", 10.266},
                                                                 {"efficientnet_b6", 19.068},
                                                                 {"efficientnet_b7", 37.746},
                                                                 {"mobilenet_v2", 0.301},
                                                                 {"mobilenet_v3_large", 0.217},
                                                                 {"mnasnet1_0", 0.314},
                                                                 {"mnasnet1_3", 0.526},
                                                                 {"shufflenet_v2_x1_0", 0.145},
                                                                 {"shufflenet_v2_x1_5", 0.296},
                                                                 {"shufflenet_v2_x2_0", 0.583},
                                                                 {"squeezenet1_0", 0.819},
                                                                 {"squeezenet1_1", 0.349}};
  for (const auto& [name, operations] : published) {
    CAPTURE(name);
    CHECK(giga_multiply_adds(shipped_model(name)) == doctest::Approx(operations).epsilon(0.002));
  }
  const Model inference = model_from(R"({"family": "inception_v3", "auxiliary_classifier": false})");
  CHECK(giga_multiply_adds(inference) == doctest::Approx(5.713).epsilon(0.001));
}

// torchvision/models/inception.py; the auxiliary classifier has 27,161,264 - 23,834,568 parameters.
TEST_CASE("Inception v3 without its auxiliary classifier has 23.8 million parameters") {
  const Model model = model_from(R"({"family": "inception_v3", "auxiliary_classifier": false})");
  CHECK(parameter_count(model) == 23'834'568);
}

// torchvision/models/googlenet.py: "num_params" and "_ops" are without auxiliary classifiers.
TEST_CASE("GoogLeNet without its auxiliary classifiers has 6.6 million parameters") {
  const Model model = model_from(R"({"family": "googlenet", "auxiliary_classifier": false})");
  CHECK(parameter_count(model) == 6'624'904);
  CHECK(giga_multiply_adds(model) == doctest::Approx(1.498).epsilon(0.001));
}

TEST_CASE(
    "GoogLeNet's auxiliary classifiers run where they branch off, and are registered before the last one") {
  const Model model = shipped_model("googlenet");
  const auto place = [&](std::string_view layer) { return &layer_named(model, layer) - model.layers.data(); };
  CHECK(place("aux1.fc2") < place("inception4b.branch1.conv"));
  CHECK(place("aux2.fc2") < place("inception4e.branch1.conv"));
  const std::size_t count = model.parameters.size();
  CHECK(model.parameters[count - 1].name == "fc.bias");
  CHECK(model.parameters[count - 3].name == "aux2.fc2.bias");
  CHECK(model.parameters[layer_named(model, "aux2.fc2").parameters.back()].name == "aux2.fc2.weight");
  CHECK(model.buffers.back().name == "aux2.conv.bn.num_batches_tracked");
}

// 224 pixels are 109 after the 7x7 of stride 2; pools of 3 by 2, rounded up: 54, 27, 13. Down, it were 54, 26, 12.
TEST_CASE("SqueezeNet's pools may reach over the edge") {
  const Model model = shipped_model("squeezenet1_0");
  CHECK(layer_named(model, "features.2").forward_elements == 96 * (109 * 109 + 54 * 54));
  CHECK(layer_named(model, "features.6").forward_elements == 256 * (54 * 54 + 27 * 27));
  CHECK(layer_named(model, "features.11").forward_elements == 512 * (27 * 27 + 13 * 13));
}

// 48 channels of 28 x 28. Views cost nothing, but a convolution wants its half by itself: copied in forward and in
// backward, where both gradients are joined as well.
TEST_CASE("ShuffleNet keeps both halves as one tensor, and copies the one that is convolved") {
  const Model model = shipped_model("shufflenet_v2_x0_5");
  constexpr std::int64_t elements = 48 * 28 * 28;
  const Layer& chunk = layer_named(model, "stage2.1.chunk");
  CHECK(chunk.saved_elements == elements);
  CHECK(layer_named(model, "stage2.1.branch2.0").saved_elements == 0);
  CHECK(chunk.forward_elements == 2 * (elements / 2));
  CHECK(chunk.backward_elements == 2 * (elements / 2) + 2 * elements);
  const Layer& shuffle = layer_named(model, "stage2.1.channel_shuffle");
  CHECK(shuffle.forward_elements == 2 * elements);
  CHECK(shuffle.backward_elements == 2 * elements);
  CHECK(shuffle.saved_elements == 0);
}

TEST_CASE("ShuffleNet's channels halve, or are an error") {
  CHECK_THROWS_AS(model_from(R"({"family": "shufflenet_v2", "stage_channels": 47})"), ConfigError);
}

// torch.nn.ReLU6 and Hardswish in place, as profiled: aten::clone before either, and the copy is what is kept;
// hard sigmoids are not in place.
TEST_CASE("activations that need their input copy it where they work in place") {
  const Model second = shipped_model("mobilenet_v2");
  const Layer& relu6 = layer_named(second, "features.0.2");
  CHECK(relu6.saved_elements == 32 * 112 * 112);
  CHECK(relu6.eager_forward_kernels == 1);
  const Model large = shipped_model("mobilenet_v3_large");
  const Layer& hardswish = layer_named(large, "features.0.2");
  CHECK(hardswish.saved_elements == 16 * 112 * 112);
  CHECK(hardswish.eager_forward_elements == 2 * 16 * 112 * 112);
  const Layer& hardsigmoid = layer_named(large, "features.4.block.2.scale_activation");
  CHECK(hardsigmoid.saved_elements == 72);
  CHECK(hardsigmoid.eager_forward_kernels == 0);
}

TEST_CASE(
    "what follows a batch norm may be written into it, what follows a convolution is a kernel of its own") {
  CHECK(layer_named(shipped_model("resnet50"), "relu").merged_by == MergedBy::everybody);
  CHECK(layer_named(shipped_model("vgg11"), "features.1").merged_by == MergedBy::nobody);
}

// torch.nn.Sequential counts norms as well, and convolutions keep their biases.
TEST_CASE("VGG's batch norms stand behind its convolutions") {
  const Model model = shipped_model("vgg11_bn");
  CHECK(model.parameters[1].name == "features.0.bias");
  CHECK(model.parameters[2].name == "features.1.weight");
  CHECK(model.parameters[4].name == "features.4.weight");
}

// torchvision pads a map to whole windows. At 224 pixels nothing is padded; at 256 a stage's maps have 64, 32, 16 and 8
// pixels a side, padded to 70, 35, 21 and 14: products of attention grow as these squared.
TEST_CASE("Swin's windows pad a map to whole windows") {
  const std::string swin =
      R"({"family": "swin_transformer", "hidden": 96, "heads": 3, "depths": [1, 1, 1, 1])";
  const Model plain = model_from(swin + "}");
  const Model padded = model_from(swin + R"(, "image_size": 256})");
  const std::vector<std::pair<std::int64_t, std::int64_t>> sides = {{56, 70}, {28, 35}, {14, 21}, {7, 14}};
  for (std::size_t stage = 0; stage < sides.size(); ++stage) {
    const std::string scores = "features." + std::to_string(2 * stage + 1) + ".0.attn.scores";
    const auto [small, large] = sides[stage];
    CHECK(layer_named(padded, scores).forward_flops * small * small ==
          layer_named(plain, scores).forward_flops * large * large);
  }
}

// Scores of 49 x 49 pixels a window, 8 x 8 windows and 3 heads of 32 channels; the table has a row for each of
// (2 * 7 - 1)^2 offsets.
TEST_CASE("a shifted block of Swin rolls its map and masks its scores") {
  const Model model = shipped_model("swin_t");
  const std::int64_t scores = 64 * 3 * 49 * 49;
  CHECK(layer_named(model, "features.1.1.attn.scores").forward_flops == 2 * scores * 32);
  CHECK(layer_named(model, "features.1.1.attn.softmax").saved_elements == scores);
  CHECK(layer_named(model, "features.1.1.attn.mask").forward_elements == 2 * scores);
  CHECK_THROWS_AS(layer_named(model, "features.1.0.attn.mask"), std::out_of_range);
  CHECK_THROWS_AS(layer_named(model, "features.7.1.attn.mask"), std::out_of_range);  // one window
  const std::int64_t map = 56 * 56 * 96;
  CHECK(layer_named(model, "features.1.0.attn.windows").forward_elements == 2 * 2 * map);  // padding, windows
  CHECK(layer_named(model, "features.1.1.attn.windows").forward_elements == 2 * 4 * map);  // and two rolls
  CHECK(layer_named(model, "features.1.1.attn.relative_position_bias").gradient_elements == 13 * 13 * 3);
}

// 53 convolutions, 53 batch norms, 49 activations, 16 sums: 52 of the 53 inputs of convolutions are
// activations kept once, and every batch norm keeps the convolution's output.
TEST_CASE("ResNet-50 keeps each convolution's output and each activation once") {
  const Model model = shipped_model("resnet50");
  std::int64_t convolution_outputs = 0;
  std::int64_t activations = 0;
  std::int64_t kept = 0;
  for (const Layer& layer : model.layers) {
    kept += layer.saved_elements;
    if (layer.name.find("bn") != std::string::npos || layer.name.ends_with("downsample.1")) {
      convolution_outputs += layer.forward_elements / 3;
    }
    if (layer.name.find("relu") != std::string::npos)
      activations += layer.forward_elements / 2;
  }
  constexpr std::int64_t image = 3 * 224 * 224;
  constexpr std::int64_t stem_pooled = 64 * 56 * 56;
  constexpr std::int64_t classifier = 2048 + 1000;  // input of fc, log-probabilities
  CHECK(kept == image + convolution_outputs + activations + stem_pooled + classifier);
}

// Computed by hand from DDP's rule (a bucket closes after the tensor that reaches its limit).
TEST_CASE("gradients become ready in the order that gives PyTorch's DDP buckets") {
  const std::vector<double> resnet50 = ddp_buckets(shipped_model("resnet50"));
  const std::vector<double> expected = {7.82, 30.04, 25.04, 25.32, 9.27};
  REQUIRE(resnet50.size() == expected.size());
  for (std::size_t index = 0; index < expected.size(); ++index) {
    CHECK(resnet50[index] == doctest::Approx(expected[index]).epsilon(0.001));
  }
  CHECK(ddp_buckets(shipped_model("vgg16")).size() == 6);
  CHECK(ddp_buckets(shipped_model("bert_large")).size() == 38);
}

// A squeeze to c channels of E expanded ones costs 2 E c weights, c and E biases: from a quarter of the input's
// channels I to a quarter of E that is (2 E + 1)(E / 4 - I / 4) more in each block. B0's blocks by I, of which
// only the first does not expand (E = 6 I).
TEST_CASE("EfficientNet with a wide squeeze has that many more weights") {
  const std::string b0 = R"({"family": "efficientnet", "width_percent": 100, "depth_percent": 100)";
  std::int64_t more = 0;
  for (const std::int64_t input : {16, 24, 24, 40, 40, 80, 80, 80, 112, 112, 112, 192, 192, 192, 192})
    more += (2 * 6 * input + 1) * (6 * input / 4 - input / 4);
  CHECK(parameter_count(model_from(b0 + R"(, "wide_squeeze": true})")) -
            parameter_count(model_from(b0 + "}")) ==
        more);
}

// What reaches the GPU of a sample and what comes out of the model: fp32 pixels, int64 tokens, logits.
TEST_CASE("a model knows its inputs and outputs") {
  const Model images = shipped_model("resnet50");
  CHECK(images.input_bytes == 3 * 224 * 224 * 4);
  CHECK(images.output_elements == 1000);
  CHECK(shipped_model("gpt2").input_bytes == shipped_model("gpt2").tokens_per_sample * 8);
  CHECK(shipped_model("gpt2").output_elements == shipped_model("gpt2").tokens_per_sample * 50'257);
  CHECK(shipped_model("inception_v3").output_elements == 2 * 1000);  // the auxiliary classifier's too
  CHECK(layer_named(images, "loss").is_loss);
}

}  // namespace lockstep::convnet_test
