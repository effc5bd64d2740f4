#include "sim/study/answers/sweep_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/report/page/chart.h"
#include "sim/report/page/page.h"
#include "sim/report/page/page_table.h"
#include "sim/report/page/page_text.h"
#include "sim/study/answers/sweep_measured.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

constexpr std::size_t most_rows_told = 1000;
constexpr std::size_t most_lines = 6;  // as many as hues

// What is varied, and what of each cell is asked for.
struct SweepView {
  const ordered_json& document;
  std::vector<std::string> varied;
  std::string key;
  bool is_largest;
};

SweepView view_of_sweep(const ordered_json& document) {
  const bool is_largest = document.contains("maximize");
  return {.document = document,
          .varied = document.at("varied").get<std::vector<std::string>>(),
          .key = document.at(is_largest ? "maximize" : "minimize").get<std::string>(),
          .is_largest = is_largest};
}

std::string setting_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string value_text_of(const std::string& key, double value) {
  if (key.ends_with("per_s"))
    return rate_text(value);
  if (key.ends_with("_s") || key.find("_s.") != std::string::npos)
    return duration_text(value);
  return key.find("bytes") != std::string::npos ? bytes_text(value) : plain_text(value);
}

PageCell value_cell(const ordered_json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number())
    return "-";
  return {value_text_of(key, found->get<double>()), *found};
}

bool has_number(const ordered_json& row, const std::string& key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number();
}

// ---- the chart ----

std::vector<ordered_json> settings_of(const SweepView& sweep, const std::string& path) {
  std::vector<ordered_json> settings;
  for (const ordered_json& row : sweep.document.at("rows"))
    if (std::find(settings.begin(), settings.end(), row.at(path)) == settings.end())
      settings.push_back(row.at(path));
  return settings;
}

std::string path_along(const SweepView& sweep) {
  std::string most = sweep.varied.front();
  std::size_t settings = 0;
  for (const std::string& path : sweep.varied)
    if (const std::size_t count = settings_of(sweep, path).size(); count > settings) {
      settings = count;
      most = path;
    }
  return most;
}

// Logarithmic where settings are spread over more than a decade.
ChartAxis axis_of(const std::string& path, const std::vector<ordered_json>& settings) {
  ChartAxis axis{.name = path};
  const bool has_numbers = std::all_of(settings.begin(), settings.end(),
                                       [](const ordered_json& value) { return value.is_number(); });
  for (std::size_t i = 0; i < settings.size(); ++i) {
    axis.ticks.push_back(has_numbers ? settings[i].get<double>() : static_cast<double>(i));
    if (!has_numbers)
      axis.names.push_back(setting_text(settings[i]));
  }
  std::sort(axis.ticks.begin(), axis.ticks.end());
  axis.is_logarithmic = has_numbers && axis.ticks.front() > 0 && axis.ticks.back() > 10 * axis.ticks.front();
  return axis;
}

std::string others_of(const SweepView& sweep, const ordered_json& row, const std::string& along) {
  std::string text;
  for (const std::string& path : sweep.varied)
    if (path != along)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", path, setting_text(row.at(path)));
  return text;
}

std::string setting_of(const SweepView& sweep, const ordered_json& row) {
  std::string text;
  for (const std::string& path : sweep.varied)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", path, setting_text(row.at(path)));
  return text;
}

ChartPoint point_of_row(const SweepView& sweep, const ordered_json& row, double x) {
  const double value = row.at(sweep.key).get<double>();
  const std::string told = value_text_of(sweep.key, value);
  ChartPoint point{.x = x, .y = value, .title = setting_of(sweep, row) + ": " + told};
  if (row == sweep.document.at("best"))
    point.label = "best: " + told;
  const bool has_band = sweep.key == "iteration_time_s" && has_number(row, "iteration_time_low_s") &&
                        has_number(row, "iteration_time_high_s");
  if (has_band) {
    const double low = row.at("iteration_time_low_s").get<double>();
    const double high = row.at("iteration_time_high_s").get<double>();
    point.band = {x, low, x, high};
    point.title += fmt::format(", 80 % within {} to {}", duration_text(low), duration_text(high));
  }
  return point;
}

// Where a setting stands on the axis: as the number that it is, else at its place among them.
std::optional<double> place_of(const ordered_json& setting, const std::vector<ordered_json>& settings,
                               const ChartAxis& axis) {
  if (axis.names.empty())
    return setting.is_number() ? std::optional(setting.get<double>()) : std::nullopt;
  const auto found = std::find(settings.begin(), settings.end(), setting);
  return found == settings.end() ? std::nullopt
                                 : std::optional(static_cast<double>(found - settings.begin()));
}

Chart chart_of(const SweepView& sweep) {
  const std::string along = path_along(sweep);
  const std::vector<ordered_json> settings = settings_of(sweep, along);
  const ChartAxis axis = axis_of(along, settings);
  std::map<std::string, std::size_t> lines;
  Chart chart{.caption = sweep.key + " by " + along,
              .x = axis,
              .y = {.name = sweep.key, .begins_at_zero = false},
              .series = {}};
  for (const ordered_json& row : sweep.document.at("rows")) {
    if (!has_number(row, sweep.key))
      continue;
    const std::string name = others_of(sweep, row, along);
    const auto [line, is_new] = lines.try_emplace(name, chart.series.size());
    if (is_new)
      chart.series.push_back({.name = name,
                              .points = {},
                              .hue = fmt::format("hue-{}", chart.series.size() % most_lines),
                              .has_line = true});
    chart.series[line->second].points.push_back(
        point_of_row(sweep, row, *place_of(row.at(along), settings, axis)));
  }
  for (ChartSeries& series : chart.series)
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const ChartPoint& one, const ChartPoint& other) { return one.x < other.x; });
  return chart;
}

// Medians as hollow dots, where they are known from the 10th to the 90th percentile.
ChartSeries measured_series(const SweepView& sweep) {
  const ordered_json& measured = sweep.document.at("measured");
  const std::string along = path_along(sweep);
  const std::vector<ordered_json> settings = settings_of(sweep, along);
  const ChartAxis axis = axis_of(along, settings);
  ChartSeries series{.name = "measured: " + measured.front().get<std::string>(),
                     .points = {},
                     .hue = "hue-quiet",
                     .is_hollow = true};
  for (const ordered_json& point : measured.at("points")) {
    const std::optional<double> x = place_of(point.at(along), settings, axis);
    if (!x)
      continue;
    const double y = point.at("measured_s").get<double>();
    ChartPoint drawn{
        .x = *x, .y = y, .title = setting_of(sweep, point) + ": " + duration_text(y) + " measured"};
    if (has_number(point, "error_percent"))
      drawn.title += ", predicted " + lockstep::percent_text(point.at("error_percent").get<double>());
    if (has_number(point, "measured_p10_s"))
      drawn.band = {*x, point.at("measured_p10_s").get<double>(), *x,
                    point.at("measured_p90_s").get<double>()};
    series.points.push_back(std::move(drawn));
  }
  return series;
}

void add_chart(const SweepView& sweep, ordered_json& view) {
  Chart chart = chart_of(sweep);
  const std::size_t lines = chart.series.size();
  if (lines == 0)
    return;
  if (lines == 1)
    chart.series.front().has_area = true;
  view["chart_note"] =
      lines > most_lines
          ? ordered_json(fmt::format("Of {} combinations of the other settings the first {} are drawn.",
                                     lines, most_lines))
          : ordered_json(false);
  chart.series.resize(std::min(lines, most_lines));
  if (sweep.key == "iteration_time_s" && sweep.document.contains("measured")) {
    if (lines == 1)
      chart.series.front().name = "predicted";
    chart.series.push_back(measured_series(sweep));
  }
  view["chart"] = to_json(chart);
}

// ---- the table and the answer ----

struct ToldKey {
  std::string key;
  std::string heading;
};

// What was asked for, and what is always worth knowing.
std::vector<ToldKey> told_keys(const SweepView& sweep) {
  std::vector<ToldKey> keys;
  if (sweep.key != "iteration_time_s")
    keys.push_back({sweep.key, sweep.key});
  for (const ToldKey& key : {ToldKey{"iteration_time_s", "iteration"},
                             {"iteration_time_low_s", "80 % from"},
                             {"iteration_time_high_s", "to"},
                             {"samples_per_s", "samples/s"},
                             {"memory_bytes.total", "memory"}})
    if (key.key == "iteration_time_s" || key.key != sweep.key)
      keys.push_back(key);
  return keys;
}

std::vector<PageCell> cells_of(const SweepView& sweep, const ordered_json& row,
                               const std::vector<ToldKey>& keys) {
  std::vector<PageCell> cells;
  for (const std::string& path : sweep.varied) cells.emplace_back(setting_text(row.at(path)));
  for (const ToldKey& key : keys) cells.push_back(value_cell(row, key.key));
  const auto error = row.find("error");
  cells.emplace_back(error == row.end() || !error->is_string() ? "" : error->get<std::string>());
  return cells;
}

ordered_json rows_table(const SweepView& sweep) {
  const ordered_json& rows = sweep.document.at("rows");
  const std::size_t told = std::min(rows.size(), most_rows_told);
  const std::vector<ToldKey> keys = told_keys(sweep);
  std::vector<PageColumn> columns;
  for (const std::string& path : sweep.varied) columns.push_back({path, Kind::words});
  for (const ToldKey& key : keys) columns.push_back({key.heading});
  columns.push_back({"error", Kind::long_words});
  PageTable table(told == rows.size()
                      ? "All cells; the best is marked"
                      : fmt::format("The first {} of {} cells; the CSV has all", told, rows.size()),
                  columns);
  for (std::size_t i = 0; i < told; ++i)
    table.add_row(cells_of(sweep, rows[i], keys), rows[i] == sweep.document.at("best"));
  return table.view();
}

std::vector<PageFact> facts_of_best(const SweepView& sweep, const ordered_json& best) {
  std::vector<PageFact> facts;
  for (const std::string& path : sweep.varied) facts.push_back({path, PageCell(setting_text(best.at(path)))});
  facts.push_back({sweep.key, value_cell(best, sweep.key)});
  for (const char* key : {"iteration_time_s", "samples_per_s", "memory_bytes.total"})
    if (key != sweep.key && has_number(best, key))
      facts.push_back({key, value_cell(best, key)});
  return facts;
}

void add_best(const SweepView& sweep, ordered_json& view) {
  const ordered_json& best = sweep.document.at("best");
  view["verdict_style"] = best.is_null() ? "bad" : "good";
  view["verdict"] = best.is_null()
                        ? "No cell has an answer that fits."
                        : fmt::format("The {} {} is {}.", sweep.is_largest ? "largest" : "smallest",
                                      sweep.key, value_cell(best, sweep.key).text);
  view.update(facts_view(best.is_null() ? std::vector<PageFact>{} : facts_of_best(sweep, best)));
}

}  // namespace

std::string sweep_page(const ordered_json& document, const SweepPageFacts& facts) {
  const SweepView sweep = view_of_sweep(document);
  const ordered_json& rows = document.at("rows");
  const auto failed = std::count_if(rows.begin(), rows.end(), [&](const ordered_json& row) {
    return !has_number(row, "iteration_time_s");
  });
  std::string subtitle;
  for (const std::string& path : sweep.varied) subtitle += (subtitle.empty() ? "varied: " : ", ") + path;
  ordered_json view{
      {"title", facts.scenario},
      {"kind", "Lockstep: sweep"},
      {"subtitle", subtitle},
      {"counts", fmt::format("{} cells, {} of them without an answer.", rows.size(), failed)},
      {"measured", document.contains("measured") ? ordered_json(measured_text(document.at("measured")))
                                                 : ordered_json(false)},
      {"chart", nullptr},
      {"rows_told", rows_table(sweep)}};
  add_best(sweep, view);
  add_chart(sweep, view);
  return render_page("sweep.html", view);
}

}  // namespace lockstep
