#include "sim/study/bench/table_predictor.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

TablePredictor::Setting& TablePredictor::setting_for(const MeasuredTable& table,
                                                     std::int64_t library_version) {
  const std::string key =
      fmt::format("{}/{}/{}/{}/{}/{}/{}", table.machine, table.nodes, table.gpus_per_node, library_version,
                  table.algorithm, table.protocol, fmt::join(table.protocols, "+"));
  const auto found = std::find_if(settings_.begin(), settings_.end(),
                                  [&](const Setting& setting) { return setting.key == key; });
  if (found != settings_.end())
    return *found;
  settings_.push_back({.key = key,
                       .scenario = load_collective_setting({.machine = table.machine,
                                                            .nodes = table.nodes,
                                                            .gpus_per_node = table.gpus_per_node,
                                                            .algorithm = table.algorithm,
                                                            .protocols = table.protocols},
                                                           store_),
                       .queries = {}});
  Scenario& scenario = settings_.back().scenario;
  // The calibration to come knows the protocol, whatever the one at hand does.
  scenario.communication.protocol = table.protocol;
  scenario.communication.library_version = library_version;
  return settings_.back();
}

std::size_t TablePredictor::add(const MeasuredTable& table, Bytes size, std::int64_t library_version) {
  Setting& setting = setting_for(table, library_version);
  const auto found = std::find_if(setting.queries.begin(), setting.queries.end(), [&](const Query& query) {
    return query.op == table.op && query.size == size;
  });
  if (found != setting.queries.end())
    return found->index;
  setting.queries.push_back({.op = table.op, .size = size, .index = queries_});
  return queries_++;
}

std::vector<CollectiveRow> TablePredictor::predict(const Calibration& calibration,
                                                   const std::vector<bool>& wanted) const {
  std::vector<CollectiveRow> rows(queries_);
  for (const Setting& setting : settings_) {
    std::vector<CollectiveQuery> asked;
    for (const Query& query : setting.queries)
      if (wanted[query.index])
        asked.push_back({.op = query.op, .bytes = query.size});
    if (asked.empty())
      continue;
    Scenario scenario = setting.scenario;
    scenario.cluster.calibration = calibration;
    const std::vector<CollectiveRow> answers = CollectiveBench(scenario).predict(asked);
    auto answer = answers.begin();
    for (const Query& query : setting.queries)
      if (wanted[query.index])
        rows[query.index] = *answer++;
  }
  return rows;
}

}  // namespace lockstep
