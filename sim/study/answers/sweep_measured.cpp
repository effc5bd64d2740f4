#include "sim/study/answers/sweep_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

// Of the cells that have an answer.
std::map<std::size_t, ordered_json> predicted_of(const SweepTable& table) {
  const auto key = std::find(table.keys.begin(), table.keys.end(), "iteration_time_s") - table.keys.begin();
  std::map<std::size_t, ordered_json> predicted;
  for (std::size_t place = 0; place < table.rows.size(); ++place) {
    const SweepRow row = table.rows[place];
    if (row.error.empty() && table.measured->of_cell(row.cell) != nullptr)
      predicted[row.cell] = row.results[static_cast<std::size_t>(key)];
  }
  return predicted;
}

ordered_json point_json(const SweepTable& table, const MeasuredPoint& measured,
                        const ordered_json& predicted) {
  ordered_json point;
  for (std::size_t axis = 0; axis < measured.settings.size(); ++axis)
    point[table.grid.axes()[axis].path] = measured.settings[axis];
  point["measured_s"] = measured.median_s;
  point["measured_p10_s"] = number_or_null(measured.p10_s);
  point["measured_p90_s"] = number_or_null(measured.p90_s);
  point["predicted_s"] = predicted;
  point["error_percent"] =
      predicted.is_number() ? ordered_json(measured.error_percent(predicted.get<double>())) : ordered_json();
  return point;
}

// Of the points that are compared the one that takes least.
const ordered_json* least(const ordered_json& points, const char* key) {
  const ordered_json* found = nullptr;
  for (const ordered_json& point : points)
    if (point["predicted_s"].is_number() &&
        (found == nullptr || point[key].get<double>() < (*found)[key].get<double>()))
      found = &point;
  return found;
}

double lag_percent(const ordered_json& predicted_best, const ordered_json& measured_best) {
  return 100 * (predicted_best["measured_s"].get<double>() / measured_best["measured_s"].get<double>() - 1);
}

// The one setting, or each by its path.
ordered_json setting_json(const SweepTable& table, const ordered_json* point) {
  if (point == nullptr)
    return nullptr;
  const std::vector<SweepAxis>& axes = table.grid.axes();
  if (axes.size() == 1)
    return (*point)[axes[0].path];
  ordered_json setting;
  for (const SweepAxis& axis : axes) setting[axis.path] = (*point)[axis.path];
  return setting;
}

std::string text_of(const ordered_json& setting) {
  if (!setting.is_object())
    return varied_text(setting);
  std::string text;
  for (const auto& [path, value] : setting.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : "  ", path, varied_text(value));
  return text;
}

std::string line_of(const ordered_json& point) {
  const std::string predicted =
      point["predicted_s"].is_number()
          ? fmt::format("predicted {}, {}", duration_text(point["predicted_s"].get<double>()),
                        lockstep::percent_text(point["error_percent"].get<double>()))
          : "not predicted";
  return fmt::format("  {}: {}, {}\n", measured_setting(point),
                     duration_text(point["measured_s"].get<double>()), predicted);
}

std::string source_text(const ordered_json& measured) {
  if (measured.contains("run"))
    return measured["run"].get<std::string>();
  const auto others = measured["cases_left_out"].get<std::size_t>();
  return measured["measurements"].get<std::string>() +
         (others > 0 ? fmt::format(" ({} more of its cases are of no cell of this sweep)", others) : "");
}

}  // namespace

ordered_json measured_json(const SweepTable& table) {
  const MeasuredCells& cells = *table.measured;
  const std::map<std::size_t, ordered_json> predicted = predicted_of(table);
  ordered_json measured{{cells.kind, cells.name}};
  if (cells.kind == "measurements")
    measured["cases_left_out"] = cells.left_out.size();
  measured["points"] = ordered_json::array();
  for (const MeasuredPoint& point : cells.points) {
    const auto found = point.cell ? predicted.find(*point.cell) : predicted.end();
    measured["points"].push_back(
        point_json(table, point, found == predicted.end() ? ordered_json() : found->second));
  }
  const ordered_json* best_predicted = least(measured["points"], "predicted_s");
  const ordered_json* best = least(measured["points"], "measured_s");
  // All three are found before the document grows.
  const ordered_json told{
      {"predicted_best", setting_json(table, best_predicted)},
      {"measured_best", setting_json(table, best)},
      {"predicted_best_costs_percent",
       best == nullptr ? ordered_json() : ordered_json(lag_percent(*best_predicted, *best))}};
  measured.update(told);
  return measured;
}

std::string measured_setting(const ordered_json& point) {
  ordered_json setting;
  for (const auto& [path, value] : point.items()) {
    if (path == "measured_s")
      break;
    setting[path] = value;
  }
  return text_of(setting.size() == 1 ? setting.front() : setting);
}

std::string measured_text(const ordered_json& measured) {
  std::string text = fmt::format("measured by {}:\n", source_text(measured));
  for (const ordered_json& point : measured["points"]) text += line_of(point);
  if (measured["measured_best"].is_null())
    return text + "no cell was both predicted and measured\n";
  return text +
         fmt::format(
             "predicted best {}, measured best {}: the predicted best takes {:.1f} % longer as measured\n",
             text_of(measured["predicted_best"]), text_of(measured["measured_best"]),
             measured["predicted_best_costs_percent"].get<double>());
}

}  // namespace lockstep
