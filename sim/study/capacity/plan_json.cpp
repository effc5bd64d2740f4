#include "sim/study/capacity/plan_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json seconds_or_null(const std::optional<Duration>& value) {
  return value ? ordered_json(value->in_seconds()) : ordered_json();
}

ordered_json to_json(const PlanGoal& goal) {
  ordered_json json{{std::string(name_of(goal.unit)), goal.amount}};
  json["deadline_s"] = goal.deadline ? ordered_json(goal.deadline->count()) : ordered_json();
  json["budget_usd"] = or_null(goal.budget_usd);
  return json;
}

// The share of the whole that the band's end is of the iteration.
ordered_json at_end(const std::optional<double>& whole, const std::optional<Duration>& end,
                    Duration iteration) {
  return whole && end ? ordered_json(*whole * (end->in_seconds() / iteration.in_seconds())) : ordered_json();
}

ordered_json price_of(const CapacityPlan& plan) {
  if (!plan.price)
    return {};
  return {{"usd_per_gpu_hour", plan.price->usd_per_gpu_hour},
          {"date", plan.price->date.empty() ? ordered_json() : ordered_json(plan.price->date)},
          {"source", plan.price->source}};
}

ordered_json changes_json(const Overrides& changes) {
  ordered_json json = ordered_json::object();
  for (const auto& [path, value] : changes) {
    ordered_json parsed = ordered_json::parse(value, nullptr, false);
    json[path] = parsed.is_discarded() ? ordered_json(value) : std::move(parsed);
  }
  return json;
}

ordered_json breakdown_json(const Breakdown& breakdown) {
  ordered_json json;
  for (const TimePart& part : time_parts) json[std::string(part.key)] = (breakdown.*part.time).in_seconds();
  return json;
}

std::optional<double> per_million(const std::optional<double>& total, const PlanGoal& goal) {
  return total ? std::optional(*total / static_cast<double>(goal.amount) * 1e6) : std::nullopt;
}

ordered_json to_json(const CapacityPlan& plan, const PlanGoal& goal) {
  const Duration iteration = plan.brief.iteration;
  const Throughput& throughput = plan.brief.throughput;
  const auto& tokens = throughput.tokens_per_iteration;
  return {{"machine", plan.machine},
          {"nodes", plan.option.nodes},
          {"gpus", plan.gpus},
          {"strategy", plan.option.strategy},
          {"layout", plan.layout},
          {"layout_set", changes_json(plan.layout_changes)},
          {"iteration_time_s", iteration.in_seconds()},
          {"low", seconds_or_null(plan.low)},
          {"high", seconds_or_null(plan.high)},
          {"samples_per_s", or_null(per_second(throughput.samples_per_iteration, iteration))},
          {"tokens_per_s", or_null(tokens ? per_second(*tokens, iteration) : std::nullopt)},
          {"mfu", or_null(throughput.mfu)},
          {"global_batch", throughput.samples_per_iteration},
          {"iterations", plan.run.iterations},
          {"time_to_train_s", plan.run.seconds},
          {"time_to_train_low_s", at_end(plan.run.seconds, plan.low, iteration)},
          {"time_to_train_high_s", at_end(plan.run.seconds, plan.high, iteration)},
          {"goodput", plan.run.goodput},
          {"gpu_hours", plan.run.gpu_hours},
          {"cost_usd", or_null(plan.run.usd)},
          {"cost_low_usd", at_end(plan.run.usd, plan.low, iteration)},
          {"cost_high_usd", at_end(plan.run.usd, plan.high, iteration)},
          {"usd_per_million_" + std::string(name_of(goal.unit)), or_null(per_million(plan.run.usd, goal))},
          {"price", price_of(plan)},
          {"energy_kwh", or_null(plan.run.kwh)},
          {"energy_low_kwh", at_end(plan.run.kwh, plan.low, iteration)},
          {"energy_high_kwh", at_end(plan.run.kwh, plan.high, iteration)},
          {"memory_bytes", plan.brief.memory.count()},
          {"memory_bytes_capacity", plan.capacity.count()},
          {"limited_by", limit_of(plan.brief)},
          {"breakdown_s", breakdown_json(plan.brief.breakdown)},
          {"is_on_front", plan.is_on_front},
          {"warnings", plan.warnings},
          {"scenario", plan.scenario}};
}

ordered_json to_json(const ScalingPoint& point) {
  return {{"nodes", point.nodes},
          {"iteration_time_s", point.iteration.in_seconds()},
          {"work_per_iteration", point.work_per_iteration},
          {"efficiency", point.efficiency},
          {"time_to_train_s", point.run.seconds},
          {"cost_usd", or_null(point.run.usd)}};
}

ordered_json to_json(const PlanOutlook& outlook) {
  ordered_json json{{"chance_of_deadline", or_null(outlook.chance_of_deadline)},
                    {"sensitivities", ordered_json::array()},
                    {"price_rise", nullptr},
                    {"scaling", ordered_json::array()}};
  for (const PlanSensitivity& found : outlook.sensitivities)
    json["sensitivities"].push_back(
        {{"change", found.change}, {"time_to_train_s", found.seconds}, {"percent", found.percent}});
  if (outlook.flip)
    json["price_rise"] = {{"percent", outlook.flip->percent},
                          {"then_best", outlook.flip->machine},
                          {"nodes", outlook.flip->nodes}};
  for (const ScalingPoint& point : outlook.scaling) json["scaling"].push_back(to_json(point));
  return json;
}

ordered_json to_json(const RejectedOption& rejected) {
  return {{"machine", rejected.machine},
          {"nodes", rejected.option.nodes},
          {"strategy", rejected.option.strategy},
          {"kind", name_of(rejected.kind)},
          {"reason", rejected.reason}};
}

ordered_json nearest_json(const PlanAnswer& answer) {
  if (!answer.nearest)
    return {};
  ordered_json json = to_json(answer.nearest->plan, answer.goal);
  json["lacking"] = answer.nearest->lacking;
  return json;
}

}  // namespace

ordered_json to_json(const PlanAnswer& answer) {
  ordered_json json{{"schema", "lockstep.plan/1"},
                    {"name", answer.name},
                    {"goal", to_json(answer.goal)},
                    {"objective", answer.objective == PlanObjective::cost ? "cost" : "time"},
                    {"options", answer.options},
                    {"simulated", answer.simulated},
                    {"cut_by_bound", answer.cut_by_bound},
                    {"plans", ordered_json::array()}};
  for (const CapacityPlan& plan : answer.plans) json["plans"].push_back(to_json(plan, answer.goal));
  json["outlook"] = answer.outlook ? to_json(*answer.outlook) : ordered_json();
  json["nearest"] = nearest_json(answer);
  json["rejected"] = ordered_json::array();
  for (const RejectedOption& rejected : answer.rejected) json["rejected"].push_back(to_json(rejected));
  json["warnings"] = answer.warnings;
  return json;
}

}  // namespace lockstep
