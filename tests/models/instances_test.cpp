// Laws that every shipped model obeys, and the published counts of each.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/base/error.h"
#include "sim/base/registry.h"
#include "tests/models/instance.h"
#include "tests/support/ready_order.h"

namespace lockstep::instances_test {

struct Published {
  std::string name;
  std::int64_t parameters;
};

TEST_CASE("every name of the contract is shipped, with its source") {
  const std::vector<std::string> required = {"alexnet",         "vgg16",       "vgg19",
                                             "resnet18",        "resnet34",    "resnet50",
                                             "resnet101",       "resnet152",   "resnext50_32x4d",
                                             "inception_v3",    "densenet121", "efficientnet_b0",
                                             "efficientnet_b4", "vit_b_16",    "resnext101_32x8d",
                                             "bert_base",       "bert_large",  "gpt2",
                                             "gpt2_medium",     "gpt2_large",  "gpt2_xl",
                                             "gpt3_175b",       "mpt_125m",    "mpt_350m",
                                             "mpt_760m",        "mpt_1b",      "mpt_3b",
                                             "mpt_7b",          "mpt_13b",     "mpt_30b",
                                             "mpt_70b",         "llama2_7b",   "llama2_13b",
                                             "llama2_70b",      "llama3_8b",   "llama3_70b",
                                             "llama3_405b"};
  for (const std::string& name : required) {
    CAPTURE(name);
    const Model model = shipped_model(name);
    CHECK(model.name == name);
    CHECK(!model.source.empty());
  }
}

TEST_CASE("a tensor has as many elements as its shape says, and a name of its own") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    const Model model = shipped_model(name);
    std::set<std::string> names;
    for (const ParameterTensor& parameter : model.parameters) {
      std::int64_t product = 1;
      for (const std::int64_t extent : parameter.shape) product *= extent;
      CHECK(parameter.elements == product);
      CHECK(parameter.elements > 0);
      names.insert(parameter.name);
    }
    CHECK(names.size() == model.parameters.size());
  }
}

TEST_CASE("every parameter's gradient is completed by exactly one layer") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    const Model model = shipped_model(name);
    std::vector<std::uint32_t> order = testing::gradient_ready_order(model);
    std::ranges::sort(order);
    CHECK(order.size() == model.parameters.size());
    for (std::uint32_t index = 0; index < order.size(); ++index) CHECK(order[index] == index);
  }
}

TEST_CASE("backward costs a matmul twice its forward, except where no gradient flows into the data") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    const Model model = shipped_model(name);
    bool is_first = model.tokens_per_sample == 0;
    for (const Layer& layer : model.layers) {
      if (layer.kind != LayerKind::matmul)
        continue;
      CAPTURE(layer.name);
      CHECK(layer.backward_weight_flops == layer.forward_flops);
      CHECK(layer.backward_input_flops == (is_first ? 0 : layer.forward_flops));
      is_first = false;
    }
  }
}

// Of the two products of a fused forward, the one of queries and keys; values may be narrower.
std::int64_t scores_of(const Layer& layer) {
  const auto& shape = std::get<AttentionShape>(*layer.product);
  return layer.forward_flops / (shape.query_width + shape.value_width) * shape.query_width;
}

// Fused, backward makes the scores again; of its other four products two are as wide as the keys.
TEST_CASE("attention's backward is twice its forward, and one product more when fused") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    const Model model = shipped_model(name);
    for (const Layer& layer : model.layers) {
      if (layer.kind != LayerKind::attention)
        continue;
      const bool is_fused = model.transformer && model.transformer->fused_attention;
      const std::int64_t recomputed = is_fused ? scores_of(layer) : 0;
      CHECK(layer.backward_input_flops == 2 * layer.forward_flops + recomputed);
      CHECK(layer.backward_weight_flops == 0);
    }
  }
}

TEST_CASE("no cost is negative and every layer launches a kernel") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    for (const Layer& layer : shipped_model(name).layers) {
      CAPTURE(layer.name);
      CHECK(std::min({layer.forward_flops, layer.backward_input_flops, layer.backward_weight_flops}) >= 0);
      CHECK(std::min({layer.backward_elements, layer.saved_elements, layer.saved_bytes}) >= 0);
      CHECK(layer.forward_elements > 0);
      CHECK(layer.forward_kernels > 0);
      CHECK(layer.backward_kernels >= 0);
    }
  }
}

// A matmul needs its input in backward: it keeps it, or another reader of the same tensor came first.
TEST_CASE("something is kept before every matmul's backward") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    std::int64_t kept = 0;
    for (const Layer& layer : shipped_model(name).layers) {
      kept += layer.saved_elements;
      if (layer.kind == LayerKind::matmul)
        CHECK(kept > 0);
    }
  }
}

TEST_CASE("blocks are numbered in order and stand together") {
  for (const std::string& name : shipped_model_names()) {
    CAPTURE(name);
    int last = -1;
    for (const Layer& layer : shipped_model(name).layers) {
      if (layer.block == -1)
        continue;
      CHECK((layer.block == last || layer.block == last + 1));
      last = layer.block;
    }
  }
}

// torchvision: "num_params" of each model's weights; Inception v3 and GoogLeNet count their auxiliary classifiers,
// of which GoogLeNet's have 128 x (512 + 528 + 2 x 2) + 2 x (2048 x 1024 + 1024 + 1024 x 1000 + 1000). timm:
// "param_count" in its results/*.csv, in millions with two digits. Hugging Face: the checkpoints' counts. MPT: "NumParams" at 2048 tokens in llm-foundry's
// scripts/train/benchmarking/README.md.
TEST_CASE("parameter counts are the published ones") {
  const std::vector<Published> published = {{"alexnet", 61'100'840},
                                            {"densenet121", 7'978'856},
                                            {"densenet161", 28'681'000},
                                            {"densenet169", 14'149'480},
                                            {"densenet201", 20'013'928},
                                            {"efficientnet_b0", 5'288'548},
                                            {"efficientnet_b1", 7'794'184},
                                            {"efficientnet_b2", 9'109'994},
                                            {"efficientnet_b3", 12'233'232},
                                            {"efficientnet_b4", 19'341'616},
                                            {"efficientnet_b5", 30'389'784},
                                            {"efficientnet_b6", 43'040'704},
                                            {"efficientnet_b7", 66'347'960},
                                            {"googlenet", 13'004'888},
                                            {"inception_v3", 27'161'264},
                                            {"mnasnet0_5", 2'218'512},
                                            {"mnasnet0_75", 3'170'208},
                                            {"mnasnet1_0", 4'383'312},
                                            {"mnasnet1_3", 6'282'256},
                                            {"mobilenet_v2", 3'504'872},
                                            {"mobilenet_v3_large", 5'483'032},
                                            {"mobilenet_v3_small", 2'542'856},
                                            {"resnet18", 11'689'512},
                                            {"resnet34", 21'797'672},
                                            {"resnet50", 25'557'032},
                                            {"resnet101", 44'549'160},
                                            {"resnet152", 60'192'808},
                                            {"resnext50_32x4d", 25'028'904},
                                            {"resnext101_32x8d", 88'791'336},
                                            {"resnext101_64x4d", 83'455'272},
                                            {"shufflenet_v2_x0_5", 1'366'792},
                                            {"shufflenet_v2_x1_0", 2'278'604},
                                            {"shufflenet_v2_x1_5", 3'503'624},
                                            {"shufflenet_v2_x2_0", 7'393'996},
                                            {"squeezenet1_0", 1'248'424},
                                            {"squeezenet1_1", 1'235'496},
                                            {"vgg11", 132'863'336},
                                            {"vgg11_bn", 132'868'840},
                                            {"vgg13", 133'047'848},
                                            {"vgg13_bn", 133'053'736},
                                            {"vgg16", 138'357'544},
                                            {"vgg16_bn", 138'365'992},
                                            {"vgg19", 143'667'240},
                                            {"vgg19_bn", 143'678'248},
                                            {"vit_b_16", 86'567'656},
                                            {"wide_resnet50_2", 68'883'240},
                                            {"wide_resnet101_2", 126'886'696},
                                            {"bert_base", 109'482'240},
                                            {"bert_large", 335'141'888},
                                            {"gpt2", 124'439'808},
                                            {"gpt2_medium", 354'823'168},
                                            {"gpt2_large", 774'030'080},
                                            {"gpt2_xl", 1'557'611'200},
                                            {"llama2_7b", 6'738'415'616},
                                            {"llama2_13b", 13'015'864'320},
                                            {"llama2_70b", 68'976'648'192},
                                            {"llama3_8b", 8'030'261'248},
                                            {"llama3_70b", 70'553'706'496},
                                            {"llama3_405b", 405'853'388'800},
                                            {"mpt_760m", 760'470'528},
                                            {"mpt_1b", 1'315'950'592},
                                            {"mpt_3b", 2'651'837'440},
                                            {"mpt_7b", 6'658'859'008},
                                            {"mpt_13b", 12'853'954'560},
                                            {"mpt_30b", 29'975'214'080},
                                            {"mpt_70b", 64'862'437'376},
                                            {"mixtral_8x7b", 46'702'792'704},
                                            {"mixtral_8x22b", 140'620'634'112},
                                            {"qwen3_30b_a3b", 30'532'122'624},
                                            {"convnext_base", 88'591'464},
                                            {"convnext_large", 197'767'336},
                                            {"convnext_small", 50'223'688},
                                            {"convnext_tiny", 28'589'128},
                                            {"mixer_b16_224", 59'880'472},
                                            {"mixer_l16_224", 208'196'168},
                                            {"regnet_x_16gf", 54'278'536},
                                            {"regnet_x_1_6gf", 9'190'136},
                                            {"regnet_x_32gf", 107'811'560},
                                            {"regnet_x_3_2gf", 15'296'552},
                                            {"regnet_x_400mf", 5'495'976},
                                            {"regnet_x_800mf", 7'259'656},
                                            {"regnet_x_8gf", 39'572'648},
                                            {"regnet_y_16gf", 83'590'140},
                                            {"regnet_y_1_6gf", 11'202'430},
                                            {"regnet_y_32gf", 145'046'770},
                                            {"regnet_y_3_2gf", 19'436'338},
                                            {"regnet_y_400mf", 4'344'144},
                                            {"regnet_y_800mf", 6'432'512},
                                            {"regnet_y_8gf", 39'381'472},
                                            {"swin_b", 87'768'224},
                                            {"swin_s", 49'606'258},
                                            {"swin_t", 28'288'354},
                                            {"vit_b_32", 88'224'232},
                                            {"vit_base_patch16_384", 86'859'496},
                                            {"vit_base_patch8_224", 86'576'872},
                                            {"vit_h_14", 632'045'800},
                                            {"vit_l_16", 304'326'632},
                                            {"vit_l_32", 306'535'400},
                                            {"vit_large_patch16_384", 304'715'752},
                                            {"vit_small_patch16_224", 22'050'664},
                                            {"vit_small_patch16_384", 22'196'584},
                                            {"vit_small_patch32_224", 22'878'952},
                                            {"vit_tiny_patch16_224", 5'717'416},
                                            {"vit_tiny_patch16_384", 5'790'376}};
  for (const auto& [name, parameters] : published) {
    CAPTURE(name);
    CHECK(parameter_count(shipped_model(name)) == parameters);
  }
}

TEST_CASE("a key that no family knows is an error") {
  CHECK_THROWS_AS(model_from(R"({"family": "vgg", "depths": [1], "depth": 3})"), ConfigError);
  CHECK_THROWS_AS(model_from(R"({"family": "vgg19"})"), ConfigError);
}

TEST_CASE("more stages than an image can be halved is an error") {
  CHECK_THROWS_AS(model_from(R"({"family": "vgg", "depths": [1, 1, 1, 1, 1, 1]})"), ConfigError);
}

TEST_CASE("a wrong value is an error and never a crash") {
  const std::vector<std::string> values = {"null", "0", "-1", "1e18", "\"x\"", "[]", "[[]]", "{}", "true"};
  const std::vector<std::string> keys = {
      "attention",       "batch_norm",     "block",         "depths",     "family",
      "group_width",     "groups",         "growth_rate",   "heads",      "hidden",
      "image_size",      "last_channels",  "layers",        "patch_size", "sequence_length",
      "squeeze_percent", "stage_channels", "style",         "token_ffn",  "variant",
      "version",         "vocabulary",     "width_percent", "widths",     "window_size"};
  for (const auto& [family, entry] : Registry<ModelFamily>::all()) {
    for (const std::string& key : keys) {
      for (const std::string& value : values) {
        const std::string other = key == "family" ? "" : R"("family": ")" + family + R"(", )";
        CHECK_THROWS_AS(model_from("{" + other + "\"" + key + "\": " + value + ", \"unknown\": 1}"),
                        ConfigError);
      }
    }
  }
}

TEST_CASE("stages without a width of their own, and groups that do not divide a width, are errors") {
  CHECK_THROWS_AS(model_from(R"({"family": "convnext", "depths": [1, 1], "widths": [8]})"), ConfigError);
  CHECK_THROWS_AS(model_from(R"({"family": "regnet", "depths": [1], "widths": [24], "group_width": 16})"),
                  ConfigError);
  CHECK_THROWS_AS(model_from(R"({"family": "swin_transformer", "depths": [1], "hidden": 8, "heads": 3})"),
                  ConfigError);
}

TEST_CASE("an image too small for the network is an error") {
  CHECK_THROWS_AS(model_from(R"({"family": "alexnet", "image_size": 32})"), ConfigError);
}

}  // namespace lockstep::instances_test
