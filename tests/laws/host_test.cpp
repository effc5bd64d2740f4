// The host that issues kernels: what must hold of it for any model, strategy and speed.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sim/run/describe_job.h"
#include "sim/run/host_issue.h"
#include "sim/run/run_plan.h"
#include "sim/run/simulate.h"
#include "sim/run/single_gpu.h"
#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep::host_law {

using Json = nlohmann::ordered_json;

Json small_batch(const std::string& model, const char* precision, const char* kernels = "eager") {
  return {{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
          {"model", {{"name", model}, {"batch_per_gpu", 1}, {"precision", precision}}},
          {"training", {{"strategy", "single"}, {"optimizer", "adamw"}}},
          {"compute", {{"kernels", kernels}}}};
}

// On 2 x 4 GPUs, with a host that is behind for some kernels and ahead of others.
Json on_eight(const std::string& strategy, const char* precision, const char* operator_time) {
  Json given = small_batch("resnet50", precision);
  Json machine{{"based_on", "dgx_a100_80gb"}};
  machine["host"]["operator_time"] = operator_time;
  given["cluster"] = {{"machine", machine}, {"nodes", 2}, {"gpus_per_node", 4}};
  given["model"]["batch_per_gpu"] = 16;
  given["training"]["strategy"] = strategy;
  return given;
}

Scenario with_host(Scenario scenario, Duration operator_time, Duration launch) {
  scenario.cluster.machine.host.operator_time = operator_time;
  scenario.cluster.gpu.host_launch = launch;
  return scenario;
}

TEST_CASE("A slower framework or a slower launch never makes a step of any model shorter") {
  const auto us = [](std::int64_t count) { return Duration::microseconds(count); };
  for (const std::string& model : shipped_profiles().names(ProfileKind::model))
    for (const char* precision : {"bf16", "amp_fp16"}) {
      CAPTURE(model);
      CAPTURE(precision);
      const Scenario scenario = scenario_from(small_batch(model, precision));
      Duration before = single_gpu_time(with_host(scenario, us(0), us(5)));
      for (const std::int64_t operator_us : {1, 6, 30, 150}) {
        const Duration step = single_gpu_time(with_host(scenario, us(operator_us), us(5)));
        CHECK(step >= before);
        CHECK(single_gpu_time(with_host(scenario, us(operator_us), us(10))) >= step);
        before = step;
      }
    }
}

TEST_CASE("Eager kernels never take less than compiled ones, their host with them, for any model") {
  for (const std::string& model : shipped_profiles().names(ProfileKind::model))
    for (const char* precision : {"bf16", "amp_fp16"}) {
      CAPTURE(model);
      CAPTURE(precision);
      CHECK(single_gpu_time(scenario_from(small_batch(model, precision, "eager"))) >=
            single_gpu_time(scenario_from(small_batch(model, precision, "compiled"))));
    }
}

TEST_CASE("A wider CUDA graph never makes a step of any model longer") {
  for (const std::string& model : shipped_profiles().names(ProfileKind::model))
    for (const char* kernels : {"eager", "compiled", "fused"}) {
      CAPTURE(model);
      CAPTURE(kernels);
      Json given = small_batch(model, "bf16", kernels);
      const auto step_with = [&](const char* scope) {
        given["compute"]["cuda_graph_scope"] = scope;
        return single_gpu_time(scenario_from(given));
      };
      const Duration launched_one_by_one = step_with("none");
      const Duration by_layer = step_with("layer");
      CHECK(by_layer <= launched_one_by_one);
      CHECK(step_with("full_iteration") <= by_layer);
    }
}

// Of the passes of a step, how many kernels, or runs of them, the host issues.
std::size_t issued_in_passes(const Json& given) {
  const Scenario scenario = scenario_from(given);
  const Job job = describe_job(scenario);
  const std::vector<IssuedWork> step = issued_step(scenario, job, single_gpu_scale(scenario, job));
  return static_cast<std::size_t>(std::ranges::count_if(step, [](const IssuedWork& work) {
    return work.category != Category::optimizer && work.until_first > Duration::zero();
  }));
}

TEST_CASE("A CUDA graph is launched once a layer and pass, its kernels with it, or once a step") {
  Json given = small_batch("gpt2", "bf16");
  const std::vector<LayerWork> layers = describe_job(scenario_from(given)).layers;
  const auto is_outside = [](const LayerWork& layer) {
    return layer.block < 0 && layer.forward.launches > 0;
  };
  const auto outside = static_cast<std::size_t>(std::ranges::count_if(layers, is_outside));
  constexpr std::size_t blocks = 12;  // of GPT-2
  constexpr std::size_t passes = 2;
  CHECK(issued_in_passes(given) > passes * (blocks + outside));
  given["compute"]["cuda_graph_scope"] = "layer";
  CHECK(issued_in_passes(given) == passes * (blocks + outside));
  given["compute"]["cuda_graph_scope"] = "full_iteration";
  CHECK(issued_in_passes(given) == 0);
}

// Of a model's layers, one way: the blocks that have a graph, and how many are issued beside them.
struct CapturedLayers {
  std::set<std::int64_t> blocks = {};
  std::size_t beside = 0;
};

CapturedLayers captured_layers(const std::vector<LayerWork>& layers) {
  CapturedLayers captured;
  std::set<std::int64_t> met_experts;
  for (const LayerWork& layer : layers) {
    if (layer.counts_rows)
      met_experts.insert(layer.block);
    if (layer.forward.launches == 0)
      continue;
    if (layer.block < 0 || met_experts.contains(layer.block))
      ++captured.beside;
    else
      captured.blocks.insert(layer.block);
  }
  return captured;
}

TEST_CASE(
    "Where tokens go to experts a layer's CUDA graph has ended, and their kernels are issued one by one") {
  Json given = small_batch("mixtral_8x7b", "bf16", "fused");
  const std::size_t one_by_one = issued_in_passes(given);
  given["compute"]["cuda_graph_scope"] = "layer";
  const CapturedLayers captured = captured_layers(describe_job(scenario_from(given)).layers);
  constexpr std::size_t blocks = 32;  // of Mixtral 8x7B
  constexpr std::size_t passes = 2;
  CHECK(captured.blocks.size() == blocks);
  CHECK(captured.beside > blocks);
  CHECK(issued_in_passes(given) == passes * (blocks + captured.beside));
  CHECK(one_by_one > passes * (blocks + captured.beside));
}

// GPT-2 in fp16: the host waits for GradScaler's check, issues the optimizer kernel by kernel, and then all passes.
TEST_CASE("A graph of all passes starts once its host has issued the optimizer") {
  Json given = small_batch("gpt2", "amp_fp16", "fused");
  given["compute"]["cuda_graph_scope"] = "full_iteration";
  const Duration slow = Duration::milliseconds(50);
  const Scenario scenario = with_host(scenario_from(given), slow, Duration::microseconds(5));
  const Job job = describe_job(scenario);
  Duration issuing;  // the optimizer, and the graph after it
  Duration passes;
  for (const IssuedWork& work : issued_step(scenario, job, single_gpu_scale(scenario, job)))
    if (work.category == Category::optimizer)
      issuing += work.until_first + work.after_first;
    else
      passes += work.on_gpu;
  REQUIRE(issuing > slow * 2);
  CHECK(single_gpu_time(scenario) >= issuing + passes);
}

TEST_CASE("Folding changes nothing where the host is behind, under any strategy") {
  for (const char* strategy : {"ddp", "fsdp", "zero1", "zero3", "horovod", "local_sgd"})
    for (const char* precision : {"bf16", "amp_fp16"}) {
      CAPTURE(strategy);
      CAPTURE(precision);
      const Json given = on_eight(strategy, precision, "40 us");
      const LoadedScenario folded = scenario_from(given);
      const LoadedScenario unfolded = scenario_from(given, {.fold = false});
      REQUIRE(simulate(folded).job.host.has_value());
      CHECK(first_difference(to_json(summarise(folded, simulate(folded)), folded),
                             to_json(summarise(unfolded, simulate(unfolded)), unfolded)) == "");
    }
}

// Of every kernel, whether the GPU waits for it alone or not, in steps that begin anew: the optimizer last, as it
// is written.
std::vector<Duration> all_of(const std::vector<IssuedWork>& step) {
  std::vector<Duration> all{step.front().until_first};
  for (std::size_t i = 1; i < step.size(); ++i) all.push_back(step[i - 1].after_first + step[i].until_first);
  std::rotate(all.begin(), all.begin() + 1, all.end());
  return all;
}

// From the end of the warm-up to the end, on the first rank's GPU.
Duration steady_length(const Scenario& scenario, const Job& job) {
  const auto cluster = build_cluster(scenario);
  const Run run = run_plan(write_plan(job, *cluster, {.iterations = 4}), scenario, job, *cluster);
  std::vector<Time> ends(run.iterations.size());
  for (std::size_t i = 0; i < run.iterations.size(); ++i)
    for (std::uint32_t op = run.iterations[i].first.index; op < run.iterations[i].last.index; ++op)
      if (run.plan.lane[op] == run.lanes.compute.front())
        ends[i] = std::max(ends[i], run.timeline.end[op]);
  return ends.back() - ends.front();
}

// Kernels that nothing waits for are left out of the plan, because messages only ever delay the GPU.
TEST_CASE("Where the GPU does not wait alone it never does: a plan with every kernel's issue takes as long") {
  for (const char* strategy : {"ddp", "fsdp", "zero1"})
    for (const char* operator_time : {"6 us", "40 us", "100 us"}) {
      CAPTURE(strategy);
      CAPTURE(operator_time);
      Scenario scenario = scenario_from(on_eight(strategy, "amp_fp16", operator_time));
      scenario.compute.slowdown_during_communication = Ratio::one();  // so that nothing is rounded on the way
      Job job = describe_job(scenario);
      const Duration as_written = steady_length(scenario, job);
      REQUIRE(job.host.has_value());
      const std::vector<IssuedWork> step = issued_step(scenario, job, {});
      job.host->issuing = all_of(step);
      job.host->reads_back = step.back().after_first;
      CHECK(steady_length(scenario, job) == as_written);
    }
}

TEST_CASE("A host that is behind makes no rank faster, and messages hide behind what is waited for") {
  for (const char* strategy : {"ddp", "fsdp", "zero3", "horovod"}) {
    CAPTURE(strategy);
    Duration before;
    for (const char* operator_time : {"0 us", "6 us", "20 us", "60 us", "200 us"}) {
      const LoadedScenario scenario = scenario_from(on_eight(strategy, "bf16", operator_time));
      const Duration iteration = predict(scenario, {.with_band = false}).report.iteration;
      CHECK(iteration >= before);
      before = iteration;
    }
  }
}

// Eight blocks on one node, whose host takes 200 us an operator: behind for good.
Json pipeline_of(std::int64_t stages, std::int64_t micro_batches, const char* schedule = "1f1b",
                 bool has_sync = false) {
  Json machine{{"based_on", "dgx_a100_80gb"}};
  machine["host"]["operator_time"] = "200 us";
  Json given{{"cluster", {{"machine", machine}, {"gpus_per_node", stages}}},
             {"model",
              {{"family", "transformer"},
               {"style", "gpt2"},
               {"layers", 8},
               {"hidden", 512},
               {"heads", 8},
               {"vocabulary", 1024},
               {"sequence_length", 128},
               {"precision", "bf16"}}},
             {"training",
              {{"strategy", "ddp"},
               {"optimizer", "adamw"},
               {"pipeline_parallel", stages},
               {"micro_batch", 1},
               {"gradient_accumulation", micro_batches},
               {"pipeline_schedule", schedule}}},
             {"compute", {{"kernels", "eager"}}}};
  if (stages > 1)
    given["training"]["batch_p2p_sync"] = has_sync;
  return given;
}

Duration issued_by(const HostWork& work) {
  return std::accumulate(work.issuing.begin(), work.issuing.end(), Duration::zero());
}

// A message is an operator on each side; each stage has an optimizer, and the last a copy of tied weights.
TEST_CASE("The hosts of a pipeline's stages issue together what one host issues of the whole model") {
  constexpr std::int64_t micro_batches = 4;
  const Duration whole = issued_by(*describe_job(scenario_from(pipeline_of(1, micro_batches))).host);
  for (const char* schedule : {"gpipe", "1f1b"}) {
    CAPTURE(schedule);
    const Job job = describe_job(scenario_from(pipeline_of(2, micro_batches, schedule)));
    const Duration stages = issued_by(*job.stages[0].host) + issued_by(*job.stages[1].host);
    CHECK(stages >= whole);
    CHECK(stages <= whole + Duration::microseconds(205) * (4 * micro_batches + 32));
  }
}

constexpr std::array waits{"batch_p2p_sync", "broadcast_data_sync", "check_for_nan_in_loss"};

TEST_CASE("A slower host never makes a pipeline faster, nor does one that waits for its GPU anywhere") {
  for (const char* schedule : {"gpipe", "1f1b", "zb_h1"}) {
    CAPTURE(schedule);
    Duration before;
    for (const char* operator_time : {"0 us", "6 us", "60 us", "200 us"}) {
      CAPTURE(std::string(operator_time));
      Json given = pipeline_of(4, 8, schedule);
      given["cluster"]["machine"]["host"]["operator_time"] = operator_time;
      const Duration iteration = predict(scenario_from(given), {.with_band = false}).report.iteration;
      CHECK(iteration >= before);
      before = iteration;
      for (const char* wait : waits) {
        CAPTURE(std::string(wait));
        Json waiting = given;
        waiting["training"][wait] = true;
        CHECK(predict(scenario_from(waiting), {.with_band = false}).report.iteration >= iteration);
      }
    }
  }
}

// With nothing beside it, which is what messages slow.
TEST_CASE("A host that waits for every kernel makes no pipeline faster") {
  for (const char* operator_time : {"0 us", "6 us", "200 us"}) {
    CAPTURE(std::string(operator_time));
    Json given = pipeline_of(4, 8, "1f1b");
    given["cluster"]["machine"]["host"]["operator_time"] = operator_time;
    given["communication"]["overlap"] = false;
    const Duration ahead = predict(scenario_from(given), {.with_band = false}).report.iteration;
    given["training"]["cuda_launch_blocking"] = true;
    CHECK(predict(scenario_from(given), {.with_band = false}).report.iteration >= ahead);
  }
}

TEST_CASE("A micro-batch is waited for before its forward, and its loss before its backward") {
  Json given = pipeline_of(1, 4);
  for (const char* wait : {"broadcast_data_sync", "check_for_nan_in_loss"}) given["training"][wait] = true;
  const LoadedScenario scenario = scenario_from(given);
  const HostWork host = *describe_job(scenario).host;
  const auto awaited = [](const HostWork& work) {
    std::vector<bool> passes;
    for (const auto& wait : work.pass_waits) passes.push_back(wait.has_value());
    return passes;
  };
  CHECK(awaited(host) == std::vector<bool>(8, true));
  given["training"]["broadcast_data_sync"] = false;
  CHECK(awaited(*describe_job(scenario_from(given)).host) ==
        std::vector<bool>{false, true, false, true, false, true, false, true});
}

// What one category of a step's kernels takes its host.
Duration issued_of(const std::vector<IssuedWork>& step, Category category) {
  Duration sum;
  for (const IssuedWork& work : step)
    if (work.category == category)
      sum += work.until_first + work.after_first;
  return sum;
}

TEST_CASE(
    "Megatron's modules cost a host more than operators alone, forward most, and the optimizer as before") {
  const auto scenario_with = [](const char* modules) {
    Json given = pipeline_of(1, 1);
    given["compute"]["modules"] = modules;
    return scenario_from(given);
  };
  const auto step_with = [&](const char* modules) {
    const LoadedScenario scenario = scenario_with(modules);
    return issued_step(scenario, describe_job(scenario), {});
  };
  const std::vector<IssuedWork> torch = step_with("torch");
  const std::vector<IssuedWork> megatron = step_with("megatron");
  const std::vector<IssuedWork> core = step_with("megatron_core");
  const auto ratio = [&](Category category) {
    return static_cast<double>(issued_of(megatron, category).picoseconds()) /
           static_cast<double>(issued_of(torch, category).picoseconds());
  };
  CHECK(issued_of(megatron, Category::optimizer) == issued_of(torch, Category::optimizer));
  CHECK(ratio(Category::backward) >= 1);
  CHECK(ratio(Category::forward) > ratio(Category::backward));
  // Megatron Core's training loop takes as long as 500 operators once a step, after the norm was read back.
  const ClusterSpec& cluster = scenario_with("torch").cluster;
  const Duration kernel = operator_time(cluster.machine.host) + cluster.gpu.host_launch;
  CHECK(issued_of(core, Category::optimizer) == issued_of(torch, Category::optimizer) + kernel * 500);
  CHECK(core.front().begins_anew);
  CHECK_FALSE(torch.front().begins_anew);
  CHECK(issued_of(core, Category::forward) == issued_of(megatron, Category::forward));
  CHECK(issued_of(core, Category::backward) == issued_of(megatron, Category::backward));
}

// Bytes of a logit. Megatron-LM: read for the largest and for the sum; read and written by the difference, the power and
// the quotient. PyTorch: read and written; filled with zeros, read twice and written.
struct LossOf {
  const char* modules;
  std::int64_t forward;
  std::int64_t backward;
};

void check_loss(const LossOf& expected, const std::string& precision) {
  Json given = pipeline_of(1, 1);
  given["model"]["precision"] = precision;
  given["compute"]["modules"] = expected.modules;
  given["model"]["vocabulary"] = 50'304;
  const auto time_with = [&](bool is_fused) {
    given["compute"]["cross_entropy_loss_fusion"] = is_fused;
    const LoadedScenario scenario = scenario_from(given);
    return single_gpu_time(with_host(scenario, Duration::zero(), Duration::zero()));
  };
  const Duration fused = time_with(true);
  CHECK(time_with(false) > fused);
  const std::int64_t cast = precision == "fp32" ? 0 : 2 + 4;
  const std::vector<LayerWork> layers = describe_job(scenario_from(given)).layers;
  CHECK(layers.back().is_loss);
  CHECK(layers.back().forward.bytes == 128 * 50'304 * (expected.forward + cast));
  CHECK(layers.back().backward.bytes == 128 * 50'304 * (expected.backward + cast));
}

TEST_CASE(
    "A loss of one operator after another is never faster than a fused one, and moves each logit in fp32") {
  for (const char* precision : {"fp32", "bf16"}) {
    check_loss({.modules = "megatron", .forward = 2 * 4 + 3 * 8, .backward = 8}, precision);
    check_loss({.modules = "torch", .forward = 8, .backward = 4 + 12}, precision);
  }
}

TEST_CASE("Folding changes nothing where the hosts of a pipeline's stages are behind") {
  for (const bool has_sync : {false, true}) {
    Json given = pipeline_of(4, 8, "1f1b", has_sync);
    given["training"]["check_for_nan_in_loss"] = has_sync;
    given["training"]["broadcast_data_sync"] = has_sync;
    given["cluster"]["gpus_per_node"] = 8;
    const LoadedScenario folded = scenario_from(given);
    const LoadedScenario unfolded = scenario_from(given, {.fold = false});
    REQUIRE(simulate(folded).job.stages.front().host.has_value());
    CHECK(first_difference(to_json(summarise(folded, simulate(folded)), folded),
                           to_json(summarise(unfolded, simulate(unfolded)), unfolded)) == "");
  }
}

}  // namespace lockstep::host_law
