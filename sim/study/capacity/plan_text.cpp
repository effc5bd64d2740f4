#include "sim/study/capacity/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/quantity_text.h"
#include "sim/report/text_table.h"
#include "sim/study/capacity/plan_quantities.h"

namespace lockstep {
namespace {

double seconds_of(const Breakdown& breakdown, std::initializer_list<Duration Breakdown::*> parts) {
  double seconds = 0;
  for (const auto part : parts) seconds += (breakdown.*part).in_seconds();
  return seconds;
}

std::string work_text(const PlanGoal& goal) {
  return fmt::format("{} {}", grouped(goal.amount), name_of(goal.unit));
}

std::string goal_text(const PlanAnswer& answer) {
  const PlanGoal& goal = answer.goal;
  std::string text = answer.name + ": " + work_text(goal);
  if (goal.deadline)
    text += ", within " + format_horizon(*goal.deadline);
  if (goal.budget_usd)
    text += ", for " + usd_text(*goal.budget_usd) + " at most";
  return text + (answer.objective == PlanObjective::cost ? "; cheapest first\n\n" : "; fastest first\n\n");
}

std::string nodes_text(std::int64_t nodes) {
  return grouped(nodes) + (nodes == 1 ? " node" : " nodes");
}

std::string or_dash(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "-";
}

double per_million(double total, const PlanGoal& goal) {
  return total / static_cast<double>(goal.amount) * 1e6;
}

std::string usd_per_million(const CapacityPlan& plan, const PlanGoal& goal) {
  return plan.run.usd ? usd_text(per_million(*plan.run.usd, goal)) : "-";
}

// The band of the iteration, as that of the whole.
std::string time_band(const CapacityPlan& plan) {
  if (!plan.low || !plan.high)
    return "not known";
  const double a_second = plan.run.seconds / plan.brief.iteration.in_seconds();
  return fmt::format("{} to {}", time_text(a_second * plan.low->in_seconds()),
                     time_text(a_second * plan.high->in_seconds()));
}

std::string table_of(const PlanAnswer& answer) {
  constexpr Align l = Align::left;
  constexpr Align r = Align::right;
  TextTable table({r, l, r, r, l, r, r, l, r, r, r, r, r, l});
  table.add_row({"", "machine", "nodes", "GPUs", "layout", "iteration", "time", "80 % within", "cost",
                 fmt::format("$/M {}", name_of(answer.goal.unit)), "energy", "goodput", "memory",
                 "most of it goes into"});
  for (std::size_t rank = 0; rank < answer.plans.size(); ++rank) {
    const CapacityPlan& plan = answer.plans[rank];
    table.add_row({fmt::format("{}{}", plan.is_on_front ? "*" : "", rank + 1), plan.machine,
                   grouped(plan.option.nodes), grouped(plan.gpus), plan.layout,
                   format_duration(plan.brief.iteration), time_text(plan.run.seconds), time_band(plan),
                   or_dash(plan.run.usd, usd_text), usd_per_million(plan, answer.goal),
                   or_dash(plan.run.kwh, energy_text), percentage(plan.run.goodput, 1),
                   format_bytes(plan.brief.memory), limit_of(plan.brief)});
  }
  return table.text(0) + "* none is both faster and cheaper\n";
}

std::string counts_of(const PlanAnswer& answer) {
  return fmt::format("{} clusters to choose from: {} simulated, {} cut by their bound; {} rejected\n",
                     grouped(static_cast<std::int64_t>(answer.options)), answer.simulated,
                     answer.cut_by_bound, answer.rejected.size());
}

// ---- what would change the answer ----

std::string sensitivities_text(const PlanOutlook& outlook) {
  TextTable table({Align::left, Align::right, Align::right});
  for (const PlanSensitivity& found : outlook.sensitivities)
    table.add_row({found.change, fmt::format("{:+.1f} %", found.percent), time_text(found.seconds)});
  return "The best with other parts, nothing else changed:\n" + table.text(2);
}

std::string scaling_text(const PlanAnswer& answer) {
  TextTable table({Align::right, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row(
      {"nodes", "iteration", fmt::format("{}/s", name_of(answer.goal.unit)), "efficiency", "time", "cost"});
  for (const ScalingPoint& point : answer.outlook->scaling)
    table.add_row({grouped(point.nodes), format_duration(point.iteration),
                   grouped(static_cast<std::int64_t>(static_cast<double>(point.work_per_iteration) /
                                                     point.iteration.in_seconds())),
                   percentage(point.efficiency, 1), time_text(point.run.seconds),
                   or_dash(point.run.usd, usd_text)});
  return "The best's machine with other numbers of nodes:\n" + table.text(2);
}

std::string outlook_text(const PlanAnswer& answer) {
  if (!answer.outlook)
    return "";
  const PlanOutlook& outlook = *answer.outlook;
  std::string text = "\n";
  if (outlook.chance_of_deadline)
    text +=
        fmt::format("The best is in time with a chance of {:.0f} %, as far as the prediction may be wrong.\n",
                    100 * *outlook.chance_of_deadline);
  if (outlook.flip)
    text += fmt::format("Were it {:.1f} % dearer, {} of {} would be cheaper.\n", outlook.flip->percent,
                        nodes_text(outlook.flip->nodes), outlook.flip->machine);
  text += sensitivities_text(outlook);
  return outlook.scaling.size() > 1 ? text + scaling_text(answer) : text;
}

// ---- what it rests on ----

// Of the machines that are told, each price once.
std::string prices_text(const PlanAnswer& answer) {
  std::vector<std::string> lines;
  for (const CapacityPlan& plan : answer.plans) {
    if (!plan.price)
      continue;
    const std::string line = fmt::format(
        "  {}: {} a GPU and hour, {} ({})\n", plan.machine, usd_text(plan.price->usd_per_gpu_hour),
        plan.price->date.empty() ? "no date" : plan.price->date, plan.price->source);
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(line);
  }
  std::string text = lines.empty() ? "" : "Prices:\n";
  for (const std::string& line : lines) text += line;
  return text;
}

// ---- what was rejected ----

std::string_view words_of(Rejection kind) {
  switch (kind) {
    case Rejection::not_loadable:
      return "cannot be";
    case Rejection::out_of_memory:
      return "do not fit";
    case Rejection::gets_nowhere:
      return "fail too often";
    case Rejection::too_late:
      return "too late";
    case Rejection::too_dear:
      return "too dear";
    case Rejection::too_large:
      break;
  }
  return "too large to be simulated (--yes)";
}

// One line for all numbers of nodes of a machine and a strategy that are rejected alike, with the reason of the
// largest.
std::string rejected_text(const PlanAnswer& answer) {
  std::map<std::tuple<std::size_t, std::string, Rejection>, std::vector<const RejectedOption*>> groups;
  for (const RejectedOption& rejected : answer.rejected)
    groups[{rejected.option.candidate, rejected.option.strategy, rejected.kind}].push_back(&rejected);
  std::string text = groups.empty() ? "" : "Rejected:\n";
  for (const auto& [key, group] : groups) {
    const RejectedOption& least = *group.front();
    const RejectedOption& most = *group.back();
    const std::string nodes =
        (group.size() == 1 ? "" : grouped(least.option.nodes) + " to ") + nodes_text(most.option.nodes);
    text += fmt::format("  {}, {}, {}: {}: {}\n", most.machine,
                        most.option.strategy.empty() ? "as stated" : most.option.strategy, nodes,
                        words_of(most.kind), most.reason);
  }
  return text;
}

std::string warnings_text(const PlanAnswer& answer) {
  std::string text;
  for (const std::string& warning : answer.warnings) text += "Warning: " + warning + "\n";
  return text;
}

}  // namespace

std::string limit_of(const Brief& brief) {
  using B = Breakdown;
  const B& parts = brief.breakdown;
  const std::array<std::pair<std::string_view, double>, 6> shares{{
      {"computing",
       seconds_of(parts, {&B::forward, &B::backward, &B::recompute, &B::optimizer, &B::gradient_copy})},
      {"communication", seconds_of(parts, {&B::exposed_communication, &B::straggler_wait})},
      {"pipeline bubble", seconds_of(parts, {&B::pipeline_bubble})},
      {"host", seconds_of(parts, {&B::host_overhead})},
      {"input", seconds_of(parts, {&B::input_stall})},
      {"checkpoints", seconds_of(parts, {&B::checkpoint, &B::other})},
  }};
  const auto& most = *std::max_element(shares.begin(), shares.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("{} ({})", most.first, percentage(most.second, brief.iteration.in_seconds()));
}

std::string describe_no_plan(const PlanAnswer& answer) {
  if (!answer.nearest)
    return fmt::format("none of {} clusters can train it: {}", answer.options,
                       answer.rejected.empty() ? "" : answer.rejected.front().reason);
  const CapacityPlan& plan = answer.nearest->plan;
  return fmt::format("none of {} clusters reaches the goal; the nearest, {} of {} ({}), {}", answer.options,
                     nodes_text(plan.option.nodes), plan.machine, plan.layout, answer.nearest->lacking);
}

std::string to_text(const PlanAnswer& answer) {
  std::string text = goal_text(answer);
  if (!answer.plans.empty())
    text += table_of(answer) + "\n";
  return text + counts_of(answer) + outlook_text(answer) + prices_text(answer) + rejected_text(answer) +
         warnings_text(answer);
}

}  // namespace lockstep
