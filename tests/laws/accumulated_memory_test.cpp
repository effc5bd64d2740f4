// What a rank holds does not grow with the micro-batches between two updates.

#include <doctest/doctest.h>

#include <optional>

#include "sim/report/prediction.h"
#include "sim/training/strategy.h"
#include "tests/support/scenarios.h"

namespace lockstep::accumulated_memory_test {

using Json = nlohmann::ordered_json;

Bytes peak_of(const std::string& strategy, std::optional<int> fsdp_version, std::int64_t micro_batches) {
  Json json = Json::parse(R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 2},
                              "model": {"name": "gpt2_large", "attention": "fused", "batch_per_gpu": 1, "precision": "bf16"},
                              "training": {"optimizer": "adamw"}})");
  json["training"]["strategy"] = strategy;
  json["training"]["gradient_accumulation"] = micro_batches;
  if (fsdp_version)
    json["training"]["fsdp_version"] = *fsdp_version;
  return predict(scenario_from(json), {.with_band = false}).report.memory.peak.total();
}

TEST_CASE("a rank holds as much with sixteen micro-batches as with three, whoever synchronises") {
  for (const std::string& strategy : strategies_in_order()) {
    if (strategy_named(strategy).is_asynchronous || strategy_named(strategy).accepts.one_gpu_only ||
        strategy == "dp")
      continue;
    CAPTURE(strategy);
    using Versions = std::vector<std::optional<int>>;
    const bool has_versions = strategy == "fsdp" || strategy == "hsdp";
    for (const std::optional<int> version : has_versions ? Versions{1, 2} : Versions{std::nullopt})
      CHECK(peak_of(strategy, version, 16) == peak_of(strategy, version, 3));
  }
}

}  // namespace lockstep::accumulated_memory_test
