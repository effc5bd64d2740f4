#include "sim/report/report_text.h"

#include <fmt/format.h>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/collective.h"
#include "sim/load/reading/spelling.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {

std::string to_text(const Report& report, const LoadedScenario& scenario, const TextStyle& style) {
  std::string text = headline_text(report, scenario, style);
  text += breakdown_text(report, style);
  text += buckets_text(report.communication.buckets, style);
  text += collectives_text(report.communication, style);
  text += communication_text(report.communication, report.iteration, style);
  text += dimensions_text(report.communication, report.iteration, style);
  if (report.asynchrony)
    text += asynchrony_text(*report.asynchrony, style);
  text += memory_text(report.memory, style);
  if (report.imbalance)
    text += imbalance_text(*report.imbalance);
  if (report.input)
    text += input_text(*report.input, style);
  if (report.disturbance.goodput)
    text += goodput_text(*report.disturbance.goodput, style);
  text += critical_path_text(report.critical_path, style);
  text += warnings_text(report.warnings, style);
  return text;
}

std::string to_text(const std::vector<CollectiveGroup>& groups, std::size_t indent) {
  TextTable table({Align::left, Align::right, Align::left, Align::right, Align::right, Align::right,
                   Align::left, Align::left, Align::right, Align::right});
  table.add_row({"what", "number", "collective", "ranks", "size", "sent", "algorithm", "protocol", "active",
                 "exposed"});
  for (const CollectiveGroup& group : groups)
    table.add_row({printable_name(name_of(group)), std::to_string(group.count),
                   std::string(collective_op_name(group.first->op)), std::to_string(group.first->ranks),
                   format_bytes(group.bytes), format_bytes(group.sent), group.first->algorithm,
                   group.first->protocol, time_cell(group.active), time_cell(group.exposed)});
  return table.text(indent);
}

namespace {

std::string model_name(const ModelUse& model) {
  if (!model.name.empty())
    return model.name;
  return model.measured ? "a measured model" : "an explicit model";
}

}  // namespace

std::string summary_of(const LoadedScenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const std::string nodes = cluster.nodes == 1 ? "one node" : fmt::format("{} nodes", cluster.nodes);
  const std::string changes = text_of(scenario.changes);
  const std::string changed = changes.empty() ? "" : "; changed: " + changes;
  if (scenario.program)
    return fmt::format("a stated plan of {} ranks on {} of {} x {} ({}){}", cluster.ranks(), nodes,
                       cluster.gpus_per_node, cluster.gpu.name, cluster.machine.name, changed);
  return fmt::format("{} of {} ({}, batch {} a GPU) on {} of {} x {} ({}){}", scenario.training.strategy,
                     model_name(scenario.model), name_of(scenario.model.precision, precision_spellings),
                     scenario.model.batch_per_gpu, nodes, cluster.gpus_per_node, cluster.gpu.name,
                     cluster.machine.name, changed);
}

}  // namespace lockstep
