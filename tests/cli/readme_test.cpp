// What the README shows is what the program prints.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::readme_test {

using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::run_program;

constexpr const char* scenario = LOCKSTEP_SOURCE_DIR "/scenarios/resnet50_ddp_2x8_a100.json";

std::string readme() {
  return testing::text_of(LOCKSTEP_SOURCE_DIR "/README.md");
}

// From behind `opening`, the next occurrence at or after `anchor`, to `closing`.
std::string between(const std::string& text, const std::string& anchor, const std::string& opening,
                    const std::string& closing) {
  const std::size_t from = text.find(opening, text.find(anchor));
  REQUIRE(from != std::string::npos);
  const std::size_t begin = from + opening.size();
  return text.substr(begin, text.find(closing, begin) - begin);
}

TEST_CASE("the README's first command prints what stands there") {
  const std::string shown = between(readme(), "The first command ends with this:", "```\n", "```\n");
  CHECK(shown == run_program("predict " + std::string(scenario)).out);
}

// "1,514,000": in whole thousands.
std::string thousands(double count) {
  std::string text = std::to_string(std::llround(count / 1e3)) + "000";
  for (std::ptrdiff_t place = std::ssize(text) - 3; place > 0; place -= 3)
    text.insert(static_cast<std::size_t>(place), ",");
  return text;
}

struct PublishedTraining {
  std::string name;
  double gpu_hours;
  std::string changes;  // of the request, which is the first's, as --set takes them
};

std::vector<PublishedTraining> published_trainings() {
  const std::string model = "--set model.name=";
  const std::string on_1024 = " --set candidates.0.nodes=[128]";
  const std::string llama3 =
      " --set candidates.0.machine=dgx_h100 --set model.sequence_length=8192 --set "
      "goal.tokens=15000000000000";
  return {{"Llama 2 7B, A100", 184e3, ""},
          {"Llama 2 13B, A100", 369e3, model + "llama2_13b"},
          {"Llama 2 70B, A100", 1720e3, model + "llama2_70b" + on_1024},
          {"Llama 3 8B, H100", 1300e3, model + "llama3_8b" + llama3},
          {"Llama 3 70B, H100", 6400e3, model + "llama3_70b" + on_1024 + llama3}};
}

// Where a plan of this recomputation is; bold where what was published lies outside.
std::string hours_of(const nlohmann::ordered_json& plans, bool is_recomputed, double published) {
  for (const auto& plan : plans) {
    if (contains(plan["layout"].get<std::string>(), "recompute") != is_recomputed)
      continue;
    const double gpus_in_hours = plan["gpus"].get<double>() / 3600;
    const double low = plan["time_to_train_low_s"].get<double>() * gpus_in_hours;
    const double high = plan["time_to_train_high_s"].get<double>() * gpus_in_hours;
    const char* mark = low <= published && published <= high ? "" : "**";
    return mark + thousands(low) + " to " + thousands(high) + mark;
  }
  return "does not fit";
}

TEST_CASE("the README's GPU hours of Meta's models are what the plan says of each") {
  const std::string shown = readme();
  for (const PublishedTraining& training : published_trainings()) {
    const auto answer = run_program(
        "plan " LOCKSTEP_SOURCE_DIR "/scenarios/plans/llama2_7b_published.json --json " + training.changes);
    const auto plans = nlohmann::ordered_json::parse(answer.out)["plans"];
    const std::string row = "| " + training.name + " | " + thousands(training.gpu_hours) + " | " +
                            hours_of(plans, false, training.gpu_hours) + " | " +
                            hours_of(plans, true, training.gpu_hours) + " |\n";
    CAPTURE(row);
    CHECK(contains(shown, row));
  }
}

TEST_CASE("the README's sweep prints the lines that stand there") {
  const Folder folder;
  const std::string shown = between(readme(), "## Sweeps", "-o caps.csv\n", "\n\n");
  const std::string printed =
      run_program("sweep " + std::string(scenario) + " --vary training.bucket_cap_mb=1:200:x2 -o " +
                  folder.path() + "/caps.csv")
          .out;
  std::size_t begin = 0;
  while (begin < shown.size()) {
    const std::size_t end = std::min(shown.find('\n', begin), shown.size());
    const std::string line = shown.substr(begin + 4, end - begin - 4);  // indented by four
    if (line != "...")
      check_says(printed, {line});
    begin = end + 1;
  }
}

}  // namespace lockstep::readme_test
