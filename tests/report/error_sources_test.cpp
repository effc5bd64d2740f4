#include "sim/report/error_sources.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/scenarios.h"

namespace lockstep::error_sources_test {

// Ten per cent either way, in ratios: a logarithm of ln 1.1 above and of ln 0.9 below.
constexpr ErrorRange tenth{Ratio::percent(-10), Ratio::percent(10)};

ErrorModel model() {
  ErrorModel errors;
  errors.measured = tenth;
  errors.in_node = tenth;
  errors.between_nodes = tenth;
  errors.transferred = tenth;
  errors.unanchored = {{"convolutions fp32", tenth},
                       {"products fp32", {Ratio::percent(-20), Ratio::percent(5)}}};
  return errors;
}

LogRange sum_of(const StepConditions& conditions) {
  std::vector<LogRange> ranges;
  for (const ErrorSource& source : sources_of(conditions, model())) ranges.push_back(source.range);
  return root_of_squares(ranges);
}

TEST_CASE("Ranges add as the root of their squares, low and high ends apart") {
  const LogRange sum = root_of_squares({{-3, 5}, {-4, 12}});
  CHECK(sum.low == -5);
  CHECK(sum.high == 13);
  CHECK(root_of_squares({}).low == 0);
}

TEST_CASE("Each doubling of ranks is a source of its own; what is carried over misses alike at each") {
  const LogRange ranks = sum_of({.is_measured = true, .kind = "", .in_node = 3});
  CHECK(ranks.high == doctest::Approx(std::sqrt(3) * std::log(1.1)));
  CHECK(ranks.low == doctest::Approx(std::sqrt(3) * std::log(0.9)));
  const LogRange carried = sum_of({.is_measured = true, .kind = "", .transferred = 3});
  CHECK(carried.high == doctest::Approx(3 * std::log(1.1)));
}

TEST_CASE("Another source never narrows the sum") {
  StepConditions conditions{.is_measured = true, .kind = ""};
  LogRange before = sum_of(conditions);
  const auto is_wider = [&] {
    const LogRange now = sum_of(conditions);
    const bool wider = now.low < before.low && now.high > before.high;
    before = now;
    return wider;
  };
  conditions.transferred = 0.5;
  CHECK(is_wider());
  conditions.in_node = 1;
  CHECK(is_wider());
  conditions.between_nodes = 2;
  CHECK(is_wider());
  conditions.is_measured = false;
  conditions.kind = "convolutions fp32";
  CHECK(is_wider());
}

// The widest of all kinds, whose ends are of two of them: -20 % and +10 %.
TEST_CASE("On an architecture whose kernels nobody timed a step may miss as the worst kind does") {
  const LogRange own = sum_of({.is_measured = false, .kind = "products fp32"});
  const LogRange others = sum_of({.is_measured = false, .kind = "products fp32", .are_compared = false});
  CHECK(own.high == doctest::Approx(std::log(1.05)));
  CHECK(others.high == doctest::Approx(std::log(1.1)));
  CHECK(others.low == doctest::Approx(std::log(0.8)));
}

TEST_CASE("Nobody timed kernels of K80, and somebody those of A100") {
  const auto conditions_on = [](const char* gpu) {
    nlohmann::ordered_json json =
        nlohmann::ordered_json::parse(R"({"model": {"name": "resnet50", "batch_per_gpu": 8}})");
    json["cluster"]["machine"] = {{"gpu", gpu}};
    json["cluster"]["machine"].update(
        {{"name", "one"}, {"source", "a test"}, {"gpus", 1}, {"library", "nccl"}});
    json["cluster"]["machine"]["gpu_links"]["kind"] = "none";
    json["training"]["strategy"] = "single";
    return conditions_of(scenario_from(json));
  };
  CHECK_FALSE(conditions_on("k80").are_compared);
  CHECK(conditions_on("a100_sxm_80gb").are_compared);
}

TEST_CASE("Of a kind that was never compared the widest of all kinds stands in, at both ends") {
  StepConditions conditions{.is_measured = false, .kind = "products int4"};
  const std::vector<ErrorSource> sources = sources_of(conditions, model());
  CHECK(sources.front().range.low == doctest::Approx(std::log(0.8)));
  CHECK(sources.front().range.high == doctest::Approx(std::log(1.1)));
  CHECK(sources.front().name.find("never compared") != std::string::npos);
}

TEST_CASE("A range that does not hold zero is stretched to it") {
  CHECK(log_range({Ratio::percent(10), Ratio::percent(20)}).low == 0);
  CHECK(log_range({Ratio::percent(-20), Ratio::percent(-10)}).high == 0);
}

LoadedScenario step(const nlohmann::ordered_json& model, const nlohmann::ordered_json& compute) {
  nlohmann::ordered_json given{
      {"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 4}, {"nodes", 2}}}};
  given["model"] = model;
  given["compute"] = compute;
  return scenario_from(given);
}

TEST_CASE("The kind of a step is that of its kernels and the width of their operands") {
  const auto kind = [](const char* name, const char* precision) {
    return conditions_of(step({{"name", name}, {"batch_per_gpu", 2}, {"precision", precision}},
                              nlohmann::ordered_json::object()))
        .kind;
  };
  CHECK(kind("resnet50", "fp32") == "convolutions fp32");
  CHECK(kind("resnet50", "tf32") == "convolutions tf32");
  CHECK(kind("resnext50_32x4d", "amp_fp16") == "convolutions half precision");
  CHECK(kind("efficientnet_b0", "amp_fp16") == "depthwise convolutions half precision");
  CHECK(kind("gpt2", "bf16") == "products half precision");
}

TEST_CASE("Ranks are counted from where the step was measured: one GPU, or the anchor's nodes") {
  const nlohmann::ordered_json resnet{{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "amp_fp16"}};
  const StepConditions one = conditions_of(step(resnet, {{"single_gpu_iteration", "100 ms"}}));
  CHECK(one.is_measured);
  CHECK(one.in_node == doctest::Approx(2));
  CHECK(one.between_nodes == doctest::Approx(1));
  CHECK(one.transferred == 0);
  const LoadedScenario anchored =
      predict(step(resnet, {{"anchor", {{"set", {{"cluster.nodes", 1}}}, {"iteration_time", "100 ms"}}}}))
          .scenario;
  CHECK(conditions_of(anchored).in_node == 0);
  CHECK(conditions_of(anchored).between_nodes == doctest::Approx(1));
}

// Twice the batch is twice the work but for what each kernel takes to start: nearly a doubling.
TEST_CASE("An anchor at another batch is carried over") {
  const nlohmann::ordered_json resnet{{"name", "resnet50"}, {"batch_per_gpu", 256}, {"precision", "fp32"}};
  const LoadedScenario anchored =
      predict(
          step(resnet, {{"anchor", {{"set", {{"model.batch_per_gpu", 128}}}, {"iteration_time", "400 ms"}}}}))
          .scenario;
  CHECK(conditions_of(anchored).transferred > 0.8);
  CHECK(conditions_of(anchored).transferred <= 1);
}

}  // namespace lockstep::error_sources_test
