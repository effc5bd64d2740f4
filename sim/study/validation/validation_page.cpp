#include "sim/study/validation/validation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/page/chart.h"
#include "sim/report/page/page.h"
#include "sim/report/page/page_table.h"
#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

constexpr std::size_t most_cases = 1500;
constexpr double largest_bar = 50;  // percent that fill half of a bar's column

std::string percent_of(double percent) {
  return fmt::format("{:.1f} %", percent);
}

// From the middle: to the left what is predicted too short.
std::vector<BarPart> error_bar(double percent) {
  const double width = std::min(50.0, 50 * std::abs(percent) / largest_bar);
  return {{.left = percent < 0 ? 50 - width : 50,
           .width = width,
           .title = percent_text(percent),
           .hue = percent < 0 ? "hue-0" : "hue-1"}};
}

std::string word_of(const std::string& split) {
  return split == "fit" ? "fitted" : "held out";
}

// ---- a suite of cases ----

std::string value_text(const ordered_json& entry, const char* key) {
  if (entry.at(key).is_null())
    return "-";
  const double value = entry.at(key).get<double>();
  return entry.value("quantity", "") == "memory_bytes" ? bytes_text(value) : duration_text(value);
}

std::string case_band(const ordered_json& entry) {
  if (entry.at("low").is_null() || entry.at("high").is_null())
    return "-";
  return value_text(entry, "low") + " to " + value_text(entry, "high");
}

bool is_time(const ordered_json& entry) {
  return !entry.contains("quantity") && entry.at("measured").get<double>() > 0 &&
         entry.at("predicted").get<double>() > 0;
}

// Where the prediction is `factor` times what was measured.
ChartSeries ratio_line(double factor, double low, double high, std::string name) {
  return {.name = std::move(name),
          .points = {{.x = low, .y = low * factor}, {.x = high, .y = high * factor}},
          .hue = "hue-quiet",
          .has_line = true,
          .has_dots = false,
          .is_dashed = factor != 1,
          .is_guide = true};
}

struct ScatterPoint {
  double measured;
  double predicted;
  std::string name;
  bool is_fitted;
};

ordered_json scatter_of(const std::vector<ScatterPoint>& points, const std::string& unit) {
  if (points.empty())
    return {};
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(),
      [](const ScatterPoint& one, const ScatterPoint& other) { return one.measured < other.measured; });
  ChartSeries held_out{.name = "held out", .points = {}};
  ChartSeries fitted{.name = "fitted", .points = {}, .hue = "hue-1", .is_hollow = true};
  for (const ScatterPoint& point : points)
    (point.is_fitted ? fitted : held_out)
        .points.push_back(
            {.x = point.measured,
             .y = point.predicted,
             .title = fmt::format("{}, measured {} {}, predicted {} {}", point.name,
                                  tick_text(point.measured), unit, tick_text(point.predicted), unit)});
  Chart chart{.caption = "Predicted against measured time, both on a logarithmic axis",
              .x = {.name = "measured [" + unit + "]", .is_logarithmic = true},
              .y = {.name = "predicted [" + unit + "]", .is_logarithmic = true},
              .series = {ratio_line(1, least->measured, most->measured, "as measured"),
                         ratio_line(1.1, least->measured, most->measured, "10 % more or less"),
                         ratio_line(1 / 1.1, least->measured, most->measured, "")}};
  for (ChartSeries* series : {&held_out, &fitted})
    if (!series->points.empty())
      chart.series.push_back(std::move(*series));
  return to_json(chart);
}

ordered_json scatter_of_cases(const ordered_json& cases) {
  std::vector<ScatterPoint> points;
  for (const ordered_json& entry : cases)
    if (is_time(entry))
      points.push_back({.measured = entry.at("measured").get<double>(),
                        .predicted = entry.at("predicted").get<double>(),
                        .name = fmt::format("{}: {}", entry.at("name").get<std::string>(),
                                            percent_text(entry.at("error_percent").get<double>())),
                        .is_fitted = entry.at("split") == "fit"});
  return scatter_of(points, "s");
}

std::string held_text(const ordered_json& group) {
  const auto band = group.find("band");
  if (band == group.end() || band->is_null())
    return "-";
  return fmt::format("{} of {}", band->at("held").dump(), band->at("n").dump());
}

ordered_json groups_table(const ordered_json& groups, const std::string& split) {
  PageTable table("Errors of each group; the bar is the bias, to the left where predictions are too short",
                  {{"group", Kind::words},
                   {"", Kind::bar},
                   {"cases"},
                   {"mean absolute"},
                   {"median"},
                   {"90th percentile"},
                   {"bias"},
                   {"in the band"}});
  for (const ordered_json& group : groups)
    if (group.at("split") == split)
      table.add_row({group.at("group").get<std::string>(), error_bar(group.at("bias_percent").get<double>()),
                     figure(group.at("n"), count_text), figure(group.at("mape_percent"), percent_of),
                     figure(group.at("median_percent"), percent_of),
                     figure(group.at("p90_percent"), percent_of),
                     figure(group.at("bias_percent"), percent_text), held_text(group)});
  ordered_json view = table.view();
  if (!view.is_null())
    view["heading"] = split == "fit" ? "Groups that were fitted" : "Groups that were held out";
  return view;
}

// With what keeps it out of its group's figures.
std::string group_text(const ordered_json& entry) {
  const auto caution = entry.find("caution");
  const std::string group = entry.at("group").get<std::string>();
  return caution == entry.end() || !caution->is_string()
             ? group
             : group + "; not counted: " + caution->get<std::string>();
}

std::vector<const ordered_json*> worst_of(const ordered_json& cases) {
  std::vector<const ordered_json*> told;
  for (const ordered_json& entry : cases) told.push_back(&entry);
  if (told.size() <= most_cases)
    return told;
  const auto size_of = [](const ordered_json* entry) {
    return std::abs(entry->at("error_percent").get<double>());
  };
  std::stable_sort(told.begin(), told.end(), [&](const ordered_json* one, const ordered_json* other) {
    return size_of(one) > size_of(other);
  });
  told.resize(most_cases);
  return told;
}

ordered_json cases_table(const ordered_json& cases) {
  const std::vector<const ordered_json*> told = worst_of(cases);
  const std::string caption = told.size() == cases.size()
                                  ? "All cases"
                                  : fmt::format("The {} cases with the largest errors of {}; --json has all",
                                                told.size(), cases.size());
  PageTable table(caption, {{"case", Kind::long_words},
                            {"group", Kind::long_words},
                            {"", Kind::words},
                            {"measured"},
                            {"predicted"},
                            {"80 % within"},
                            {"error"},
                            {"", Kind::bar}});
  for (const ordered_json* entry : told)
    table.add_row({entry->at("name").get<std::string>(), group_text(*entry), word_of(entry->at("split")),
                   PageCell(value_text(*entry, "measured"), entry->at("measured")),
                   PageCell(value_text(*entry, "predicted"), entry->at("predicted")), case_band(*entry),
                   figure(entry->at("error_percent"), percent_text),
                   error_bar(entry->at("error_percent").get<double>())});
  return table.view();
}

std::vector<PageFact> facts_of_groups(const ordered_json& document) {
  std::vector<PageFact> facts;
  for (const char* split : {"heldout", "fit"}) {
    std::vector<double> means;
    double cases = 0;
    for (const ordered_json& group : document.at("groups"))
      if (group.at("split") == split) {
        means.push_back(group.at("mape_percent").get<double>());
        cases += group.at("n").get<double>();
      }
    if (means.empty())
      continue;
    const double worst = *std::max_element(means.begin(), means.end());
    const std::size_t within = static_cast<std::size_t>(
        std::count_if(means.begin(), means.end(), [](double mean) { return mean <= 10; }));
    facts.push_back({"groups " + word_of(split), PageCell(count_text(static_cast<double>(means.size()))),
                     count_text(cases) + " cases"});
    facts.push_back({word_of(split) + ": within 10 % on average",
                     PageCell(fmt::format("{} of {} groups", within, means.size())),
                     "the worst group: " + percent_of(worst)});
  }
  return facts;
}

ordered_json view_of_cases(const ordered_json& document) {
  ordered_json view{{"title", "Predicted against measured"},
                    {"kind", "Lockstep: validation"},
                    {"subtitle", count_text(static_cast<double>(document.at("cases").size())) +
                                     " cases; groups are never pooled, fitted and held-out ones stand apart"},
                    {"note", false},
                    {"scatter", scatter_of_cases(document.at("cases"))},
                    {"summaries", ordered_json::array()},
                    {"cases", cases_table(document.at("cases"))}};
  for (const char* split : {"heldout", "fit"})
    if (ordered_json table = groups_table(document.at("groups"), split); !table.is_null())
      view["summaries"].push_back(std::move(table));
  view.update(facts_view(facts_of_groups(document)));
  return view;
}

// ---- tables of collectives ----

std::string quantiles_text(const ordered_json& errors) {
  if (errors.at("median").is_null())
    return "-";
  return fmt::format("{} / {}", share_text(errors.at("median").get<double>()),
                     share_text(errors.at("p90").get<double>()));
}

ordered_json summary_table(const ordered_json& summary) {
  PageTable table("Absolute errors, median / 90th percentile, one vote a cell", {{"profile", Kind::words},
                                                                                 {"sizes", Kind::words},
                                                                                 {"cells"},
                                                                                 {"points"},
                                                                                 {"Lockstep"},
                                                                                 {"one line"},
                                                                                 {"NCCL's model"}});
  for (const ordered_json& line : summary)
    table.add_row({line.at("profile").get<std::string>(), line.at("sizes").get<std::string>(),
                   figure(line.at("cells"), count_text), figure(line.at("points"), count_text),
                   quantiles_text(line.at("lockstep")), quantiles_text(line.at("one_line")),
                   quantiles_text(line.at("nccl_model"))});
  ordered_json view = table.view();
  view["heading"] = "Profiles";
  return view;
}

ordered_json scatter_of_points(const ordered_json& document) {
  std::vector<ScatterPoint> points;
  const bool is_fitted = document.at("what").get<std::string>().find("held out") == std::string::npos;
  const ordered_json& all = document.at("points");
  const std::size_t step = all.size() / most_cases + 1;
  for (std::size_t i = 0; i < all.size(); i += step)
    points.push_back({.measured = all[i].at("measured_us").get<double>(),
                      .predicted = all[i].at("predicted_us").get<double>(),
                      .name = fmt::format("{}, {}, {}", all[i].at("table").get<std::string>(),
                                          all[i].at("collective").get<std::string>(),
                                          bytes_text(all[i].at("size_bytes").get<double>())),
                      .is_fitted = is_fitted});
  return scatter_of(points, "us");
}

ordered_json view_of_collectives(const ordered_json& document) {
  const std::size_t points = document.at("points").size();
  ordered_json view{
      {"title", "Collectives: predicted against measured"},
      {"kind", "Lockstep: validation"},
      {"subtitle", document.at("what")},
      {"note", points > most_cases
                   ? ordered_json(fmt::format("The chart has every {}th of the {} points; --json has all.",
                                              points / most_cases + 1, points))
                   : ordered_json(false)},
      {"scatter", scatter_of_points(document)},
      {"summaries", ordered_json::array({summary_table(document.at("summary"))})},
      {"cases", nullptr}};
  view.update(
      facts_view({{"points", PageCell(count_text(static_cast<double>(points)))},
                  {"tables", PageCell(count_text(static_cast<double>(document.at("tables").size())))}}));
  return view;
}

}  // namespace

std::string validation_page(const ordered_json& document) {
  const bool is_of_cases = document.at("schema") == "lockstep.validation/1";
  return render_page("validation.html",
                     is_of_cases ? view_of_cases(document) : view_of_collectives(document));
}

}  // namespace lockstep
