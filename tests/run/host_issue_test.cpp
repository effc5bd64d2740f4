#include "sim/run/host_issue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "sim/run/describe_job.h"
#include "sim/run/single_gpu.h"
#include "tests/support/scenarios.h"

namespace lockstep::host_issue_test {

using Json = nlohmann::ordered_json;

// What the host spends on an operator; its GPU's profile says 5 us for a launch.
Json one_gpu(const char* precision, std::int64_t batch, const char* operator_time) {
  Json machine{{"based_on", "dgx_a100_80gb"}};
  machine["host"]["operator_time"] = operator_time;
  Json given{{"model", {{"name", "resnet50"}, {"batch_per_gpu", batch}, {"precision", precision}}},
             {"training", {{"strategy", "single"}, {"optimizer", "momentum"}}}};
  given["cluster"] = {{"machine", machine}, {"gpus_per_node", 1}};
  return given;
}

std::int64_t launches_of(const Job& job) {
  std::int64_t launches = job.optimizer.launches;
  for (const LayerWork& layer : job.layers) launches += layer.forward.launches + layer.backward.launches;
  return launches;
}

std::int64_t library_launches_of(const Job& job) {
  std::int64_t launches = 0;
  for (const LayerWork& layer : job.layers)
    launches += layer.forward.library_launches + layer.backward.library_launches;
  return launches;
}

Duration kernels_of(const Scenario& scenario) {
  return modelled_step(scenario, describe_job(scenario)).total();
}

Duration iteration_of(const LoadedScenario& scenario) {
  return predict(scenario, {.with_band = false}).report.iteration;
}

TEST_CASE("A step of large kernels waits for no host: it takes what its kernels take") {
  const LoadedScenario scenario = scenario_from(one_gpu("bf16", 256, "6 us"));
  CHECK_FALSE(describe_job(scenario).host.has_value());
  CHECK(iteration_of(scenario) == kernels_of(scenario));
}

TEST_CASE("A host that is behind takes the step along at its own pace: an operator and a launch a kernel") {
  const LoadedScenario scenario = scenario_from(one_gpu("bf16", 1, "200 us"));
  const Job job = describe_job(scenario);
  const Duration host =
      Duration::microseconds(205) * launches_of(job) - Duration::microseconds(200) * library_launches_of(job);
  REQUIRE(host > kernels_of(scenario));
  CHECK(iteration_of(scenario) == host);
  CHECK(single_gpu_time(scenario) == host);
}

TEST_CASE("A host that waits for every kernel adds what it issues to what they take") {
  for (const std::int64_t batch : {1, 256}) {
    CAPTURE(batch);
    Json given = one_gpu("bf16", batch, "6 us");
    given["training"]["cuda_launch_blocking"] = true;
    const LoadedScenario scenario = scenario_from(given);
    const Job job = describe_job(scenario);
    const Duration host =
        Duration::microseconds(11) * launches_of(job) - Duration::microseconds(6) * library_launches_of(job);
    CHECK(iteration_of(scenario) == kernels_of(scenario) + host);
    CHECK(single_gpu_time(scenario) == kernels_of(scenario) + host);
  }
}

// Without channels_last cuDNN puts the maps of tensor cores in order within the operator.
TEST_CASE("What a library launches within an operator costs its host a launch each") {
  const auto step = [](const char* precision) {
    return iteration_of(scenario_from(one_gpu(precision, 1, "200 us")));
  };
  const LoadedScenario tensor_cores = scenario_from(one_gpu("tf32", 1, "200 us"));
  const std::int64_t within = library_launches_of(describe_job(tensor_cores));
  CHECK(within == 3 * (3 * 53 - 1));  // each convolution's three products, but the image's gradient
  CHECK(step("tf32") == step("fp32") + Duration::microseconds(5) * within);
}

TEST_CASE("What the GPU waits for its host stands under host overhead, and the rest is its kernels") {
  const LoadedScenario scenario = scenario_from(one_gpu("bf16", 1, "200 us"));
  const Report report = predict(scenario, {.with_band = false}).report;
  CHECK(report.breakdown.host_overhead == report.iteration - kernels_of(scenario));
  CHECK(sum(report.breakdown) == report.iteration);
  CHECK(std::any_of(report.critical_path.begin(), report.critical_path.end(),
                    [](const PathItem& item) { return item.what == "wait for the host"; }));
}

// The optimizer's first kernel is not issued before backward has ended and its gradients are checked.
TEST_CASE("What a GradScaler reads back each step costs at least an operator and a launch") {
  const LoadedScenario scenario = scenario_from(one_gpu("amp_fp16", 256, "6 us"));
  const Duration waiting = waiting_for_host(scenario, describe_job(scenario), {});
  CHECK(waiting == Duration::microseconds(11));
  CHECK(iteration_of(scenario) == kernels_of(scenario) + waiting);
}

TEST_CASE(
    "A step that is waited for each time takes in the plan what it takes alone, at any speed of the host") {
  for (const char* operator_time : {"2 us", "20 us", "50 us", "200 us"})
    for (const std::int64_t micro_batches : {1, 3}) {
      CAPTURE(operator_time);
      CAPTURE(micro_batches);
      Json given = one_gpu("amp_fp16", 8, operator_time);
      given["training"]["gradient_accumulation"] = micro_batches;
      const LoadedScenario scenario = scenario_from(given);
      CHECK(iteration_of(scenario) == single_gpu_time(scenario));
    }
}

// Walked by hand: three kernels of 10 us, an operator and launch of 15 us each, and an optimizer without kernels.
// The first is there after 15 us, the second at 30 (the GPU has ended at 25) and the third at 45.
TEST_CASE("The host walks a step kernel by kernel, and the GPU waits where it is ahead") {
  const Scenario scenario = scenario_from(one_gpu("amp_fp16", 1, "10 us"));
  Job job;
  job.training.strategy = "single";
  for (const char* name : {"first", "second"})
    job.layers.push_back(
        {.name = name,
         .forward = {.work_class = WorkClass::fixed, .launches = 1, .duration = Duration::microseconds(10)},
         .backward = {},
         .gradients = {},
         .recomputed = {}});
  job.layers[1].backward = job.layers[0].forward;
  std::vector<Duration> waiting;
  for (const IssuedWork& work : issued_step(scenario, job, {})) waiting.push_back(work.waiting);
  const auto us = [](std::int64_t count) { return Duration::microseconds(count); };
  CHECK(waiting == std::vector<Duration>{us(0), us(15), us(5), us(5), us(0)});
}

TEST_CASE("A compiled graph costs four operators before its first kernel, and each kernel half of one") {
  Json given = one_gpu("amp_fp16", 256, "10 us");
  given["compute"]["kernels"] = "compiled";
  const LoadedScenario scenario = scenario_from(given);
  const std::vector<IssuedWork> step = issued_step(scenario, describe_job(scenario), {});
  CHECK(step[0].until_first == Duration::microseconds(10));
  CHECK(step[1].until_first == Duration::microseconds(10 + 40));
  CHECK(step[2].until_first <= Duration::microseconds(10));
}

TEST_CASE("Where graphs are launched whole nobody is behind, however small the batch") {
  const LoadedScenario scenario = scenario_from(one_gpu("amp_fp16", 1, "0 us"));
  CHECK_FALSE(describe_job(scenario).host.has_value());
  CHECK(iteration_of(scenario) == kernels_of(scenario));
}

TEST_CASE("A measured step had its host in it: it takes what was measured") {
  for (const char* precision : {"bf16", "amp_fp16"}) {
    Json given = one_gpu(precision, 8, "200 us");
    given["compute"]["single_gpu_iteration"] = "123.456 ms";
    const LoadedScenario scenario = scenario_from(given);
    CHECK_FALSE(describe_job(scenario).host.has_value());
    CHECK(iteration_of(scenario) == Duration::microseconds(123'456));
  }
}

// Where kernels were measured to be no faster than modelled: what the GPU waits is modelled with them.
TEST_CASE("A step that is transferred to a batch of one sample takes no less than its host") {
  Json given = one_gpu("bf16", 256, "40 us");
  given["compute"]["memory_format"] = "channels_last";
  given["compute"]["single_gpu_iteration"] = "120 ms";
  const LoadedScenario small = scenario_from(given, {.overrides = {{"model.batch_per_gpu", "1"}}});
  Json alone = one_gpu("bf16", 1, "40 us");
  alone["compute"]["memory_format"] = "channels_last";
  const Duration host = Duration::microseconds(45) * launches_of(describe_job(scenario_from(alone)));
  CHECK(iteration_of(small) >= host);
  CHECK(iteration_of(small) < host * 2);
}

// Four sequences of 1,024 tokens on one GPU.
Json one_block(const char* precision, std::int64_t micro_batches = 1) {
  return {{"cluster", {{"machine", "dgx_h100"}, {"gpus_per_node", 1}}},
          {"model",
           {{"family", "transformer"},
            {"style", "llama"},
            {"layers", 1},
            {"hidden", 1024},
            {"heads", 8},
            {"ffn", 4096},
            {"vocabulary", 1024},
            {"sequence_length", 1024},
            {"batch_per_gpu", 4},
            {"precision", precision}}},
          {"training",
           {{"strategy", "single"}, {"optimizer", "adamw"}, {"gradient_accumulation", micro_batches}}},
          {"compute", {{"kernels", "eager"}}}};
}

TEST_CASE("In fp8 are the linear layers of the blocks; attention and the head take what they take in bf16") {
  const Job half = describe_job(scenario_from(one_block("bf16")));
  const Job fp8 = describe_job(scenario_from(one_block("fp8")));
  for (std::size_t layer = 0; layer < half.layers.size(); ++layer) {
    const KernelWork& before = half.layers[layer].forward;
    const KernelWork& after = fp8.layers[layer].forward;
    if (before.products == no_products)
      continue;
    CAPTURE(half.layers[layer].name);
    const bool is_linear = std::holds_alternative<GemmShape>(half.products[before.products].front().shape);
    const bool is_in_fp8 = is_linear && half.layers[layer].block >= 0;
    CHECK((fp8.product_times[after.products].whole < half.product_times[before.products].whole) == is_in_fp8);
    CHECK((after.pass_bytes > before.pass_bytes) == is_in_fp8);
  }
}

// Read, read and written, but for the first of the two micro-batches.
TEST_CASE("Gradients of more than one micro-batch are added up, tensor by tensor") {
  const Job once = describe_job(scenario_from(one_block("bf16")));
  const Job twice = describe_job(scenario_from(one_block("bf16", 2)));
  const auto bytes_of = [](const KernelWork& work) { return work.bytes + work.pass_bytes; };
  for (std::size_t layer = 0; layer < once.layers.size(); ++layer) {
    const LayerWork& work = once.layers[layer];
    CAPTURE(work.name);
    std::int64_t gradients = 0;
    for (const std::uint32_t gradient : work.gradients) gradients += once.gradients[gradient].bytes.count();
    if (work.forward.products == no_products)
      continue;
    CHECK(bytes_of(twice.layers[layer].backward) - bytes_of(work.backward) == gradients * 3 / 2);
    CHECK(twice.layers[layer].backward.launches - work.backward.launches ==
          static_cast<std::int64_t>(work.gradients.size()));
  }
}

// cuDNN has kernels of its own from Hopper on.
TEST_CASE(
    "FlashAttention-2 is slower than cuDNN's kernels on Hopper alone, its first version twice as slow") {
  for (const char* machine : {"dgx_h100", "dgx_a100_80gb"}) {
    Json given = one_block("bf16");
    given["cluster"]["machine"] = machine;
    const auto attention_time = [&](const char* backend) {
      given["compute"]["attention_backend"] = backend;
      const Job job = describe_job(scenario_from(given));
      for (std::size_t run = 0; run < job.products.size(); ++run)
        if (std::holds_alternative<AttentionShape>(job.products[run].front().shape))
          return job.product_times[run].whole - job.product_times[run].starts;
      return Duration::zero();
    };
    const bool is_hopper = std::string(machine) == "dgx_h100";
    CHECK((attention_time("flash_attention") > attention_time("cudnn_attention")) == is_hopper);
    CHECK((attention_time("flash_attention") == attention_time("cudnn_attention")) == !is_hopper);
    CHECK(attention_time("flash_attention_1") == attention_time("flash_attention") * 2);
  }
}

TEST_CASE("PyTorch takes FlashAttention's first version until 2.1") {
  Json given = one_block("bf16");
  given["training"] = {{"strategy", "ddp"}, {"framework", "pytorch_ddp"}};
  const auto backend_of = [&](const char* version) {
    given["training"]["framework_version"] = version;
    return scenario_from(given).compute.attention_backend;
  };
  CHECK(backend_of("2.1") == AttentionBackend::flash_attention_1);
  CHECK(backend_of("2.2") == AttentionBackend::flash_attention);
  CHECK(backend_of("2.10") == AttentionBackend::flash_attention);
  given["training"].erase("framework_version");
  CHECK(scenario_from(given).compute.attention_backend == AttentionBackend::flash_attention);
}

TEST_CASE("PyTorch takes cuDNN's attention on Hopper and B200 from 2.11, torchtitan on B200") {
  const auto backend_of = [](const char* framework, const char* version, const char* machine) {
    Json given = one_block("bf16");
    given["cluster"]["machine"] = machine;
    given["training"] = {{"strategy", "fsdp"}, {"framework", framework}, {"framework_version", version}};
    return scenario_from(given).compute.attention_backend;
  };
  CHECK(backend_of("pytorch_fsdp", "2.10", "dgx_h100") == AttentionBackend::flash_attention);
  CHECK(backend_of("pytorch_fsdp", "2.11", "dgx_h100") == AttentionBackend::cudnn_attention);
  CHECK(backend_of("pytorch_fsdp", "2.11", "hgx_b200") == AttentionBackend::cudnn_attention);
  CHECK(backend_of("pytorch_fsdp", "2.11", "dgx_a100_80gb") == AttentionBackend::flash_attention);
  CHECK(backend_of("torchtitan", "0.2", "hgx_b200") == AttentionBackend::cudnn_attention);
  CHECK(backend_of("torchtitan", "0.2", "dgx_h100") == AttentionBackend::flash_attention);
}

// Of the scores, fp32: the mask is filled in (read, written), softmax reads and writes; backward a product and softmax
// read two and write one each, the mask is filled in a copy (read and written twice).
TEST_CASE("In full precision Megatron's softmax is not fused, whatever else is") {
  Json given = one_block("fp32");
  given["model"]["attention"] = "unfused";
  given["model"]["dropout"] = false;
  given["compute"]["modules"] = "megatron";
  constexpr std::int64_t scores = 4 * 8 * 1024 * 1024;
  for (const char* kernels : {"eager", "fused"}) {
    given["compute"]["kernels"] = kernels;
    const Job job = describe_job(scenario_from(given));
    const auto softmax = std::find_if(job.layers.begin(), job.layers.end(),
                                      [](const LayerWork& work) { return work.name.ends_with(".softmax"); });
    REQUIRE(softmax != job.layers.end());
    CHECK(softmax->forward.bytes == 4 * 4 * scores);
    CHECK(softmax->backward.bytes == 10 * 4 * scores);
  }
}

// Megatron-LM's dispatcher and grouped products need the numbers of tokens on the host.
TEST_CASE(
    "Before the experts of each block the host waits for how many tokens come, unless they are padded") {
  Json given = one_gpu("bf16", 2, "200 us");
  given["model"] = {{"family", "transformer"},
                    {"style", "llama"},
                    {"layers", 3},
                    {"hidden", 64},
                    {"heads", 8},
                    {"ffn", 96},
                    {"vocabulary", 1000},
                    {"sequence_length", 128},
                    {"experts", 8},
                    {"experts_per_token", 2},
                    {"batch_per_gpu", 2},
                    {"precision", "bf16"}};
  const auto waits_in = [](const Json& scenario) {
    const Job job = describe_job(scenario_from(scenario));
    REQUIRE(job.host.has_value());
    const auto is_set = [](const std::optional<Duration>& wait) { return wait.has_value(); };
    return std::count_if(job.host->count_waits.begin(), job.host->count_waits.end(), is_set);
  };
  CHECK(waits_in(given) == 3);
  const Duration waiting = iteration_of(scenario_from(given));
  given["model"]["capacity_factor"] = 1;
  CHECK(waits_in(given) == 0);
  CHECK(iteration_of(scenario_from(given)) <= waiting);
}

}  // namespace lockstep::host_issue_test
