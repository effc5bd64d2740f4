#include "sim/study/answers/sweep_measured.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Null where no cell is of this cap, or it has no answer.
ordered_json predicted_at(const SweepTable& table, double bucket_cap_mb) {
  const auto key = std::find(table.keys.begin(), table.keys.end(), "iteration_time_s");
  for (std::size_t place = 0; place < table.rows.size(); ++place) {
    const SweepRow row = table.rows[place];
    const ordered_json value = table.grid.values_at(row.cell).front();
    if (row.error.empty() && value.is_number() && value.get<double>() == bucket_cap_mb)
      return row.results[static_cast<std::size_t>(key - table.keys.begin())];
  }
  return nullptr;
}

ordered_json point_json(const MeasuredCap& cap, const ordered_json& predicted) {
  ordered_json point{{measured_axis, cap.bucket_cap_mb}, {"measured_s", cap.median_s},
                     {"measured_p10_s", cap.p10_s},      {"measured_p90_s", cap.p90_s},
                     {"predicted_s", predicted},         {"error_percent", nullptr}};
  if (predicted.is_number())
    point["error_percent"] = 100 * (predicted.get<double>() / cap.median_s - 1);
  return point;
}

// Of the caps that are compared the one that takes least.
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

std::string error_text(double percent) {
  return fmt::format("{:+.1f} %", percent);
}

std::string line_of(const ordered_json& point) {
  const std::string predicted =
      point["predicted_s"].is_number()
          ? fmt::format("predicted {}, {}", duration_text(point["predicted_s"].get<double>()),
                        error_text(point["error_percent"].get<double>()))
          : "not predicted";
  return fmt::format("  {:g}: {}, {}\n", point[measured_axis].get<double>(),
                     duration_text(point["measured_s"].get<double>()), predicted);
}

}  // namespace

ordered_json measured_json(const SweepTable& table, const MeasuredCurve& curve) {
  ordered_json measured{{"run", curve.run}, {"points", ordered_json::array()}};
  for (const MeasuredCap& cap : curve.caps)
    measured["points"].push_back(point_json(cap, predicted_at(table, cap.bucket_cap_mb)));
  const ordered_json* predicted = least(measured["points"], "predicted_s");
  const ordered_json* best = least(measured["points"], "measured_s");
  const ordered_json predicted_cap = predicted == nullptr ? ordered_json() : (*predicted)[measured_axis];
  const ordered_json best_cap = best == nullptr ? ordered_json() : (*best)[measured_axis];
  const ordered_json lag = best == nullptr ? ordered_json() : ordered_json(lag_percent(*predicted, *best));
  measured["predicted_best"] = predicted_cap;
  measured["measured_best"] = best_cap;
  measured["predicted_best_costs_percent"] = lag;
  return measured;
}

std::string measured_text(const ordered_json& measured) {
  std::string text = fmt::format("measured by {}:\n", measured["run"].get<std::string>());
  for (const ordered_json& point : measured["points"]) text += line_of(point);
  if (measured["measured_best"].is_null())
    return text + "no cap was both predicted and measured\n";
  return text +
         fmt::format(
             "predicted best {:g}, measured best {:g}: the predicted best takes {} longer as measured\n",
             measured["predicted_best"].get<double>(), measured["measured_best"].get<double>(),
             fmt::format("{:.1f} %", measured["predicted_best_costs_percent"].get<double>()));
}

}  // namespace lockstep
