#include "sim/load/training/read_training.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/collective.h"
#include "sim/load/training/option_text.h"
#include "sim/training/strategy.h"
#include "tests/scenario/lab.h"
#include "tests/support/origins.h"

namespace lockstep::read_training_test {

using testing::load_lab;
using testing::load_resnet;
using testing::problems_of_lab;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double mebibytes_in(Bytes size) {
  return static_cast<double>(size.count()) / static_cast<double>(mebi);
}

double first_bucket(Overrides overrides) {
  return mebibytes_in(load_lab(std::move(overrides)).training.ddp.first_bucket);
}

TEST_CASE("PyTorch 1.x makes the first bucket 1 MiB whatever the cap") {
  CHECK(first_bucket({{"training.framework_version", "\"1.13\""}}) == 1);
  CHECK(first_bucket({{"training.framework_version", "\"1.13.1\""}, {"training.bucket_cap_mb", "50"}}) == 1);
}

TEST_CASE("PyTorch whose cap may be unset makes the first bucket 1 MiB only then") {
  CHECK(first_bucket({}) == 1);
  CHECK(first_bucket({{"training.bucket_cap_mb", "25"}}) == 25);
  CHECK(first_bucket({{"training.framework_version", "\"2.3\""}, {"training.bucket_cap_mb", "50"}}) == 1);
  CHECK(first_bucket({{"training.framework_version", "\"2.4\""}, {"training.bucket_cap_mb", "50"}}) == 50);
  CHECK(first_bucket({{"training.framework_version", "\"2.10\""}, {"training.bucket_cap_mb", "50"}}) == 50);
}

TEST_CASE("a first bucket that is stated holds in every version") {
  CHECK(first_bucket({{"training.first_bucket_mb", "0.5"}, {"training.bucket_cap_mb", "50"}}) == 0.5);
  CHECK(first_bucket({{"training.framework_version", "\"1.13\""}, {"training.first_bucket_mb", "2"}}) == 2);
}

// 0.3 MiB are 314,572.8 bytes, rounded down.
TEST_CASE("a cap is written as the number that was read") {
  const LoadedScenario scenario = load_lab({{"training.bucket_cap_mb", "0.3"}});
  CHECK(scenario.training.ddp.bucket_cap == Bytes{314'572});
  CHECK(scenario.resolved["training"]["bucket_cap_mb"] == 0.3);
  CHECK(scenario.resolved["training"]["first_bucket_mb"] == 0.3);
  for (const double cap : {0.001, 1.5, 33.33371, 1e6}) {
    CAPTURE(cap);
    const std::string text = fmt::format("{}", cap);
    CHECK(load_lab({{"training.bucket_cap_mb", text}}).resolved["training"]["bucket_cap_mb"] == cap);
  }
}

TEST_CASE("what is left out has PyTorch's defaults") {
  const TrainingSpec training = load_lab().training;
  CHECK(training.framework == "pytorch_ddp");
  CHECK(training.framework_version == "2.8");
  CHECK(training.ddp.bucket_cap == Bytes{25 * mebi});
  CHECK(training.gradient_accumulation == 1);
  CHECK(training.ddp.broadcast_buffers);
  CHECK_FALSE(training.ddp.gradient_as_bucket_view);
  CHECK(training.compression == Compression{});
}

TEST_CASE("a framework alone chooses its first strategy, and a strategy alone its usual framework") {
  const LoadedScenario deepspeed =
      load_lab({{"training.strategy", "null"}, {"training.framework", "deepspeed"}});
  CHECK(deepspeed.training.strategy == "ddp");
  CHECK(origin_at(deepspeed, "/training/strategy") == "default (the first of deepspeed)");
  CHECK(load_lab({{"training.strategy", "ddp"}}).training.framework == "pytorch_ddp");
}

TEST_CASE("a framework that lacks the strategy is refused with its strategies and with those that have it") {
  const std::vector<std::string> frameworks = valid_frameworks();
  const bool is_there = std::find(frameworks.begin(), frameworks.end(), "pytorch_fsdp") != frameworks.end();
  const std::string found = problems_of_lab({{"training.framework", "pytorch_fsdp"}});
  CHECK(contains(found, "/training/framework: found \"pytorch_fsdp\""));
  CHECK(contains(found, is_there
                            ? "whose strategies are fsdp, hsdp; this is ddp; valid for ddp: pytorch_ddp, "
                            : "expected a valid name"));
}

TEST_CASE("a framework for one machine is refused on two") {
  const std::string found = problems_of_lab({{"training.framework", "tensorflow_mirrored"}});
  CHECK(contains(found, "/training/framework: found \"tensorflow_mirrored\""));
  CHECK(contains(found, "valid here: tensorflow_multiworker"));
}

TEST_CASE(
    "a strategy that follows from its framework is held against the cluster there, where it was chosen") {
  const std::string found =
      problems_of_lab({{"training.strategy", "null"}, {"training.framework", "pytorch_dp"}});
  CHECK(contains(found, "/training/framework: found \"pytorch_dp\", whose strategy is dp: "));
  CHECK(contains(found, "one process, with 4 nodes; valid here: ddp"));
  CHECK_FALSE(contains(found, "required"));
}

TEST_CASE("a stated cap caps the first bucket too where frameworks have no smaller one") {
  const DdpOptions ddp =
      load_lab({{"training.framework", "tensorflow_multiworker"}, {"training.bucket_cap_mb", "50"}})
          .training.ddp;
  CHECK(ddp.first_bucket == Bytes{50 * mebi});
}

TEST_CASE("a compression loads where the strategy takes it, and is refused with those it takes elsewhere") {
  const std::vector<CompressionKind>& taken = strategy_named("ddp").accepts.compressions;
  for (const char* text : {"none", "fp16", "bf16", "topk_1"}) {
    const bool is_taken = std::find(taken.begin(), taken.end(), parse_compression(text)->kind) != taken.end();
    const std::string found = problems_of_lab({{"training.compression", text}});
    CAPTURE(text);
    CHECK(found.empty() == is_taken);
    CHECK(contains(found, "which ddp does not take; valid: none, fp16, bf16") == !is_taken);
  }
}

TEST_CASE("PowerSGD needs matrices: a model whose tensors have shapes") {
  CHECK(contains(problems_of_lab({{"training.compression", "powersgd_2"}}),
                 "no gradient is known to be a matrix; valid: none, fp16, bf16, topk_PERCENT"));
  CHECK(load_resnet({{"training.compression", "powersgd_2"}}).training.compression.rank == 2);
}

TEST_CASE("a compression that keeps nothing or more than there is is refused with the forms there are") {
  CHECK(contains(problems_of_lab({{"training.compression", "powersgd_0"}}), "R from 1 to 1024"));
  CHECK(contains(problems_of_lab({{"training.compression", "topk_101"}}), "at most 100"));
  CHECK(contains(problems_of_lab({{"training.compression", "7"}}),
                 "/training/compression: found 7, expected none"));
}

TEST_CASE("a form of recomputation that does not exist is refused with those that do") {
  CHECK(contains(problems_of_lab({{"training.recompute", "every_0"}}),
                 "every_K or one_in_K with K of 1 or more"));
  CHECK(load_lab({{"training.recompute", "none"}}).training.recompute == Recompute{});
}

TEST_CASE("what a model does not have cannot be computed again") {
  const auto found = [](const char* model, const char* recompute) {
    return problems_of_lab({{"model", std::string(R"({"batch_per_gpu": 1, "name": ")") + model + "\"}"},
                            {"training.recompute", recompute}});
  };
  CHECK(contains(problems_of_lab({{"training.recompute", "full"}}), "no blocks of layers; valid: none"));
  CHECK(contains(found("resnet50", "selective"),
                 "no blocks with attention; valid: none, selective_op, full, every_K"));
  CHECK(found("resnet50", "full") == "");
  CHECK(found("gpt2", "selective") == "");
  CHECK(found("gpt2", "every_3") == "");
}

TEST_CASE("communication.overlap decides Megatron's buckets before that section is read") {
  const auto cap = [](const char* overlap) {
    return load_lab({{"training.framework", "megatron"}, {"communication.overlap", overlap}})
        .training.ddp.bucket_cap;
  };
  CHECK(cap("true") == Bytes{40'000'000 * 4});  // 40 M fp32 gradients
  CHECK(cap("false") > Bytes{100'000 * mebi});
}

TEST_CASE("the scenario's library beats the machine's") {
  const LoadedScenario scenario = load_lab({{"communication.library", "nccl"}});
  CHECK(scenario.communication.library == LibraryKind::nccl);
  CHECK(scenario.communication.collectives_in_flight == 1);
  CHECK(scenario.cluster.calibration.name != "cpu_gloo");
}

TEST_CASE("ratios become whole parts per million, rounded half up") {
  const ComputeSpec compute =
      load_lab({{"compute.scale", "1.25"}, {"compute.slowdown_during_communication", "1.0000015"}}).compute;
  CHECK(compute.scale == Ratio::percent(125));
  CHECK(compute.slowdown_during_communication == Ratio::parts_per_million(1'000'002));
}

TEST_CASE("every name that is listed as valid loads") {
  for (const std::string& algorithm : valid_algorithms()) {
    // What the lab's switches lack is said so; everything else loads.
    const Collective* collective = Registry<Collective>::find(algorithm);
    if (collective == nullptr || collective->lacks == nullptr) {
      CHECK(load_lab({{"communication.algorithm", algorithm}}).communication.algorithm == algorithm);
    }
  }
  for (const std::string& strategy : valid_strategies()) {
    const LoadedScenario scenario = load_lab({{"training.strategy", strategy}, {"cluster.nodes", "1"}});
    CHECK(scenario.training.strategy == strategy);
  }
  for (const std::string& framework : valid_frameworks()) {
    const LoadedScenario scenario =
        load_lab({{"training.strategy", "null"}, {"training.framework", framework}, {"cluster.nodes", "1"}});
    CHECK(scenario.training.framework == framework);
    CHECK(has_strategy(*find_preset(framework), scenario.training.strategy));
  }
}

}  // namespace lockstep::read_training_test
