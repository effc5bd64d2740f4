// What an update of the weights moves, by who wrote the optimizer.

#include "sim/run/optimizer_work.h"

#include <doctest/doctest.h>

#include <array>

#include "sim/run/describe_job.h"
#include "tests/support/scenarios.h"

namespace lockstep::optimizer_work_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array writers{"fused", "per_tensor", "foreach", "for_loop", "primitives"};

KernelWork work_of(const Json& training, const char* kernels, std::int64_t gpus) {
  const Scenario scenario =
      scenario_from(Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", gpus}}},
                         {"model", {{"name", "bert_base"}, {"batch_per_gpu", 2}, {"precision", "fp32"}}},
                         {"training", training},
                         {"compute", {{"optimizer_kernels", kernels}}}});
  return optimizer_work(scenario.model.model, describe_job(scenario), scenario);
}

KernelWork work_of(const char* optimizer, const char* kernels) {
  return work_of({{"strategy", "single"}, {"optimizer", optimizer}}, kernels, 1);
}

std::int64_t parameters() {
  return work_of("adamw", "fused").bytes /
         28;  // weight, gradient and two states read, all but the gradient written
}

TEST_CASE(
    "One pass never moves more than operators in place, nor these more than a formula whose results are "
    "assigned") {
  for (const char* optimizer : {"sgd", "momentum", "adam", "adamw", "lamb"}) {
    CAPTURE(optimizer);
    for (std::size_t i = 1; i < writers.size(); ++i) {
      CAPTURE(writers[i]);
      CHECK(work_of(optimizer, writers[i - 1]).bytes <= work_of(optimizer, writers[i]).bytes);
    }
  }
}

TEST_CASE("Lists of tensors share launches, single tensors do not") {
  const std::int64_t tensors = work_of("sgd", "per_tensor").launches;
  for (const char* optimizer : {"sgd", "momentum", "adamw", "lamb"}) {
    CAPTURE(optimizer);
    CHECK(work_of(optimizer, "per_tensor").launches == tensors);
    CHECK(work_of(optimizer, "fused").launches == divided_up(tensors, 48));
    CHECK(work_of(optimizer, "foreach").launches < work_of(optimizer, "per_tensor").launches);
    CHECK(work_of(optimizer, "for_loop").launches % tensors == 0);
  }
}

// m: two products and their sum; v: the same and a square; root, + epsilon, quotient; decay: a product and a sum; times
// the rate, less that; three results assigned. A product by a constant moves 8 bytes, one of two tensors or a sum 12.
TEST_CASE("Adam's formula is seventeen kernels of 156 bytes a parameter") {
  const KernelWork work = work_of("adamw", "primitives");
  CHECK(work.bytes == parameters() * (2 * 8 + 12 + 3 * 8 + 12 + 2 * 8 + 12 + 8 + 12 + 8 + 12 + 3 * 8));
  CHECK(work.launches == 17 * work_of("adamw", "per_tensor").launches);
}

// Of BERT's twelve blocks and the root around them one flat parameter each; version 2 and DDP leave all apart.
TEST_CASE("Parameters that lie in flat tensors are updated by as many kernels as there are of those") {
  const auto launches = [](Json training) {
    training["optimizer"] = "adamw";
    return work_of(training, "per_tensor", 4).launches;
  };
  const std::int64_t apart = work_of("adamw", "per_tensor").launches;
  CHECK(launches({{"strategy", "ddp"}}) == apart);
  CHECK(launches({{"strategy", "fsdp"}, {"fsdp_version", 2}}) == apart);
  CHECK(launches({{"strategy", "fsdp"}}) == 12 + 1);
  for (const char* stage : {"zero1", "zero2", "zero3"}) {
    CAPTURE(stage);
    CHECK(launches({{"strategy", stage}}) == 1);
  }
  CHECK(launches({{"strategy", "zero1"}, {"framework", "megatron"}}) == apart);
}

// A parameter's bytes beside Adam's 28: its gradient cast (2 read, 4 written) unless it stands in fp32, divided by the
// scale (4 and 4), its copy cast back (4 and 2).
TEST_CASE("fp32 copies of half-precision weights are kept in step") {
  const auto bytes_of = [](const char* precision, Json training) {
    training["optimizer"] = "adam";
    training["strategy"] = "ddp";
    const Scenario scenario =
        scenario_from(Json{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 4}}},
                           {"model", {{"name", "bert_base"}, {"batch_per_gpu", 2}, {"precision", precision}}},
                           {"training", training},
                           {"compute", {{"optimizer_kernels", "fused"}}}});
    const KernelWork work = optimizer_work(scenario.model.model, describe_job(scenario), scenario);
    CHECK(work.bytes % parameters() == 0);
    return work.bytes / parameters();
  };
  CHECK(bytes_of("fp16", {{"framework", "megatron"}}) == 28 + 6 + 8 + 6);
  CHECK(bytes_of("bf16", {{"framework", "megatron"}}) == 28 + 6);  // added up in fp32
  CHECK(bytes_of("bf16", {{"framework", "megatron"}, {"accumulate_allreduce_grads_in_fp32", false}}) ==
        28 + 6 + 6);
  CHECK(bytes_of("fp16", {{"framework", "deepspeed"}, {"gradient_clipping", false}}) == 28 + 6 + 8 + 6);
  CHECK(bytes_of("fp16", {{"framework", "deepspeed"}, {"gradient_clipping", true}}) == 28 + 6 + 6);
  CHECK(bytes_of("amp_fp16", Json::object()) == 28 + 8);
  CHECK(bytes_of("amp_bf16", Json::object()) == 28);
  CHECK(bytes_of("bf16", Json::object()) == 14);  // no copies: all of it in half precision
}

TEST_CASE("No optimizer takes no time") {
  CHECK(work_of("none", "primitives").duration == Duration::zero());
  CHECK(work_of("none", "primitives").bytes == 0);
}

}  // namespace
}  // namespace lockstep::optimizer_work_test
