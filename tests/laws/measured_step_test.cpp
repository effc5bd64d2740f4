// What must hold of every step that a measured one is transferred to.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/run/single_gpu.h"
#include "tests/support/scenarios.h"

namespace lockstep::measured_step_law {

using Json = nlohmann::ordered_json;

struct Setting {
  const char* machine;
  const char* model;
  const char* precision;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all{{"dgx_a100_40gb", "resnet50", "amp_fp16"},
                                        {"dgx1_v100", "vgg16", "fp32"},
                                        {"dgx_h100", "bert_large", "bf16"},
                                        {"dgx_h100", "gpt2", "amp_bf16"}};
  return all;
}

constexpr std::int64_t base_batch = 16;

Json one_gpu(const Setting& setting) {
  return {
      {"cluster", {{"machine", setting.machine}, {"gpus_per_node", 1}}},
      {"model", {{"name", setting.model}, {"batch_per_gpu", base_batch}, {"precision", setting.precision}}},
      {"training", {{"strategy", "single"}}}};
}

std::string text_of(Duration time) {
  return std::to_string(time.picoseconds()) + " ps";
}

Duration step_at(const Json& given, std::int64_t batch) {
  return single_gpu_time(
      scenario_from(given, {.overrides = {{"model.batch_per_gpu", std::to_string(batch)}}}));
}

// Times that computing takes as it is modelled, and half as long again, and twice as long.
std::vector<Json> anchored(const Setting& setting) {
  const Json given = one_gpu(setting);
  const Duration modelled = single_gpu_time(scenario_from(given));
  std::vector<Json> all;
  for (const std::int64_t tenths : {10, 15, 20}) {
    Json with_step = given;
    with_step["compute"]["single_gpu_iteration"] = text_of(scaled(modelled, tenths, 10));
    all.push_back(std::move(with_step));
  }
  return all;
}

TEST_CASE(
    "A batch twice as large never takes less time than the one that was measured, nor more than twice") {
  for (const Setting& setting : settings())
    for (const Json& given : anchored(setting)) {
      CAPTURE(given.dump());
      Duration before = step_at(given, 1);
      for (std::int64_t batch = 2; batch <= 16 * base_batch; batch *= 2) {
        CAPTURE(batch);
        const Duration time = step_at(given, batch);
        CHECK(time >= before);
        // Each of three parts may be rounded up by a picosecond.
        CHECK(time <= before * 2 + Duration::picoseconds(3));
        before = time;
      }
    }
}

TEST_CASE("A longer measured step makes every other step longer, and launches none") {
  for (const Setting& setting : settings()) {
    const std::vector<Json> all = anchored(setting);
    for (const std::int64_t batch : {base_batch / 4, base_batch * 4}) {
      const Duration modelled = step_at(one_gpu(setting), batch);
      CHECK(step_at(all[0], batch) == modelled);  // measured as it is modelled: nothing to correct
      CHECK(step_at(all[1], batch) > modelled);
      CHECK(step_at(all[2], batch) > step_at(all[1], batch));
      // Twice as long where it was measured; elsewhere the launches that count for more do not double.
      if (batch < base_batch)
        CHECK(step_at(all[2], batch) <= modelled * 2 + Duration::picoseconds(3));
    }
  }
}

TEST_CASE("A transferred step is what the simulation takes, on however many micro-batches and iterations") {
  for (const Setting& setting : settings())
    for (const std::int64_t accumulation : {1, 3})
      for (const std::int64_t iterations : {1, 3}) {
        Json given = anchored(setting)[1];
        given["simulation"]["iterations"] = iterations;
        const LoadedScenario scenario = scenario_from(
            given, {.overrides = {{"model.batch_per_gpu", "24"},
                                  {"training.gradient_accumulation", std::to_string(accumulation)}}});
        CHECK(predict_iteration(scenario) == *scenario.compute.single_gpu_iteration);
      }
}

}  // namespace lockstep::measured_step_law
