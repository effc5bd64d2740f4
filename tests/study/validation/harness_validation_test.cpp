// Predictions of a run of one layer and one bucket, so that each can be added up by hand.

#include "sim/study/validation/harness_validation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"
#include "tests/support/harness_run_file.h"

namespace lockstep::harness_validation_test {

using nlohmann::json;
using testing::Folder;
using testing::harness_run;
using testing::iteration_of;
using testing::KnownRun;

// 4 MB cross 100 MB/s in 40 ms and two steps of 0.1 ms; a copy of them at 1 GB/s takes 4 ms and 1 us. All
// figures have four digits, so that rounding changes nothing.
const KnownRun simple{.step_s = 100e-6, .unhidden_s = 0, .copy_per_tensor_s = 1e-6, .copy_per_byte_s = 1e-9};
constexpr double copy_s = 4e-3 + 1e-6;
constexpr double reduce_s = 40e-3 + 2 * 100e-6;
// Forward and backward, then the only gradient is copied, reduced and copied back, then the optimizer.
constexpr double predicted_s = 10e-3 + 20e-3 + copy_s + reduce_s + copy_s + 1e-3;

Validation validated(const std::vector<json>& files, const std::string& calibration = "") {
  const Folder folder;
  ValidationOptions options{.files = {}, .calibration = calibration, .data_directory = LOCKSTEP_SOURCE_DIR};
  for (std::size_t i = 0; i < files.size(); ++i)
    options.runs.push_back(folder.write("run" + std::to_string(i) + ".json", files[i].dump()));
  return validate(options);
}

json simple_run() {
  json run = harness_run(simple);
  run["interference"] = json::array();  // nothing takes core time
  return run;
}

const ValidationCase& case_named(const Validation& validation, const std::string& name) {
  const auto found = std::find_if(validation.cases.begin(), validation.cases.end(),
                                  [&](const ValidationCase& entry) { return entry.name == name; });
  REQUIRE(found != validation.cases.end());
  return *found;
}

TEST_CASE("an iteration is predicted from the step without communication and the run's own microbenchmarks") {
  const Validation validation = validated({simple_run()});
  const ValidationCase& found = case_named(validation, "known cap 25");
  CHECK(found.group == "known");
  CHECK(found.split == "heldout");
  CHECK(found.measured_s == 0.080);
  CHECK(found.predicted_s == doctest::Approx(predicted_s).epsilon(0.001));
}

// The slower of two ranks lies 0.564 deviations above their mean, of which the spread of the ranks' median
// shows sqrt(1 / 2). Forward, backward and the optimizer are longer by that.
TEST_CASE("an iteration waits for the slowest of ranks that vary from step to step") {
  json run = simple_run();
  const double deviation = 0.0005;
  run["without_communication"]["iteration_s"] = testing::steps_of(0.031, 2.563 * deviation);
  const double waited = case_named(validated({run}), "known cap 25").predicted_s -
                        case_named(validated({simple_run()}), "known cap 25").predicted_s;
  CHECK(waited == doctest::Approx(0.564 * std::sqrt(2.0) * deviation).epsilon(0.07));
}

TEST_CASE("what was measured of iterations never enters their prediction") {
  json other = simple_run();
  other["iterations"] = {iteration_of(25, 17.0)};
  CHECK(case_named(validated({other}), "known cap 25").predicted_s ==
        case_named(validated({simple_run()}), "known cap 25").predicted_s);
}

// Two micro-batches: forward and backward twice, one reduction.
TEST_CASE("accumulation and what hides nothing are predicted as they were run") {
  json run = simple_run();
  run["iterations"][0]["gradient_accumulation"] = 2;
  run["iterations"].push_back(iteration_of(25, 0.080));
  run["iterations"][1]["overlap"] = false;
  const Validation validation = validated({run});
  CHECK(case_named(validation, "known cap 25, 2 micro-batches").predicted_s ==
        doctest::Approx(predicted_s + 30e-3).epsilon(0.001));
  // The only bucket is ready when backward ends: there was nothing to hide.
  CHECK(case_named(validation, "known cap 25, no overlap").predicted_s ==
        doctest::Approx(predicted_s).epsilon(0.001));
}

TEST_CASE("the step of one rank is the sum of its layers and the optimizer") {
  const Validation validation = validated({simple_run()});
  const ValidationCase& found = case_named(validation, "known, step from its layers");
  CHECK(found.measured_s == 0.031);
  CHECK(found.predicted_s == doctest::Approx(0.010 + 0.020 + 0.001));
  CHECK(found.group == "known, step from its layers");
}

// A square product of 2 x 512^3 FLOPs in 10 ms is all that is known of the processor.
TEST_CASE("a model that the simulator knows is predicted from roofline alone as well") {
  json run = simple_run();
  run["model"]["simulated_as"] = {{"name", "resnet18"}};
  run["matmuls"] = {
      {{"rows", 512}, {"columns", 512}, {"inner", 512}, {"precision", "fp32"}, {"time_s", 0.01}}};
  run["memory_copies"] = {{{"bytes", 64 << 20}, {"time_s", 0.01}}};
  const double rate = 2.0 * 512 * 512 * 512 / 0.01;
  // ResNet-18 multiplies 1.82 billion pairs a sample forward (He et al. 2016) and twice that backward, but for
  // the gradient of its input; memory only adds to it.
  const double multiplying = 2 * 1.82e9 * 3 * 8 / rate;
  const double found = case_named(validated({run}), "known, step from roofline").predicted_s;
  CHECK(found > 0.95 * multiplying);
  CHECK(found < 1.25 * multiplying);
}

// 20 ms and 40 ms were predicted nowhere: both caps hold the one gradient, so the first of them is chosen, and
// 50 ms instead of 40 ms were measured there.
TEST_CASE("the predicted best cap costs what it was measured to take beyond the measured best") {
  json run = simple_run();
  run["iterations"] = {iteration_of(5, 0.050), iteration_of(25, 0.040)};
  const Validation validation = validated({run});
  REQUIRE(validation.best_caps.size() == 1);
  CHECK(validation.best_caps[0].predicted_mb == 5);
  CHECK(validation.best_caps[0].measured_mb == 25);
  CHECK(validation.best_caps[0].cost_percent == doctest::Approx((0.050 / 0.040 - 1) * 100));
  CHECK(to_json(validation)["best_caps"][0]["run"] == "known");
  CHECK(to_text(validation).find("best bucket cap") != std::string::npos);
  CHECK(to_markdown(validation).find("predicted best cap") != std::string::npos);
  CHECK(validated({simple_run()}).best_caps.empty());  // a single cap is no choice
}

// 80 % of a normal distribution are 2 x 1.2816 standard deviations wide; the median of n values scatters by the root of
// pi / 2n of one.
TEST_CASE("what following the best cap costs is known as well as both medians are") {
  json run = simple_run();
  run["iterations"] = {iteration_of(5, 0.050), iteration_of(25, 0.040)};
  for (json& iteration : run["iterations"]) {
    const double seconds = iteration["iteration_s"]["median"];
    iteration["iteration_s"]["p10"] = seconds - 0.001;
    iteration["iteration_s"]["p90"] = seconds + 0.001;
    iteration["iteration_s"]["count"] = 16;
  }
  const double of_one = std::sqrt(std::acos(-1) / 2 / 16) * 0.002 / (2 * 1.2816);
  CHECK(validated({run}).best_caps[0].cost_error_percent ==
        doctest::Approx(100 * std::sqrt(2) * of_one / 0.040).epsilon(0.001));
}

TEST_CASE("a case of a run tells its setting and the spread of what was measured") {
  const nlohmann::ordered_json entry = to_json(validated({simple_run()}))["cases"][0];
  CHECK(entry["setting"]["run"] == "known");
  CHECK(entry["setting"]["bucket_cap_mb"] == 25);
  CHECK(entry["setting"]["variant"] == "");
  CHECK(entry["setting"]["measured_p90"] == doctest::Approx(1.02 * 0.080));
}

// cpu_gloo: 100 us of link latency and no more a step, 200 ps a byte unhidden, copies of 3 us and 9.1 GB/s;
// nothing overlaps, so that its core time does not show.
TEST_CASE("a calibration that is given takes the place of the run's own microbenchmarks") {
  const double copy = 3e-6 + 4e6 / 9.1e9;
  const double reduce = 4e6 * (1 / 100e6 + 200e-12) + 2 * 100e-6;
  const double expected = 31e-3 + 2 * copy + reduce;
  CHECK(case_named(validated({simple_run()}, "cpu_gloo"), "known cap 25").predicted_s ==
        doctest::Approx(expected).epsilon(0.001));
}

TEST_CASE("buckets that were measured otherwise than predicted are told of") {
  json run = simple_run();
  run["iterations"][0]["buckets"] = {{{"bytes", 4'000'000}}};
  CHECK(validated({run}).notes.size() == validated({simple_run()}).notes.size());
  run["iterations"][0]["buckets"] = {{{"bytes", 3'000'000}}, {{"bytes", 1'000'000}}};
  CHECK(validated({run}).notes.back().find("2 buckets were measured and 1 predicted") != std::string::npos);
}

TEST_CASE("a run that cannot be judged is refused with its file and reason") {
  const auto problem_of = [](const std::vector<json>& files) -> std::string {
    try {
      validated(files);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  json run = simple_run();
  run["iterations"] = json::array();
  CHECK(problem_of({run}).find("/iterations: found no entry") != std::string::npos);
  run = simple_run();
  run["without_communication"] = nullptr;
  CHECK(problem_of({run}).find("/without_communication: found null") != std::string::npos);
  CHECK(problem_of({simple_run(), simple_run()}).find("also the name of") != std::string::npos);
  run = simple_run();
  run["ranks"] = 0;
  json other = simple_run();
  other.erase("model");
  const std::string both = problem_of({run, other});
  CHECK(both.find("run0.json: /ranks") != std::string::npos);
  CHECK(both.find("model") != std::string::npos);
}

TEST_CASE("runs of GPUs want their machine named") {
  json run = simple_run();
  run["harness"]["backend"] = "cuda";
  run["harness"]["communication"] = "NCCL 2.28.9";
  const Validation validation = validated({run});
  REQUIRE(validation.cases.size() == 1);  // its layers
  CHECK(validation.notes.at(0).find("--machine") != std::string::npos);
}

}  // namespace lockstep::harness_validation_test
