// Settings of launchers and what they become: TrainingArguments, accelerate, DeepSpeed, Megatron-LM, torchtitan.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/load/load.h"
#include "tests/scenario/lab.h"
#include "tests/support/import_samples.h"

namespace lockstep::training_settings_test {

using nlohmann::ordered_json;
using testing::bytes_of;
using testing::import_sample;
using testing::import_text;
using testing::samples_folder;

ordered_json sample(const std::string& kind, const std::string& name) {
  return ordered_json::parse(bytes_of(samples_folder() / kind / (name + ".json")));
}

KeyFate fate_of(const Imported& imported, const std::string& key) {
  const auto found = std::find_if(imported.keys.begin(), imported.keys.end(),
                                  [&](const KeyUse& use) { return use.key == key; });
  REQUIRE(found != imported.keys.end());
  return found->fate;
}

bool asks(const Imported& imported, const std::string& path) {
  return std::any_of(imported.questions.begin(), imported.questions.end(),
                     [&](const Question& question) { return question.path == path; });
}

TEST_CASE("TrainingArguments say batch, precision, optimizer and DDP's options") {
  const Imported imported = import_sample(samples_folder() / "hf_training_arguments/ddp_bf16.json");
  const ordered_json& made = imported.document;
  CHECK(made["model"] == ordered_json{{"batch_per_gpu", 4}, {"precision", "amp_bf16"}});
  CHECK(made["training"]["strategy"] == "ddp");
  CHECK(made["training"]["framework"] == "hf_trainer");
  CHECK(made["training"]["gradient_accumulation"] == 2);
  CHECK(made["training"]["bucket_cap_mb"] == 50);
  CHECK(made["training"]["find_unused_parameters"] == false);
  CHECK(made["training"]["broadcast_buffers"] == false);
  CHECK(made["compute"]["kernels"] == "compiled");
  CHECK(asks(imported, "cluster.machine"));
  CHECK(asks(imported, "model"));
}

TEST_CASE("the Trainer's FSDP shards, wraps blocks and sends half precision under autocast") {
  const ordered_json training =
      import_sample(samples_folder() / "hf_training_arguments/fsdp_alpaca.json").document["training"];
  CHECK(training["strategy"] == "fsdp");
  CHECK(training["auto_wrap"] == "block");
  CHECK(training["backward_prefetch"] == "pre");
  CHECK(training["param_dtype"] == "bf16");
}

// transformers, training_args.py: fsdp_config.get("backward_prefetch", "NO_PREFETCH"), and what begins with fsdp_ loses
// that before it is looked for.
TEST_CASE(
    "the Trainer's FSDP prefetches nothing in backward unless told to, and options may begin with fsdp_") {
  const auto training_of = [](const char* config) {
    const std::string arguments = fmt::format(
        R"({{"output_dir": "o", "bf16": true, "fsdp": "full_shard auto_wrap", "fsdp_config": {}}})", config);
    return import_text("hf_training_arguments", arguments).document["training"];
  };
  CHECK(training_of("{}")["backward_prefetch"] == "none");
  CHECK(training_of(R"({"fsdp_backward_prefetch": "backward_post"})")["backward_prefetch"] == "post");
  const ordered_json second = training_of(R"({"fsdp_version": 2, "reshard_after_forward": false})");
  CHECK(second["fsdp_version"] == 2);
  CHECK(second["reshard_after_forward"] == false);
}

TEST_CASE("an optimizer that is named fused is, and other dimensions than data are refused by their key") {
  const auto read = [](const char* more) {
    return import_text("hf_training_arguments", fmt::format(R"({{"output_dir": "o"{}}})", more));
  };
  CHECK(read(R"(, "optim": "adamw_torch_fused")").document["compute"]["optimizer_kernels"] == "fused");
  CHECK(fate_of(read(R"(, "parallelism_config": {"tp_size": 2})"), "parallelism_config.tp_size") ==
        KeyFate::refused);
  CHECK(fate_of(read(R"(, "parallelism_config": {"tp_size": 1})"), "parallelism_config.tp_size") !=
        KeyFate::refused);
}

TEST_CASE("the Trainer fills in DeepSpeed's autos with its own arguments") {
  const Imported imported = import_sample(samples_folder() / "hf_training_arguments/deepspeed_inline.json");
  const ordered_json& made = imported.document;
  CHECK(made["training"]["strategy"] == "zero3");
  CHECK(made["training"]["gradient_accumulation"] == 4);
  CHECK(made["training"]["gradient_clipping"] == true);
  CHECK(made["training"]["recompute"] == "full");
  CHECK(made["model"] == ordered_json{{"batch_per_gpu", 2}, {"precision", "bf16"}});
  CHECK(imported.questions.size() == 2);  // the cluster and the model
}

TEST_CASE("a DeepSpeed file that TrainingArguments name is read beside them") {
  const testing::Folder folder;
  folder.write("ds.json", sample("deepspeed_config", "zero1_bing_bert").dump());
  const std::string arguments =
      R"({"output_dir": "o", "per_device_train_batch_size": 32, "deepspeed": "ds.json"})";
  const Imported imported =
      import_text("hf_training_arguments", arguments, ordered_json::object(), folder.path() + "/args.json");
  CHECK(imported.document["training"]["strategy"] == "zero1");
  CHECK(fate_of(imported, "deepspeed: zero_optimization.stage") == KeyFate::used);
  CHECK_THROWS_AS(import_text("hf_training_arguments", R"({"output_dir": "o", "deepspeed": "nowhere.json"})"),
                  ConfigError);
}

TEST_CASE("what the Trainer can do and nobody predicts is refused by its key") {
  const auto refuses = [](const char* key, const ordered_json& value) {
    ordered_json arguments = sample("hf_training_arguments", "ddp_bf16");
    arguments[key] = value;
    return fate_of(import_text("hf_training_arguments", arguments.dump()), key) == KeyFate::refused;
  };
  CHECK(refuses("optim", "adafactor"));
  CHECK(refuses("use_cpu", true));
  CHECK(refuses("fp16", true));
  CHECK(refuses("fsdp", "full_shard offload"));
  CHECK(refuses("fsdp", "some_shard"));
  CHECK(refuses("per_device_train_batch_size", 0));
  CHECK(refuses("per_device_train_batch_size", "many"));
  CHECK(refuses("ddp_bucket_cap_mb", -1));
}

TEST_CASE("each auto of DeepSpeed is asked for with the key that answers it") {
  const Imported imported = import_sample(samples_folder() / "deepspeed_config/zero3_auto.json");
  for (const char* path :
       {"model.batch_per_gpu", "training.gradient_accumulation", "training.gradient_clipping",
        "training.reduce_bucket_size", "training.stage3_prefetch_bucket_size",
        "training.stage3_param_persistence_threshold", "model.precision", "cluster.machine", "model"}) {
    CAPTURE(path);
    CHECK(asks(imported, path));
  }
  CHECK(imported.document["training"]["strategy"] == "zero3");
  CHECK(imported.document["training"]["stage3_max_live_parameters"] == 1'000'000'000);
}

TEST_CASE("DeepSpeed's global batch stays one, and its weights are of half precision") {
  const ordered_json made =
      import_sample(samples_folder() / "deepspeed_config/zero1_bing_bert.json").document;
  CHECK(made["training"]["global_batch"] == 4096);
  CHECK(made["model"] == ordered_json{{"batch_per_gpu", 32}, {"precision", "fp16"}});
  CHECK(made["training"]["optimizer"] == "adam");
}

TEST_CASE("DeepSpeed's offloading is refused, and so is a stage that is none") {
  ordered_json config = sample("deepspeed_config", "zero3_auto");
  config["zero_optimization"]["offload_optimizer"]["device"] = "cpu";
  config["zero_optimization"]["offload_optimizer"]["pin_memory"] = true;
  const Imported imported = import_text("deepspeed_config", config.dump());
  CHECK(fate_of(imported, "zero_optimization.offload_optimizer.device") == KeyFate::refused);
  CHECK(fate_of(imported, "zero_optimization.offload_optimizer.pin_memory") == KeyFate::left_aside);
  config["zero_optimization"]["stage"] = 4;
  CHECK(fate_of(import_text("deepspeed_config", config.dump()), "zero_optimization.stage") ==
        KeyFate::refused);
}

TEST_CASE("accelerate says nodes, GPUs of each, precision and sharding") {
  const ordered_json made = import_sample(samples_folder() / "accelerate_config/fsdp.yaml").document;
  CHECK(made["cluster"] == ordered_json{{"nodes", 2}, {"gpus_per_node", 8}});
  CHECK(made["model"]["precision"] == "amp_bf16");
  CHECK(made["training"]["strategy"] == "fsdp");
  CHECK(made["training"]["recompute"] == "full");
  const ordered_json cut = import_sample(samples_folder() / "accelerate_config/deepspeed.yaml").document;
  CHECK(cut["training"]["strategy"] == "zero3");
  CHECK(cut["model"]["precision"] == "bf16");
}

TEST_CASE(
    "accelerate casts operators in fp16 too, shards nothing where it is told so, and knows older names") {
  const auto read = [](const std::string& more) {
    return import_text("accelerate_config", "num_machines: 1\nnum_processes: 8\n" + more).document;
  };
  const ordered_json half = read("distributed_type: MULTI_GPU\nmixed_precision: fp16\n");
  CHECK(half["compute"]["autocast"] == true);
  const std::string sharded = "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n";
  const ordered_json whole = read(sharded + "  fsdp_sharding_strategy: NO_SHARD\n");
  CHECK(whole["training"]["strategy"] == "ddp");
  CHECK_FALSE(whole["training"].contains("reshard_after_forward"));
  CHECK(read(sharded + "  fsdp_sharding_strategy: 1\n")["training"]["backward_prefetch"] == "none");
  CHECK(read(sharded + "  fsdp_backward_prefetch_policy: BACKWARD_PRE\n")["training"]["backward_prefetch"] ==
        "pre");
  const Imported cut = import_text(
      "accelerate_config", "num_processes: 8\n" + sharded +
                               "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_tp_size: 2\n");
  CHECK(fate_of(cut, "parallelism_config.parallelism_config_tp_size") == KeyFate::refused);
}

TEST_CASE("YAML that grows without bound, is cut off or says a key twice is refused with its place") {
  const std::string head = "distributed_type: NO\nnum_processes: 1\n";
  std::string bomb = head + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 9; ++level) {
    bomb += fmt::format("a{}: &a{} [", level, level);
    for (int copy = 0; copy < 10; ++copy) bomb += fmt::format("{}*a{}", copy == 0 ? "" : ", ", level - 1);
    bomb += "]\n";
  }
  CHECK_THROWS_WITH_AS(import_text("accelerate_config", bomb), doctest::Contains("more than settings need"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(import_text("accelerate_config", head + "debug: [1, 2"), doctest::Contains("sample:"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(import_text("accelerate_config", head + "num_processes: 2\n"),
                       doctest::Contains("num_processes twice"), ConfigError);
  CHECK_THROWS_AS(import_text("accelerate_config", head + std::string(100'000, '[')), ConfigError);
  CHECK_THROWS_AS(import_text("accelerate_config",
                              head + "x: " + std::string(5'000, '-') + "\n" + std::string(3'000, '{')),
                  ConfigError);
}

TEST_CASE("Megatron-LM's arguments are a model as well") {
  const ordered_json made = import_sample(samples_folder() / "megatron_arguments/llama2_70b.txt").document;
  CHECK(made["model"]["style"] == "llama");
  CHECK(made["model"]["kv_heads"] == 8);
  CHECK(made["training"]["tensor_parallel"] == 8);
  CHECK(made["training"]["pipeline_parallel"] == 4);
  CHECK(made["training"]["strategy"] == "zero1");
  CHECK(made["training"]["micro_batch"] == 1);
  CHECK(made["communication"]["overlap"] == true);
}

constexpr std::string_view small_megatron =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --vocab-size 50257 "
    "--micro-batch-size 1 --bf16 ";

TEST_CASE("Megatron-LM's bias of queries, keys and values is its own where no layer has others") {
  const auto model = [](const std::string& more) {
    return import_text("megatron_arguments",
                       std::string(small_megatron) + "--position-embedding-type rope --add-qkv-bias" + more)
        .document["model"];
  };
  CHECK(model(" --disable-bias-linear")["attention_biases"] == "inputs");
  CHECK_FALSE(model("").contains("attention_biases"));
  CHECK(model("")["biases"] == true);
}

TEST_CASE("what Megatron-LM is told of kernels, stages, words and overlap is told on") {
  const auto read = [](std::string_view more) {
    return import_text("megatron_arguments", fmt::format("{}{}", small_megatron, more)).document;
  };
  CHECK(read("--attention-backend flash")["compute"]["attention_backend"] == "flash_attention");
  CHECK(read("--attention-backend unfused")["model"]["attention"] == "unfused");
  CHECK(read("--no-gradient-accumulation-fusion")["compute"]["gradient_accumulation_fusion"] == false);
  CHECK(read("--cross-entropy-loss-fusion")["compute"]["cross_entropy_loss_fusion"] == true);
  CHECK(read("--grad-reduce-in-bf16")["training"]["accumulate_allreduce_grads_in_fp32"] == false);
  const ordered_json cut =
      read("--tensor-model-parallel-size 4 --tp-comm-overlap --make-vocab-size-divisible-by 256")["training"];
  CHECK(cut["tensor_parallel_overlap"] == "pieces");
  CHECK(cut["vocabulary_multiple"] == 256);
  const ordered_json staged =
      read("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 3")["training"];
  CHECK(staged["pipeline_schedule"] == "interleaved");
  CHECK(staged["virtual_stages"] == 3);
  CHECK(read("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 3 "
             "--overlap-moe-expert-parallel-comm")["training"]["pipeline_schedule"] == "combined_1f1b");
  const auto uses =
      import_text("megatron_arguments", fmt::format("{}--overlap-moe-expert-parallel-comm", small_megatron))
          .keys;
  CHECK(std::ranges::any_of(uses, [](const KeyUse& use) {
    return use.key == "overlap-moe-expert-parallel-comm" && use.fate == KeyFate::refused;
  }));
  CHECK(read("--context-parallel-size 2 --cp-comm-type a2a")["training"]["context_parallel_kind"] ==
        "ulysses");
  CHECK(read("--num-experts 8 --moe-layer-freq ([0]*1+[1]*23)")["model"]["dense_layers"] == 1);
  CHECK(fate_of(import_text("megatron_arguments",
                            fmt::format("{}--num-experts 8 --moe-layer-freq ([0,1]*12)", small_megatron)),
                "moe-layer-freq") == KeyFate::refused);
}

TEST_CASE("Megatron-LM's arguments may stand in a shell's lists") {
  const ordered_json made =
      import_text("megatron_arguments",
                  "MODEL_ARGS=(\n  --num-layers 24\n  --hidden-size 1024\n  --num-attention-heads 16"
                  "\n)\nMORE=(\n  --seq-length 1024\n  --vocab-size 50257\n  --bf16\n)\n")
          .document;
  CHECK(made["model"]["heads"] == 16);
  CHECK(made["model"]["precision"] == "bf16");
}

TEST_CASE("Megatron-LM's fp8 scales by earlier steps unless it is told otherwise") {
  const std::string sample = bytes_of(samples_folder() / "megatron_arguments/llama2_70b.txt");
  const auto recipe = [&](const std::string& more) {
    return import_text("megatron_arguments", sample + " --fp8-format hybrid" + more);
  };
  CHECK(recipe("").document["compute"]["fp8_recipe"] == "delayed");
  CHECK(recipe(" --fp8-recipe tensorwise").document["compute"]["fp8_recipe"] == "tensorwise");
  CHECK(recipe(" --fp8-recipe tensorwise").warnings == recipe("").warnings);
  const auto blockwise = recipe(" --fp8-recipe blockwise");
  CHECK(blockwise.document["compute"]["fp8_recipe"] == "tensorwise");
  CHECK(std::ranges::count(blockwise.warnings, "fp8-recipe blockwise is predicted as tensorwise") == 1);
}

TEST_CASE("Megatron-LM's mixture of experts stands in GPT's blocks, its heads normed") {
  const ordered_json made = import_sample(samples_folder() / "megatron_arguments/gpt_mixture.txt").document;
  CHECK(made["model"]["style"] == "gpt2");
  CHECK(made["model"]["experts"] == 8);
  CHECK(made["model"]["expert_ffn"] == 1024);
  CHECK(made["model"]["query_key_norm"] == true);
  CHECK(made["training"]["expert_parallel"] == 4);
}

TEST_CASE("a torchtitan job shards over what is left of the ranks") {
  const ordered_json made = import_sample(samples_folder() / "torchtitan/llama3_8b.toml").document;
  CHECK(made["model"] ==
        ordered_json{
            {"name", "llama3_8b"}, {"sequence_length", 8192}, {"batch_per_gpu", 1}, {"precision", "bf16"}});
  CHECK(made["training"]["strategy"] == "fsdp");
  const ordered_json cut = import_sample(samples_folder() / "torchtitan/llama3_405b.toml").document;
  CHECK(cut["model"]["precision"] == "fp8");
  CHECK(cut["training"]["tensor_parallel"] == 8);
  CHECK(cut["training"]["micro_batch"] == 2);
}

// config/job_config.py: context_parallel_rotate_method allgather or alltoall.
TEST_CASE("a torchtitan job's shards are asked for where they are what its replicas leave") {
  const auto read = [](const char* parallelism, const char* batch = "") {
    return import_text("torchtitan",
                       fmt::format("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n{}\n"
                                   "[parallelism]\n{}\n",
                                   batch, parallelism));
  };
  CHECK(asks(read("data_parallel_replicate_degree = 2"), "training.shard_group"));
  CHECK_FALSE(asks(read("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4"),
                   "training.shard_group"));
  CHECK(read("tensor_parallel_degree = 2\nenable_async_tensor_parallel = true")
            .document["training"]["tensor_parallel_overlap"] == "pieces");
  const ordered_json staged =
      read("pipeline_parallel_degree = 2\npipeline_parallel_microbatches = 4", "local_batch_size = 8")
          .document["training"];
  CHECK(staged["micro_batch"] == 2);
  CHECK(staged["gradient_accumulation"] == 4);
}

// torchtitan, distributed/parallel_dims.py: all degrees together are the ranks.
TEST_CASE(
    "a torchtitan job says how many copies it shards over, and no misspelt degree is a matter of taste") {
  const auto read = [](const char* parallelism) {
    return import_text("torchtitan", fmt::format("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n"
                                                 "[parallelism]\n{}\n",
                                                 parallelism));
  };
  const ordered_json made =
      read("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4").document["training"];
  CHECK(made["data_parallel"] == 8);
  CHECK(made["shard_group"] == 4);
  CHECK_FALSE(read("data_parallel_shard_degree = -1").document["training"].contains("data_parallel"));
  for (const char* misspelt : {"tensor_parallel_degre", "pipeline_parallel_schedul", "data_parallel_shard"}) {
    CAPTURE(misspelt);
    const Imported imported = read((std::string(misspelt) + " = 2").c_str());
    CHECK(fate_of(imported, std::string("parallelism.") + misspelt) == KeyFate::left_aside);
    CHECK(std::any_of(imported.warnings.begin(), imported.warnings.end(), [&](const std::string& warning) {
      return warning.find(std::string("not known here, and left aside: parallelism.") + misspelt) !=
             std::string::npos;
    }));
  }
}

TEST_CASE("accelerate's FSDP keys are no matter of taste, but where nothing is sharded") {
  const auto unknown = [](const char* more) {
    const Imported imported = import_text(
        "accelerate_config",
        fmt::format("distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n{}", more));
    return std::any_of(imported.warnings.begin(), imported.warnings.end(), [](const std::string& warning) {
      return warning.find("not known here") != std::string::npos;
    });
  };
  CHECK(unknown("  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_versio: 2\n"));
  CHECK_FALSE(unknown("  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_sync_module_states: true\n"));
  CHECK_FALSE(unknown("  fsdp_sharding_strategy: NO_SHARD\n  fsdp_sync_module_states: true\n"));
}

TEST_CASE("two half precisions at once are refused, as their frameworks do") {
  CHECK(
      fate_of(import_text("deepspeed_config",
                          R"({"train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true}})"),
              "fp16.enabled") == KeyFate::refused);
  CHECK(fate_of(import_text("megatron_arguments",
                            "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 64 "
                            "--micro-batch-size 1 --bf16 --fp16"),
                "fp16") == KeyFate::refused);
}

TEST_CASE("a torchtitan job's context parallelism is PyTorch's ring, by the way its blocks come") {
  const auto kind_of = [](const std::string& method) {
    return import_text("torchtitan",
                       "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = "
                       "8192\n[parallelism]\ncontext_parallel_degree = 2\n" +
                           method)
        .document["training"]["context_parallel_kind"];
  };
  CHECK(kind_of("") == "rotate_all_gather");
  CHECK(kind_of("context_parallel_rotate_method = \"allgather\"\n") == "rotate_all_gather");
  CHECK(kind_of("context_parallel_rotate_method = \"alltoall\"\n") == "rotate_all_to_all");
}

TEST_CASE("TOML that breaks off or says what is none is refused with its place, by every build") {
  const auto refused_at = [](const std::string& text, const char* place) {
    CHECK_THROWS_WITH_AS(import_text("torchtitan", text), doctest::Contains(place), ConfigError);
  };
  refused_at("[model]\nname = \"llama3\"\n[/optimizer]\n", "sample:3:2: ");
  refused_at("[[/optimizer]]\n", "sample:1:3: ");
  refused_at("[model./]\n", "sample:1:8: ");
  refused_at("[model]\nname = {/ = 1}\n", "sample:2:9: ");
  refused_at("[model\n", "sample:1:7: ");
  refused_at("[model]\nname = \n", "sample:2:8: ");
  refused_at("[", "sample:1:2: ");
}

// Megatron-LM, training/arguments.py: as many as the tensor group unless stated. torchtitan, config/job_config.py: 1.
TEST_CASE("ranks that share an expert are those of the framework") {
  const auto of_megatron = [](const std::string& more) {
    return import_text(
               "megatron_arguments",
               "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --num-experts 8 "
               "--tensor-model-parallel-size 2 --expert-model-parallel-size 4 " +
                   more)
        .document["training"];
  };
  CHECK(!of_megatron("").contains("expert_tensor_parallel"));
  CHECK(of_megatron("--expert-tensor-parallel-size 1")["expert_tensor_parallel"] == 1);
  const auto of_torchtitan = [](const std::string& degrees) {
    return import_text("torchtitan",
                       "[model]\nname = \"llama4\"\nflavor = \"17bx16e\"\n[training]\nseq_len = "
                       "8192\n[parallelism]\n" +
                           degrees)
        .document["training"];
  };
  CHECK(of_torchtitan("tensor_parallel_degree = 8\nexpert_parallel_degree = 4\n")["expert_tensor_parallel"] ==
        1);
  CHECK(of_torchtitan(
            "tensor_parallel_degree = 8\nexpert_parallel_degree = 4\nexpert_tensor_parallel_degree = 8\n")
            ["expert_tensor_parallel"] == 8);
  CHECK(!of_torchtitan("tensor_parallel_degree = 8\n").contains("expert_tensor_parallel"));
}

// Each sample, with what it asks for, is a scenario that loads.
TEST_CASE("what is imported loads once its questions are answered") {
  const ProfileStore store(std::vector<std::string>{LOCKSTEP_SOURCE_DIR});
  const auto loads = [&](const std::string& path, Overrides answers) {
    CAPTURE(path);
    const ordered_json document = import_sample(samples_folder() / path).document;
    CHECK_NOTHROW(load_value(document, {.store = store, .overrides = answers, .accepts_any_size = true}));
  };
  const Overrides usual{{"cluster.machine", "dgx_h100"}, {"model", "llama3_8b"}};
  const auto with = [](Overrides overrides, const Overrides& more) {
    overrides.insert(overrides.end(), more.begin(), more.end());
    return overrides;
  };
  loads("hf_training_arguments/ddp_bf16.json", usual);
  loads("hf_training_arguments/fsdp_alpaca.json", usual);
  loads("hf_training_arguments/deepspeed_inline.json", usual);
  loads("deepspeed_config/zero1_bing_bert.json",
        {{"cluster.machine", "dgx_a100_80gb"}, {"cluster.nodes", "16"}, {"model", "bert_large"}});
  loads("deepspeed_config/zero3_auto.json", with(usual, {{"model.batch_per_gpu", "2"},
                                                         {"model.precision", "bf16"},
                                                         {"training.gradient_clipping", "true"},
                                                         {"training.reduce_bucket_size", "16777216"}}));
  const Overrides batch = with(usual, {{"model.batch_per_gpu", "2"}, {"training.optimizer", "adamw"}});
  loads("accelerate_config/fsdp.yaml", batch);
  loads("accelerate_config/deepspeed.yaml", batch);
  loads("accelerate_config/multi_gpu.yaml", batch);
  loads("megatron_arguments/llama2_70b.txt", {{"cluster.machine", "dgx_h100"}, {"cluster.nodes", "8"}});
  loads("megatron_arguments/gpt3_345m.txt", {{"cluster.machine", "dgx_h100"}});
  loads("megatron_arguments/gpt_mixture.txt", {{"cluster.machine", "dgx_h100"}});
  loads("torchtitan/llama3_8b.toml", {{"cluster.machine", "dgx_h100"}});
  loads("torchtitan/llama3_405b.toml", {{"cluster.machine", "dgx_h100"}, {"cluster.nodes", "64"}});
}

}  // namespace lockstep::training_settings_test
