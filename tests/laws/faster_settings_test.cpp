// Laws of the settings that make an iteration shorter: each is what predicting it says, over every shipped scenario.

#include "sim/study/answers/faster_settings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/scenarios.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::faster_settings_test {

std::string scenario_file(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/" + name;
}

FasterSettings settings_of(const LoadRequest& request) {
  const ScenarioVariants variants(request);
  return find_faster_settings(variants, variants.predict(variants.load(), {.with_band = false}));
}

bool names(const FasterSettings& settings, const std::string& change) {
  return std::any_of(settings.found.begin(), settings.found.end(),
                     [&](const FasterSetting& setting) { return describe(setting.changes) == change; });
}

TEST_CASE("a faster setting is what predicting it says, shorter, and fits") {
  std::size_t told = 0;
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const ScenarioVariants variants({.path = file});
    const Prediction now = variants.predict(variants.load(), {.with_band = false});
    const FasterSettings settings = find_faster_settings(variants, now);
    told += settings.found.size();
    Duration before;
    for (const FasterSetting& setting : settings.found) {
      CAPTURE(describe(setting.changes));
      const Prediction again =
          predict(load({.path = file, .overrides = setting.changes}), {.with_band = false});
      CHECK(setting.iteration == again.report.iteration);
      CHECK(setting.memory == again.report.memory.peak.total());
      CHECK(setting.iteration < now.report.iteration);
      CHECK(setting.iteration >= before);
      CHECK(setting.memory <= std::max(now.report.memory.capacity, now.report.memory.peak.total()));
      CHECK(again.report.throughput.samples_per_iteration == now.report.throughput.samples_per_iteration);
      before = setting.iteration;
    }
  }
  CHECK(told > 0);
}

TEST_CASE("a setting that is set is not told again") {
  const std::string file = scenario_file("gpt2_ddp_4x8_h100.json");
  for (const FasterSetting& setting : settings_of({.path = file}).found) {
    CAPTURE(describe(setting.changes));
    CHECK_FALSE(names(settings_of({.path = file, .overrides = setting.changes}), describe(setting.changes)));
  }
}

// 50,257 words are no whole 16-byte loads of half-precision logits, 50,304 are.
TEST_CASE("words are told to be padded where they are no whole loads") {
  const std::string file = scenario_file("gpt2_ddp_4x8_h100.json");
  const std::string padded = "training.vocabulary_multiple=128";
  CHECK(names(settings_of({.path = file}), padded));
  CHECK_FALSE(names(settings_of({.path = file, .overrides = {{"model.vocabulary", "50304"}}}), padded));
}

// In whole numbers of micro-batches: three are no pairs.
TEST_CASE("larger micro-batches train as many samples") {
  const std::string file = scenario_file("gpt2_ddp_4x8_h100.json");
  const auto settings = [&](const std::string& times) {
    return settings_of(
        {.path = file,
         .overrides = {{"model.batch_per_gpu", "2"}, {"training.gradient_accumulation", times}}});
  };
  const std::string twice = "model.batch_per_gpu=4 training.gradient_accumulation=2";
  CHECK(names(settings("4"), twice));
  const FasterSettings of_three = settings("3");
  CHECK(std::none_of(of_three.found.begin(), of_three.found.end(), [](const FasterSetting& setting) {
    return setting.changes.front().first == "model.batch_per_gpu";
  }));
}

// What it rounds is told: an fp32 model in half precision, not one whose attention is fused.
TEST_CASE("what rounds more is told to") {
  for (const FasterSetting& setting :
       settings_of({.path = scenario_file("gpt2_ddp_4x8_h100.json"),
       .overrides = {{"model.precision", "fp32"}, {"model.batch_per_gpu", "2"}}})
           .found) {
    CAPTURE(describe(setting.changes));
    const std::string& path = setting.changes.front().first;
    CHECK(setting.rounds_more == (path == "model.precision" || path == "training.compression"));
  }
}

TEST_CASE("where a simulation takes long, settings are left out and counted") {
  const FasterSettings settings =
      settings_of({.path = scenario_file("large/gpt3_175b_dp8_pp16_tp8_a100.json")});
  CHECK(settings.tried >= 1);
  CHECK(settings.left_out > 0);
}

}  // namespace lockstep::faster_settings_test
