#pragma once

// A chart of lines and points, as what chart.html draws.
//
// Problem:   a picture must be readable without a script, in light and dark, and say what its table says.
// Idea:      here figures become places: axes with round ticks, a line, an area or dots a series, the band of a point
//            as a stroke between its ends (which both move where time and cost are wrong together), limits as dashed
//            lines. Colours and fonts are the style sheet's. Where each point is drawn, and its words, stand beside the
//            drawing for chart.js, by which the pointer and the arrow keys read them.
// Invariant: what lies outside an axis is drawn at its end; labels that would hide another label are left out, the
//            table has them. The same on every machine: sums, products, quotients and our own logarithm.
// Cost:      quadratic in the labels, linear in all else; in the page, four points a pixel's width of a line.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string title = {};  // told when pointed at; empty: both values with the names of their axes
  std::string label = {};  // beside the dot
  struct Band {
    double x_low, y_low, x_high, y_high;
  };
  std::optional<Band> band = {};
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  std::string hue = "hue-0";  // a class of style.css
  bool has_line = false;
  bool has_dots = true;
  bool has_area = false;  // from band to band
  bool is_dashed = false;
  bool is_hollow = false;
  bool is_guide = false;  // to see others by: nobody reads its points
};

struct ChartAxis {
  std::string name;  // with its unit
  bool is_logarithmic = false;
  bool begins_at_zero = true;           // of a linear one
  std::vector<double> ticks = {};       // where they are given: the settings that were tried
  std::vector<std::string> names = {};  // of the given ticks: categories
};

// One that lies far beyond all points does not stretch the axis: it stands at its end, and its name says where it is.
struct ChartLimit {
  double value = 0;
  std::string name;
  bool is_of_x = true;
};

struct Chart {
  std::string caption;
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartSeries> series;
  std::vector<ChartLimit> limits = {};
};

nlohmann::ordered_json to_json(const Chart& chart);

// "0.25", "1,500", "2.5e+09": at most four digits.
std::string tick_text(double value);

}  // namespace lockstep
