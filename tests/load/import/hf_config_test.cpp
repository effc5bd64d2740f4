// Models imported from Hugging Face's configurations against the published counts of their parameters.
//
// The samples are facts of the configurations of the models named below (huggingface.co/ORGANISATION/MODEL); counts are
// those of the safetensors headers that the hub shows, or of the model's card.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/models/instance.h"
#include "tests/support/import_samples.h"

namespace lockstep::hf_config_test {

using nlohmann::ordered_json;
using testing::bytes_of;
using testing::import_text;
using testing::samples_folder;

ordered_json sample(const std::string& name) {
  return ordered_json::parse(bytes_of(samples_folder() / "hf_config" / (name + ".json")));
}

Imported import_config(const ordered_json& config, const ordered_json& stated = ordered_json::object()) {
  return import_text("hf_config", config.dump(), stated);
}

Model model_of_config(const ordered_json& config) {
  return model_from(import_config(config).document.dump());
}

struct Published {
  const char* sample;
  std::int64_t parameters;
};

// deepseek_v3 without the 58 x 256 correction biases, which transformers keeps as buffers, and without the module that
// predicts a second token. bert_base: BertForPreTraining.
constexpr Published published[] = {{"gpt2", 124'439'808},
                                   {"gpt2_xl", 1'557'611'200},
                                   {"pythia_160m", 162'322'944},
                                   {"pythia_6_9b", 6'857'302'016},
                                   {"llama3_8b", 8'030'261'248},
                                   {"llama32_1b", 1'235'814'400},
                                   {"mistral_7b", 7'241'732'096},
                                   {"mistral_nemo", 12'247'782'400},
                                   {"qwen2_0_5b", 494'032'768},
                                   {"qwen2_7b", 7'615'616'512},
                                   {"qwen3_0_6b", 596'049'920},
                                   {"qwen3_8b", 8'190'735'360},
                                   {"gemma_2b", 2'506'172'416},
                                   {"gemma_7b", 8'537'680'896},
                                   {"gemma2_2b", 2'614'341'888},
                                   {"gemma2_9b", 9'241'705'984},
                                   {"bert_base", 110'106'428},
                                   {"bert_large", 336'226'108},
                                   {"roberta_base", 124'697'433},
                                   {"roberta_large", 355'412'057},
                                   {"t5_small", 60'506'624},
                                   {"flan_t5_base", 247'577'856},
                                   {"vit_base", 86'567'656},
                                   {"vit_large", 304'326'632},
                                   {"mixtral_8x7b", 46'702'792'704},
                                   {"mixtral_8x22b", 140'620'634'112},
                                   {"qwen15_moe", 14'315'784'192},
                                   {"qwen3_30b", 30'532'122'624},
                                   {"qwen3_235b", 235'093'634'560},
                                   {"deepseek_v3", 671'026'404'352},
                                   {"deepseek_v2_lite", 15'706'484'224},
                                   {"phi3_mini", 3'821'079'552},
                                   {"gemma3_1b", 999'885'952},
                                   {"smollm3_3b", 3'075'098'624},
                                   {"mpt_7b", 6'649'286'656}};

TEST_CASE("an imported model has as many parameters as its makers say, exactly") {
  for (const Published& model : published) {
    CAPTURE(model.sample);
    CHECK(parameter_count(model_of_config(sample(model.sample))) == model.parameters);
  }
}

TEST_CASE("what is imported is what is shipped under the model's name") {
  const auto same_tensors = [](const Model& one, const Model& other) {
    REQUIRE(one.parameters.size() == other.parameters.size());
    for (std::size_t index = 0; index < one.parameters.size(); ++index) {
      CHECK(one.parameters[index].name == other.parameters[index].name);
      CHECK(one.parameters[index].shape == other.parameters[index].shape);
    }
  };
  same_tensors(model_of_config(sample("gpt2")), shipped_model("gpt2"));
  same_tensors(model_of_config(sample("llama3_8b")), shipped_model("llama3_8b"));
  same_tensors(model_of_config(sample("mixtral_8x7b")), shipped_model("mixtral_8x7b"));
  same_tensors(model_of_config(sample("qwen3_30b")), shipped_model("qwen3_30b_a3b"));
  same_tensors(model_of_config(sample("deepseek_v3")), shipped_model("deepseek_v3_like"));
}

// modeling_gpt_neox.py: two norms and four linear layers a block, all with biases; three tensors beside final norm's two.
TEST_CASE("GPT-NeoX registers both norms before attention, and its blocks' tensors in that order") {
  const Model model = model_of_config(sample("pythia_160m"));
  CHECK(model.parameters.size() == 1 + 12 * 12 + 2 + 1);
  CHECK(model.parameters[0].name == "gpt_neox.embed_in.weight");
  CHECK(model.parameters[1].name == "gpt_neox.layers.0.input_layernorm.weight");
  CHECK(model.parameters[3].name == "gpt_neox.layers.0.post_attention_layernorm.weight");
  CHECK(model.parameters[5].shape == std::vector<std::int64_t>{3 * 768, 768});
  CHECK(model.parameters.back().name == "embed_out.weight");
}

TEST_CASE("Qwen 2 has biases where queries, keys and values are made, and nowhere else") {
  const Model model = model_of_config(sample("qwen2_0_5b"));
  std::size_t biases = 0;
  for (const ParameterTensor& parameter : model.parameters)
    biases += parameter.name.ends_with(".bias") ? 1 : 0;
  CHECK(biases == 3 * 24);
}

// configuration_qwen3.py: head_dim 128, whatever hidden_size / num_attention_heads is: 64 here.
TEST_CASE("Qwen3's heads are 128 wide where its file does not say") {
  ordered_json config = sample("qwen3_0_6b");
  config.erase("head_dim");
  CHECK(parameter_count(model_of_config(config)) == 596'049'920);
}

// configuration_gpt_oss.py: head_dim 64, and grouped heads; 2,880 / 64 would be 45.
TEST_CASE("gpt-oss' heads are 64 wide where its file does not say") {
  const ordered_json config = {{"model_type", "gpt_oss"},  {"hidden_size", 2880},
                               {"num_hidden_layers", 2},   {"num_attention_heads", 64},
                               {"num_key_value_heads", 8}, {"intermediate_size", 2880},
                               {"num_local_experts", 4},   {"num_experts_per_tok", 2},
                               {"vocab_size", 1024},       {"max_position_embeddings", 4096}};
  const Model model = model_of_config(config);
  CHECK(model.transformer->width_of_head() == 64);
}

TEST_CASE("a sequence that makes a model too large is named") {
  ordered_json config = sample("mistral_nemo");
  config["max_position_embeddings"] = 1'024'000;
  CHECK_THROWS_WITH_AS(model_of_config(config), doctest::Contains("per sequence of 1024000 tokens"),
                       ConfigError);
}

TEST_CASE("Gemma 2 norms what each part gives as well") {
  const Model model = model_of_config(sample("gemma2_2b"));
  CHECK(model.parameters.size() == 1 + 26 * (7 + 4) + 1);
  CHECK(layer_named(model, "model.layers.0.post_feedforward_layernorm").forward_elements > 0);
}

// Norms of all heads at once are 8,192 wide in each of OLMo 2's 32 layers, and 256 where heads are normed one by one.
TEST_CASE("what an imported model has otherwise than its makers is told, and is as small as it is told") {
  const Imported olmo = import_config(sample("olmo2_7b"));
  CHECK(parameter_count(model_from(olmo.document.dump())) == 7'298'617'344 - 32 * (8'192 - 256));
  CHECK(olmo.warnings.back().find("head by head") != std::string::npos);
  ordered_json falcon = sample("falcon_40b");
  CHECK(import_config(falcon).document["kv_heads"] == 8);
  falcon["new_decoder_architecture"] = false;
  const Imported shared = import_config(falcon);
  CHECK(shared.document["kv_heads"] == 1);
  CHECK(shared.warnings.front().find("shares one") != std::string::npos);
}

TEST_CASE("labels of an image classifier are counted, not flattened") {
  ordered_json config = sample("vit_base");
  config.erase("num_labels");
  for (int label = 0; label < 21; ++label) config["id2label"][std::to_string(label)] = "a.b";
  const Imported imported = import_config(config);
  CHECK(imported.document["classes"] == 21);
}

TEST_CASE("what models cannot say is refused by its key") {
  const auto refuses = [](const char* name, const char* key, const ordered_json& value) {
    ordered_json config = sample(name);
    config[key] = value;
    const Imported imported = import_config(config);
    for (const KeyUse& use : imported.keys)
      if (use.key == key)
        return use.fate == KeyFate::refused;
    return false;
  };
  CHECK(refuses("gpt2", "add_cross_attention", true));
  CHECK(refuses("gpt2", "n_embd", "wide"));
  CHECK(refuses("gpt2", "n_layer", 1.5));
  CHECK(refuses("gpt2", "n_layer", -1));
  CHECK(refuses("qwen3_30b", "decoder_sparse_step", 2));
  CHECK(refuses("qwen3_30b", "mlp_only_layers", {0, 1}));
  CHECK(refuses("bert_base", "is_decoder", true));
  CHECK(refuses("bert_base", "architectures", {"BertForTokenClassification"}));
  CHECK(refuses("bert_base", "position_embedding_type", "relative_key"));
  CHECK(refuses("vit_base", "num_channels", 4));
  CHECK(refuses("deepseek_v3", "attention_bias", true));
}

TEST_CASE("sizes that are missing are asked for by the name that answers them") {
  ordered_json config = sample("llama3_8b");
  config.erase("hidden_size");
  const Imported imported = import_config(config);
  REQUIRE(imported.questions.size() == 1);
  CHECK(imported.questions.front().path == "hidden");
}

TEST_CASE("a sequence length that is stated is not warned of") {
  CHECK(import_config(sample("llama3_8b")).warnings.size() == 1);
  CHECK(import_config(sample("llama3_8b"), {{"sequence_length", 4096}}).warnings.empty());
}

TEST_CASE("a window narrower than the sequence, unknown keys and stored formats are warned of") {
  CHECK(import_config(sample("mistral_7b")).warnings.size() == 2);
  ordered_json config = sample("gpt2");
  config["frobnication_rate"] = 3;
  const Imported imported = import_config(config);
  CHECK(imported.warnings.back().find("frobnication_rate") != std::string::npos);
}

TEST_CASE("an unknown model type is refused with the nearest") {
  CHECK_THROWS_WITH_AS(import_text("hf_config", R"({"model_type": "lama"})"),
                       doctest::Contains("did you mean \"llama\""), ConfigError);
  CHECK_THROWS_AS(import_text("hf_config", R"({"architectures": ["X"]})"), ConfigError);
}

}  // namespace lockstep::hf_config_test
