// A comparison of strategies as a table and as JSON.

#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "sim/report/report_json.h"
#include "sim/report/text_table.h"
#include "sim/study/answers/strategy_comparison.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

ordered_json write_strategy(const ComparedStrategy& compared) {
  ordered_json loss = ordered_json::array();
  for (const LossPoint& point : compared.loss) loss.push_back({point.time.in_seconds(), point.loss});
  ordered_json json{{"strategy", compared.name},
                    {"samples_per_s", compared.samples_per_s},
                    {"computing_fraction", compared.computing},
                    {"communicating_fraction", compared.communicating},
                    {"waiting_fraction", compared.waiting},
                    {"bytes_per_gpu", compared.sent_per_gpu.count()}};
  json["staleness"] = compared.staleness ? to_json(*compared.staleness) : ordered_json(nullptr);
  json["conflicts"] = compared.conflicts;
  json["server_utilisation"] =
      compared.server_utilisation ? ordered_json(*compared.server_utilisation) : ordered_json(nullptr);
  json["seconds_to_loss"] =
      compared.time_to_loss ? ordered_json(compared.time_to_loss->in_seconds()) : ordered_json(nullptr);
  json["loss"] = std::move(loss);
  return json;
}

std::vector<std::string> heading(const Scenario& scenario) {
  std::vector<std::string> cells{"strategy", "samples/s", "waiting",     "communicating",
                                 "sent/GPU", "staleness", "server busy", "final loss"};
  if (scenario.comparison->wanted_loss)
    cells.push_back(fmt::format("to loss {:.4g}", *scenario.comparison->wanted_loss));
  return cells;
}

std::vector<std::string> cells_of(const ComparedStrategy& compared, const Scenario& scenario) {
  std::vector<std::string> cells{
      compared.name,
      fmt::format("{:.0f}", compared.samples_per_s),
      percentage(compared.waiting, 1),
      percentage(compared.communicating, 1),
      format_bytes(compared.sent_per_gpu),
      compared.staleness
          ? fmt::format("{:.1f}, at most {}", compared.staleness->mean, compared.staleness->maximum)
          : "-",
      compared.server_utilisation ? percentage(*compared.server_utilisation, 1) : "-",
      fmt::format("{:.4f}", compared.loss.back().loss)};
  if (scenario.comparison->wanted_loss)
    cells.push_back(compared.time_to_loss ? format_duration(*compared.time_to_loss) : "not reached");
  return cells;
}

}  // namespace

ordered_json to_json(const std::vector<ComparedStrategy>& comparison) {
  ordered_json json = ordered_json::array();
  for (const ComparedStrategy& compared : comparison) json.push_back(write_strategy(compared));
  return json;
}

ordered_json with_comparison(ordered_json document,
                             const std::optional<std::vector<ComparedStrategy>>& comparison) {
  if (comparison)
    document["comparison"] = to_json(*comparison);
  return document;
}

std::string to_text(const std::vector<ComparedStrategy>& comparison, const Scenario& scenario) {
  std::vector<Align> columns(9, Align::right);
  columns.front() = Align::left;
  TextTable table(columns);
  table.add_row(heading(scenario));
  for (const ComparedStrategy& compared : comparison) table.add_row(cells_of(compared, scenario));
  return fmt::format(
             "\nStrategies compared, {} rounds each, and the loss of a model that each really trains\n",
             scenario.comparison->rounds) +
         table.text(2);
}

}  // namespace lockstep
