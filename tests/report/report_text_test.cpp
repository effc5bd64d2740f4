#include "sim/report/report_text.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/report/html.h"
#include "sim/report/prediction.h"
#include "sim/report/scenario_text.h"
#include "tests/scenario/lab.h"

namespace lockstep::report_text_test {

using testing::load_lab;
using testing::load_resnet;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("colour is decoration: without its escapes the text is the same") {
  const LoadedScenario scenario = load_resnet();
  const Report report = predict(scenario).report;
  std::string text = to_text(report, scenario, {.has_colour = true});
  for (std::size_t start = text.find('\x1b'); start != std::string::npos; start = text.find('\x1b')) {
    text.erase(start, text.find('m', start) + 1 - start);
  }
  CHECK(text == to_text(report, scenario));
}

TEST_CASE("in colour, too, a name's own escapes are written out") {
  const std::string name = "\x1b[7mname\x1b]0;title\x07\xc2\x9b" "31m";
  const std::string quoted = nlohmann::json(name).dump();
  const LoadedScenario scenario = load_lab({{"name", quoted}, {"model.layers.0.name", quoted},
                                      {"cluster.machine.name", quoted}, {"model.batch_per_gpu", "1"}});
  Report report = predict(scenario).report;
  report.warnings.push_back(name);
  report.communication.bottleneck_link = name;
  const std::string text = to_text(report, scenario, {.has_colour = true});
  for (const char* raw : {"\x1b[7m", "\x1b]", "\x07", "\xc2\x9b"}) CHECK_FALSE(contains(text, raw));
  CHECK(contains(text, "\\u001b[7mname"));
}

TEST_CASE("a long list of buckets shows its ends and sums up its middle") {
  // A cap below every tensor gives each of the 161 tensors a bucket of its own; 5 are shown at each end.
  const LoadedScenario scenario = load_resnet({{"training.bucket_cap_mb", "0.001"}});
  const Report report = predict(scenario).report;
  const std::string text = to_text(report, scenario);
  CHECK(contains(text, std::to_string(report.communication.buckets.size() - 10) + " more"));
}

TEST_CASE("a model that does not fit is said so") {
  const LoadedScenario scenario = load_resnet({{"model.batch_per_gpu", "4096"}});
  const Report report = predict(scenario).report;
  CHECK(contains(to_text(report, scenario), "DOES NOT FIT"));
  CHECK(contains(to_html(report, scenario), "does not fit"));
}

TEST_CASE("names are escaped in a page") {
  const LoadedScenario scenario = load_lab({{"name", "\"<b>&\""}});
  const std::string page = to_html(predict(scenario).report, scenario);
  CHECK(contains(page, "&lt;b&gt;&amp;"));
  CHECK_FALSE(contains(page, "<b>&"));
}

TEST_CASE("the listing of a scenario says where each value comes from") {
  const std::string listing = listing_of(load_resnet());
  CHECK(contains(listing, "bucket_cap_mb: 25"));
  CHECK(contains(listing, "hw_profiles/machines/dgx_a100_40gb.json"));
  CHECK(contains(listing, "gradient_as_bucket_view: false"));
}

}  // namespace lockstep::report_text_test
