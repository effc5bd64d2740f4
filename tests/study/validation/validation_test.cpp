// Measurements of runs whose times are stated, so that every error is a ratio one can do in the head.

#include "sim/study/validation/validation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/study/fit/measurement_files.h"

namespace lockstep::validation_test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

class MeasurementFolder {
 public:
  MeasurementFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep-validate-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  MeasurementFolder(const MeasurementFolder&) = delete;
  MeasurementFolder& operator=(const MeasurementFolder&) = delete;
  ~MeasurementFolder() { fs::remove_all(path_); }

  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, const std::string& text) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }

 private:
  fs::path path_;
};

// One process, 10 ms forward and 20 ms backward of one layer: 30 ms whatever the simulator does elsewhere.
ordered_json thirty_milliseconds() {
  ordered_json machine{{"name", "one"}, {"source", "test"}, {"gpu", "cpu"}, {"gpus", 1}, {"library", "gloo"}};
  machine["gpu_links"]["kind"] = "none";
  ordered_json layer{{"name", "only"}, {"forward_time", "10 ms"}, {"backward_time", "20 ms"}};
  layer["parameters"] = ordered_json::array({1000});
  ordered_json scenario;
  scenario["cluster"]["machine"] = machine;
  scenario["model"]["layers"] = ordered_json::array({layer});
  scenario["training"] = {{"strategy", "single"}, {"optimizer", "none"}};
  scenario["compute"]["single_gpu_iteration"] = "30 ms";
  return scenario;
}

ordered_json measured_case(const std::string& group, double measured_s) {
  return {{"name", group + " case"}, {"group", group}, {"measured", {{"iteration_time_s", measured_s}}}};
}

ordered_json measurements(const std::string& split, std::vector<ordered_json> cases) {
  return {{"schema", "lockstep.measurements/1"},
          {"source", "test"},
          {"split", split},
          {"scenario", thirty_milliseconds()},
          {"cases", std::move(cases)}};
}

Validation validate_files(const std::vector<std::string>& files) {
  return validate({.files = files, .data_directory = LOCKSTEP_SOURCE_DIR});
}

// Predicted 30: against 25, 30, 40 and 60 that is +20, 0, -25 and -50 %.
TEST_CASE("a case whose measured step no GPU can take is noted, and the others are predicted") {
  const MeasurementFolder folder;
  // 64 images of ResNet-50, 1.57 TFLOP, in a millisecond.
  ordered_json impossible = measured_case("impossible", 0.03);
  impossible["scenario"] = {{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 1}}},
                            {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "fp32"}}},
                            {"training", {{"strategy", "single"}}},
                            {"compute", {{"single_gpu_iteration", "1 ms"}}}};
  // Launches alone take longer than the run that it is anchored on.
  ordered_json unreachable = measured_case("unreachable", 0.03);
  unreachable["scenario"] = {
      {"cluster", {{"machine", "dgx_a100_40gb"}}},
      {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "fp32"}}},
      {"training", {{"strategy", "ddp"}}},
      {"compute", {{"anchor", {{"set", ordered_json::object()}, {"iteration_time", "1 us"}}}}}};
  const std::string file = folder.write(
      "cases.json",
      measurements("heldout", {impossible, unreachable, measured_case("possible", 0.03)}).dump());
  const Validation found = validate_files({file});
  REQUIRE(found.cases.size() == 1);
  CHECK(found.cases.front().group == "possible");
  REQUIRE(found.notes.size() == 3);
  CHECK(found.notes[0].starts_with("impossible case is not asked: "));
  CHECK(found.notes[0].find("MFU") != std::string::npos);
  CHECK(found.notes[1].starts_with("unreachable case is not asked: "));
  CHECK(found.notes[1].find("/compute/anchor/iteration_time") != std::string::npos);
  CHECK(found.notes[2].starts_with("warning: possible case: machine one is uncalibrated"));
}

TEST_CASE("What scenarios of cases are warned of is told once, with the first case and how many there are") {
  const MeasurementFolder folder;
  std::vector<ordered_json> cases;
  for (const char* group : {"first", "second", "third"}) {
    cases.push_back(measured_case(group, 0.03));
    if (cases.size() > 1)
      cases.back()["set"]["training.pipeline_schedule"] = "gpipe";
  }
  const Validation found =
      validate_files({folder.write("cases.json", measurements("heldout", cases).dump())});
  const auto tells = [](const std::string& note) {
    return note.starts_with(
        "warning: 2 cases, second case the first: training.pipeline_schedule changes nothing: ");
  };
  CHECK(std::ranges::count_if(found.notes, tells) == 1);
}

TEST_CASE("Errors are signed, and a group's figures are those of its cases") {
  const MeasurementFolder folder;
  const std::string file =
      folder.write("m.json", measurements("heldout", {measured_case("a", 0.025), measured_case("a", 0.030),
                                                      measured_case("a", 0.040), measured_case("a", 0.060)})
                                 .dump());
  const Validation validation = validate_files({file});
  REQUIRE(validation.cases.size() == 4);
  CHECK(validation.cases[0].predicted_s == 0.030);
  CHECK(validation.cases[0].error_percent() == doctest::Approx(20));
  CHECK(validation.cases[3].error_percent() == doctest::Approx(-50));
  REQUIRE(validation.groups.size() == 1);
  const ErrorSummary& ours = validation.groups[0].ours;
  CHECK(ours.cases == 4);
  CHECK(ours.mean_absolute == doctest::Approx((20.0 + 0 + 25 + 50) / 4));
  CHECK(ours.bias == doctest::Approx((20.0 + 0 - 25 - 50) / 4));
  CHECK(ours.median_absolute == doctest::Approx((20.0 + 25) / 2));
  // Of 0, 20, 25, 50 at place 0.9 x 3 = 2.7: seven tenths of the way from 25 to 50.
  CHECK(ours.p90_absolute == doctest::Approx(25 + 0.7 * 25));
}

TEST_CASE("Fitted and held-out cases of one name are two groups, never pooled") {
  const MeasurementFolder folder;
  const std::string fit = folder.write("fit.json", measurements("fit", {measured_case("a", 0.030)}).dump());
  const std::string heldout =
      folder.write("heldout.json", measurements("heldout", {measured_case("a", 0.060)}).dump());
  const Validation validation = validate_files({fit, heldout});
  REQUIRE(validation.groups.size() == 2);
  CHECK(validation.groups[0].split == "fit");
  CHECK(validation.groups[0].ours.mean_absolute == doctest::Approx(0));
  CHECK(validation.groups[1].split == "heldout");
  CHECK(validation.groups[1].ours.mean_absolute == doctest::Approx(50));
}

TEST_CASE("A case its own source doubts is shown and stays outside the means") {
  const MeasurementFolder folder;
  ordered_json doubted = measured_case("a", 0.060);
  doubted["caution"] = "the log says the disk was busy";
  const std::string file =
      folder.write("m.json", measurements("heldout", {measured_case("a", 0.040), doubted}).dump());
  const Validation validation = validate_files({file});
  CHECK(validation.cases.size() == 2);
  REQUIRE(validation.groups.size() == 1);
  CHECK(validation.groups[0].ours.cases == 1);
  CHECK(validation.groups[0].ours.mean_absolute == doctest::Approx(25));
  CHECK(to_json(validation)["cases"][1]["caution"] == "the log says the disk was busy");
  CHECK(to_text(validation).find("the log says the disk was busy") != std::string::npos);
}

TEST_CASE("A group of doubted cases only is no group") {
  const MeasurementFolder folder;
  ordered_json doubted = measured_case("a", 0.060);
  doubted["caution"] = "noisy";
  const Validation validation =
      validate_files({folder.write("m.json", measurements("heldout", {doubted}).dump())});
  CHECK(validation.groups.empty());
}

// One process on a CPU holds 1000 weights and their gradients, 4 bytes each, and nothing else.
TEST_CASE("A measured peak is compared with what it counts, beside times and not among them") {
  const MeasurementFolder folder;
  ordered_json peak = measured_case("memory", 1);
  peak["measured"] = {{"memory_bytes", 1e6}, {"counted", "allocated"}};
  const std::string file =
      folder.write("m.json", measurements("heldout", {peak, measured_case("time", 0.040)}).dump());
  const Validation validation = validate_files({file});
  REQUIRE(validation.cases.size() == 2);
  const ValidationCase& memory = validation.cases[0];
  CHECK(memory.is_memory);
  CHECK(memory.measured_s == 1e6);
  CHECK(memory.predicted_s == 8 * 1000);
  CHECK(!memory.low_s);
  CHECK(to_json(validation)["cases"][0]["quantity"] == "memory_bytes");
  CHECK(!to_json(validation)["cases"][0].contains("naive"));
  CHECK(!to_json(validation)["cases"][1].contains("quantity"));
  CHECK(to_text(validation).find("measured MiB") != std::string::npos);
}

ordered_json measured_block(int layers) {
  ordered_json block = measured_case("block", 1);
  block["measured"] = {{"block_time_s", 0.01}};
  block["scenario"] = {{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 1}}},
                       {"model",
                        {{"family", "transformer"},
                         {"style", "gpt2"},
                         {"layers", layers},
                         {"hidden", 1024},
                         {"heads", 8},
                         {"vocabulary", 1024},
                         {"sequence_length", 512},
                         {"batch_per_gpu", 8},
                         {"precision", "bf16"}}},
                       {"training", {{"strategy", "single"}, {"optimizer", "adam"}}},
                       {"compute", {{"kernels", "eager"}}}};
  return block;
}

// Blocks are alike: the fourth takes what the third does.
TEST_CASE("A measured block is compared with what one block more takes, without the optimizer") {
  const MeasurementFolder folder;
  const auto predicted = [&](int layers) {
    const std::string file = folder.write("m.json", measurements("heldout", {measured_block(layers)}).dump());
    const Validation validation = validate_files({file});
    REQUIRE(validation.cases.size() == 1);
    CHECK(validation.cases[0].is_block);
    CHECK(!validation.cases[0].low_s);
    CHECK(to_json(validation)["cases"][0]["quantity"] == "block_time_s");
    CHECK(!to_json(validation)["cases"][0].contains("naive"));
    return validation.cases[0].predicted_s;
  };
  CHECK(predicted(4) > 0);
  CHECK(predicted(4) == doctest::Approx(predicted(3)).epsilon(0.001));
  const std::string alone = folder.write("alone.json", measurements("heldout", {measured_block(1)}).dump());
  CHECK_THROWS_WITH_AS(validate_files({alone}), doctest::Contains("2 or more"), ConfigError);
}

TEST_CASE("A measured peak must say what it counts") {
  const MeasurementFolder folder;
  ordered_json peak = measured_case("memory", 1);
  peak["measured"] = {{"memory_bytes", 1e6}};
  const std::string file = folder.write("m.json", measurements("heldout", {peak}).dump());
  CHECK_THROWS_WITH_AS(validate_files({file}), doctest::Contains("counted"), ConfigError);
}

// Batch 1 on one process, 30 ms: 25 samples/s is 40 ms measured.
TEST_CASE("A measured rate is turned into a time by the scenario's own batch") {
  const MeasurementFolder folder;
  ordered_json by_rate = measured_case("a", 1);
  by_rate["measured"] = {{"samples_per_s", 25}};
  const Validation validation =
      validate_files({folder.write("m.json", measurements("heldout", {by_rate}).dump())});
  CHECK(validation.cases[0].measured_s == doctest::Approx(1.0 / 25));
  CHECK(validation.cases[0].error_percent() == doctest::Approx(-25));
}

// At a rate of an iteration's FLOPs a second it takes one.
TEST_CASE("Published TFLOP/s are those of the model, forward and twice as many backward") {
  const MeasurementFolder folder;
  const auto with_rate = [&](const char* model, double rate) {
    ordered_json stated = measured_case("a", 1);
    stated["scenario"] =
        ordered_json::parse(R"({"cluster": {"machine": "dgx_a100_80gb", "gpus_per_node": 1}})");
    stated["scenario"]["model"] = ordered_json::parse(model);
    stated["measured"] = {{"tflops_per_gpu", rate}};
    return folder.write("m.json", measurements("heldout", {stated}).dump());
  };
  const char* gpt2 = R"({"name": "gpt2", "attention": "fused", "batch_per_gpu": 1, "precision": "amp_bf16"})";
  const double flops = 3 * 291.6483072e9;  // as explain tells its forward_flops_per_sample
  CHECK(validate_files({with_rate(gpt2, flops / 1e12)}).cases[0].measured_s == doctest::Approx(1));
  CHECK(validate_files({with_rate(gpt2, flops / 2e12)}).cases[0].measured_s == doctest::Approx(2));
  const char* measured = R"({"measured": {"parameters": [{"name": "w", "elements": 1}], "forward": "1 ms",
                             "backward": "1 ms", "optimizer": "1 ms"}, "batch_per_gpu": 1})";
  CHECK_THROWS_AS(validate_files({with_rate(measured, 1)}), ConfigError);
}

TEST_CASE("The JSON has the keys of the contract") {
  const MeasurementFolder folder;
  const std::string file =
      folder.write("m.json", measurements("heldout", {measured_case("a", 0.040)}).dump());
  const ordered_json json = to_json(validate_files({file}));
  CHECK(json["schema"] == "lockstep.validation/1");
  for (const char* key : {"name", "group", "split", "measured", "predicted", "error_percent", "low", "high"})
    CHECK(json["cases"][0].contains(key));
  for (const char* key : {"group", "n", "mape_percent", "median_percent", "p90_percent", "bias_percent"})
    CHECK(json["groups"][0].contains(key));
}

TEST_CASE("A folder stands for the measurements below it, in sorted order, and nothing else") {
  const MeasurementFolder folder;
  const std::string text = measurements("fit", {measured_case("a", 0.03)}).dump();
  const std::string later = folder.write("b/m.json", text);
  const std::string earlier = folder.write("a/deep/m.json", text);
  folder.write("scenario.json", thirty_milliseconds().dump());
  folder.write("list.json", "[1, 2]");
  folder.write("run.json", R"({"schema": "lockstep.run/1"})");
  folder.write("notes.txt", "no JSON at all");
  CHECK(find_measurement_files({folder.path()}) == std::vector<std::string>{earlier, later});
  CHECK(find_measurement_files({later, folder.path()}) == std::vector<std::string>{later, earlier, later});
}

TEST_CASE("A folder without measurements is refused, and so is JSON that cannot be read") {
  const MeasurementFolder folder;
  CHECK_THROWS_WITH_AS(find_measurement_files({folder.path()}), doctest::Contains("found no measurements"),
                       ConfigError);
  folder.write("broken.json", "{");
  CHECK_THROWS_WITH_AS(find_measurement_files({folder.path()}), doctest::Contains("broken.json"),
                       ConfigError);
}

TEST_CASE("What a case sets wrongly is said with the case and its file") {
  const MeasurementFolder folder;
  ordered_json wrong = measurements("heldout", {measured_case("a", 0.03), measured_case("b", 0.03)});
  wrong["cases"][1]["set"]["training.recompute"] = "some";
  const std::string file = folder.write("m.json", wrong.dump());
  CHECK_THROWS_WITH_AS(validate_files({file}), doctest::Contains("m.json: the case \"b case\" asks for it"),
                       ConfigError);
}

TEST_CASE("cases are told in the order of their files on any number of threads") {
  const MeasurementFolder folder;
  std::vector<std::string> files;
  for (const char* name : {"b.json", "a.json"}) {
    std::vector<ordered_json> cases;
    for (int i = 1; i <= 9; ++i) cases.push_back(measured_case(name + std::to_string(i), 0.03 * i));
    files.push_back(folder.write(name, measurements("heldout", cases).dump()));
  }
  const auto told_on = [&](int threads) {
    std::size_t calls = 0;
    ValidationOptions options{.files = files, .data_directory = LOCKSTEP_SOURCE_DIR, .jobs = threads};
    options.on_progress = [&](std::size_t finished, std::size_t all) {
      CHECK(finished == ++calls);
      CHECK(all == 18);
    };
    const Validation validation = validate(options);
    CHECK(calls == 18);
    return to_json(validation);
  };
  const ordered_json alone = told_on(1);
  CHECK(alone["cases"][0]["group"] == "b.json1");
  CHECK(alone["cases"][17]["group"] == "a.json9");
  CHECK(told_on(5) == alone);
}

TEST_CASE("of several cases that cannot be predicted the first is refused, on any number of threads") {
  const MeasurementFolder folder;
  std::vector<ordered_json> cases;
  for (int i = 0; i < 12; ++i) {
    cases.push_back(measured_case("case " + std::to_string(i), 0.03));
    if (i >= 4)
      cases.back()["set"]["training.recompute"] = "some";
  }
  const std::string file = folder.write("m.json", measurements("heldout", cases).dump());
  for (const int threads : {1, 7})
    CHECK_THROWS_WITH_AS(validate({.files = {file}, .data_directory = LOCKSTEP_SOURCE_DIR, .jobs = threads}),
                         doctest::Contains("the case \"case 4 case\" asks for it"), ConfigError);
}

TEST_CASE("Mistakes of a measurements file are named with their place") {
  const MeasurementFolder folder;
  ordered_json wrong = measurements("training", {measured_case("a", 0.03)});
  wrong["cases"][0]["measured"] = {{"seconds", 3}};
  const std::string file = folder.write("m.json", wrong.dump());
  CHECK_THROWS_WITH_AS(validate_files({file}), doctest::Contains("m.json: /split"), ConfigError);
  CHECK_THROWS_WITH_AS(validate_files({file}), doctest::Contains("/cases/0/measured"), ConfigError);
}

}  // namespace lockstep::validation_test
