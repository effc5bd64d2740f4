#include "sim/report/page/chart.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace lockstep::chart_test {

using nlohmann::ordered_json;

double number(const ordered_json& text) {
  return std::stod(text.get<std::string>());
}

Chart chart_of(std::vector<ChartPoint> points) {
  return {.caption = "a chart",
          .x = {.name = "x"},
          .y = {.name = "y"},
          .series = {{.name = "series", .points = std::move(points), .has_line = true}}};
}

TEST_CASE("axes begin at zero and end at a round tick; points lie between them in proportion") {
  // A sixth of 97 is 16.2: the next round step is 20, so the axis ends at 100; of 4.1 it is 0.68: 1, and 5.
  const ordered_json view = to_json(chart_of({{.x = 97, .y = 4.1}, {.x = 50, .y = 2.5}}));
  CHECK(view["x_ticks"].back()["tick"] == "100");
  CHECK(view["y_ticks"].back()["tick"] == "5");
  const double left = number(view["left"]);
  const double right = number(view["right"]);
  CHECK(number(view["x_ticks"].front()["at"]) == left);
  CHECK(number(view["series"][0]["dots"][1]["x"]) == doctest::Approx((left + right) / 2));
  const double top = number(view["y_ticks"].back()["at"]);
  CHECK(number(view["series"][0]["dots"][1]["y"]) == doctest::Approx((number(view["bottom"]) + top) / 2));
}

TEST_CASE("on a logarithmic axis equal ratios are equal distances") {
  Chart chart = chart_of({{.x = 1, .y = 10}, {.x = 2, .y = 100}, {.x = 3, .y = 1000}});
  chart.y.is_logarithmic = true;
  const ordered_json dots = to_json(chart)["series"][0]["dots"];
  const double first = number(dots[0]["y"]) - number(dots[1]["y"]);
  CHECK(first > 0);
  CHECK(number(dots[1]["y"]) - number(dots[2]["y"]) == doctest::Approx(first).epsilon(0.002));
}

TEST_CASE("an axis that does not begin at zero says so") {
  Chart chart = chart_of({{.x = 1, .y = 100}, {.x = 2, .y = 101}});
  CHECK(to_json(chart)["y_name"] == "y");
  chart.y.begins_at_zero = false;
  CHECK(to_json(chart)["y_name"] == "y (the axis does not begin at 0)");
}

TEST_CASE("of dots that cover each other one is labelled, and no label leaves the drawing") {
  const ordered_json view = to_json(chart_of({{.x = 1, .y = 1, .label = "one"},
                                              {.x = 1, .y = 1, .label = "the same"},
                                              {.x = 100, .y = 100, .label = "far to the right"}}));
  REQUIRE(view["labels"].size() == 2);
  CHECK(view["labels"][0]["label"] == "one");
  CHECK(view["labels"][1]["anchor"] == "end");
}

// A hundred thousand points on at most 860 pixels, of which one stands out.
TEST_CASE("a line of more points than pixels is thinned, and keeps its ends and what stands out") {
  std::vector<ChartPoint> points;
  for (int i = 0; i <= 100'000; ++i)
    points.push_back({.x = static_cast<double>(i), .y = i == 31'415 ? 50.0 : 10.0 + i % 7});
  Chart chart = chart_of(points);
  chart.series[0].has_dots = false;
  const ordered_json view = to_json(chart);
  const auto line = view["series"][0]["line"].get<std::string>();
  CHECK(std::count(line.begin(), line.end(), ' ') <= 4 * 861);
  CHECK(line.starts_with(view["left"].get<std::string>() + ","));
  CHECK(line.find(" " + view["right"].get<std::string>() + ",") != std::string::npos);
  CHECK(line.find("," + view["y_ticks"].back()["at"].get<std::string>() + " ") != std::string::npos);
}

TEST_CASE(
    "a limit near the points is within the axis, one far beyond them stands at its end and says where it "
    "is") {
  Chart chart = chart_of({{.x = 1, .y = 1}, {.x = 10, .y = 1}});
  chart.limits = {{.value = 30, .name = "near"}};
  CHECK(to_json(chart)["limits"][0]["limit"] == "near");
  chart.limits = {{.value = 100, .name = "far"}};
  const ordered_json view = to_json(chart);
  CHECK(view["x_ticks"].back()["tick"] == "10");  // a sixth of 10 is 1.7: steps of 2, and 10 is one of them
  CHECK(view["limits"][0]["x1"] == view["right"]);
  CHECK(view["limits"][0]["limit"] == "far: 100, beyond the axis");
}

// ---- what is read ----

ordered_json readout_of(const Chart& chart) {
  return ordered_json::parse(to_json(chart)["readout"].get<std::string>());
}

TEST_CASE("points are read along the axis, where they are drawn, and say what they are") {
  const Chart chart = chart_of({{.x = 97, .y = 4.1, .title = "a title"}, {.x = 50, .y = 2.5}});
  const ordered_json view = to_json(chart);
  const ordered_json points = readout_of(chart)["series"][0]["points"];
  REQUIRE(points.size() == 2);
  CHECK(points[0][2] == "x 50: y 2.5");
  CHECK(points[1][2] == "a title");
  CHECK(points[0][0].get<double>() == doctest::Approx(number(view["series"][0]["dots"][1]["x"])));
  CHECK(points[0][1].get<double>() == doctest::Approx(number(view["series"][0]["dots"][1]["y"])));
  CHECK(view["series"][0]["dots"][1]["title"] == "x 50: y 2.5");
}

TEST_CASE("categories are read by their names, and guides are not read") {
  Chart chart = chart_of({{.x = 0, .y = 3}, {.x = 1, .y = 4}});
  chart.x.ticks = {0, 1};
  chart.x.names = {"fp32", "bf16"};
  chart.series.push_back({.name = "as good as", .points = {{.x = 0, .y = 1}}, .is_guide = true});
  const ordered_json read = readout_of(chart)["series"];
  REQUIRE(read.size() == 1);
  CHECK(read[0]["points"][1][2] == "x bf16: y 4");
}

TEST_CASE("nothing, one point and equal points can be drawn") {
  for (const std::vector<ChartPoint>& points :
       {std::vector<ChartPoint>{}, {{.x = 0, .y = 0}}, {{.x = 5, .y = 5}, {.x = 5, .y = 5}}}) {
    for (const bool is_logarithmic : {false, true}) {
      Chart chart = chart_of(points);
      chart.y.is_logarithmic = is_logarithmic && !points.empty() && points.front().y > 0;
      CHECK(to_json(chart).dump().find("nan") == std::string::npos);
    }
  }
}

}  // namespace lockstep::chart_test
