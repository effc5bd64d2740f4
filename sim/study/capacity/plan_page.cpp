#include "sim/study/capacity/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/report/breakdown_bar.h"
#include "sim/report/page/chart.h"
#include "sim/report/page/page.h"
#include "sim/report/page/page_text.h"
#include "sim/study/capacity/plan_quantities.h"
#include "sim/study/capacity/plan_search.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

std::string text_of(const ordered_json& object, const char* key) {
  return object.at(key).get<std::string>();
}

std::string nodes_of(const ordered_json& plan) {
  const double nodes = plan.at("nodes").get<double>();
  return count_text(nodes) + (nodes == 1 ? " node" : " nodes");
}

std::string cluster_of(const ordered_json& plan) {
  return fmt::format("{} of {}", nodes_of(plan), text_of(plan, "machine"));
}

// "tokens" or "samples": what the goal counts.
std::string unit_of(const ordered_json& document) {
  return document.at("goal").contains("tokens") ? "tokens" : "samples";
}

std::string band_text(const ordered_json& low, const ordered_json& high, std::string (*text)(double)) {
  if (low.is_null() || high.is_null())
    return "its band is not known";
  return fmt::format("80 % within {} to {}", text(low.get<double>()), text(high.get<double>()));
}

std::string goal_of(const ordered_json& document) {
  const ordered_json& goal = document.at("goal");
  const std::string unit = unit_of(document);
  std::string text = fmt::format("{} {}", count_text(goal.at(unit).get<double>()), unit);
  if (!goal.at("deadline_s").is_null())
    text += " within " + time_text(goal.at("deadline_s").get<double>());
  if (!goal.at("budget_usd").is_null())
    text += " for " + usd_text(goal.at("budget_usd").get<double>()) + " at most";
  return text + (text_of(document, "objective") == "cost" ? "; cheapest first" : "; fastest first");
}

// ---- the first screen ----

std::string counts_of(const ordered_json& document) {
  return fmt::format(
      "Of {} clusters to choose from {} were simulated, {} cut by their bound and {} rejected.",
      count_text(document.at("options").get<double>()), count_text(document.at("simulated").get<double>()),
      count_text(document.at("cut_by_bound").get<double>()), document.at("rejected").size());
}

std::vector<PageFact> facts_of(const ordered_json& plan) {
  return {
      {"cluster", PageCell(cluster_of(plan)), count_text(plan.at("gpus").get<double>()) + " GPUs"},
      {"time to train", figure(plan.at("time_to_train_s"), time_text),
       band_text(plan.at("time_to_train_low_s"), plan.at("time_to_train_high_s"), time_text)},
      {"cost", figure(plan.at("cost_usd"), usd_text),
       band_text(plan.at("cost_low_usd"), plan.at("cost_high_usd"), usd_text)},
      {"iteration", figure(plan.at("iteration_time_s"), duration_text),
       band_text(plan.at("low"), plan.at("high"), duration_text)},
      {"energy", figure(plan.at("energy_kwh"), energy_text),
       band_text(plan.at("energy_low_kwh"), plan.at("energy_high_kwh"), energy_text)},
      {"memory of a GPU", figure(plan.at("memory_bytes"), bytes_text),
       "of " + bytes_text(plan.at("memory_bytes_capacity").get<double>())},
      {"goodput", figure(plan.at("goodput"), share_text), "of the time gets work done"},
      {"layout", PageCell(text_of(plan, "layout")), "limited by " + text_of(plan, "limited_by")},
  };
}

ordered_json answer_of(const ordered_json& document) {
  const ordered_json& plans = document.at("plans");
  const ordered_json& nearest = document.at("nearest");
  ordered_json view{{"is_feasible", !plans.empty()}, {"counts", counts_of(document)}};
  if (!plans.empty())
    view["verdict"] =
        fmt::format("The {} is {}.", text_of(document, "objective") == "cost" ? "cheapest" : "fastest",
                    cluster_of(plans.front()));
  else if (!nearest.is_null())
    view["verdict"] = fmt::format("No cluster reaches the goal. The nearest, {}, {}.", cluster_of(nearest),
                                  text_of(nearest, "lacking"));
  else
    view["verdict"] = "No cluster can train it.";
  const ordered_json& best = plans.empty() ? nearest : plans.front();
  view.update(facts_view(best.is_null() ? std::vector<PageFact>{} : facts_of(best)));
  return view;
}

void add_outlook(const ordered_json& outlook, ordered_json& view) {
  if (outlook.is_null())
    return;
  if (const ordered_json& chance = outlook.at("chance_of_deadline"); !chance.is_null())
    view["chance"] =
        fmt::format("It is in time with a chance of {:.0f} %, as far as the prediction may be wrong.",
                    100 * chance.get<double>());
  if (const ordered_json& rise = outlook.at("price_rise"); !rise.is_null())
    view["price_rise"] =
        fmt::format("Were it {:.1f} % dearer, {} of {} would be cheaper.", rise.at("percent").get<double>(),
                    nodes_of(rise), text_of(rise, "then_best"));
}

// ---- the front ----

struct TimeUnit {
  double seconds;
  const char* name;
};

TimeUnit unit_for(double longest) {
  for (const TimeUnit& unit : {TimeUnit{86'400, "days"}, TimeUnit{3'600, "hours"}, TimeUnit{60, "minutes"}})
    if (longest >= unit.seconds)
      return unit;
  return {1, "seconds"};
}

bool all_have(const ordered_json& plans, const char* key) {
  return std::none_of(plans.begin(), plans.end(),
                      [&](const ordered_json& plan) { return plan.at(key).is_null(); });
}

// What time is drawn against: dollars, or GPU-hours where some machine has no price.
struct Effort {
  const char* key;
  std::string name;
  std::string (*text)(double);
};

Effort effort_of(const ordered_json& plans) {
  if (all_have(plans, "cost_usd"))
    return {"cost_usd", "cost [USD]", usd_text};
  return {"gpu_hours", "GPU-hours (some machine has no price)", count_text};
}

ChartPoint point_of(const ordered_json& plan, std::size_t rank, const Effort& effort, const TimeUnit& unit) {
  const double seconds = plan.at("time_to_train_s").get<double>();
  const double spent = plan.at(effort.key).get<double>();
  ChartPoint point{.x = seconds / unit.seconds,
                   .y = spent,
                   .title = fmt::format("{}: {}, {}: {}, {}", rank, cluster_of(plan), text_of(plan, "layout"),
                                        time_text(seconds), effort.text(spent)),
                   .label = fmt::format("{}: {}", rank, cluster_of(plan))};
  if (plan.at("low").is_null() || plan.at("high").is_null())
    return point;
  const double iteration = plan.at("iteration_time_s").get<double>();
  const double low = plan.at("low").get<double>() / iteration;
  const double high = plan.at("high").get<double>() / iteration;
  point.band = {point.x * low, point.y * low, point.x * high, point.y * high};
  return point;
}

void add_goal_limits(const ordered_json& goal, const Effort& effort, const TimeUnit& unit, Chart& chart) {
  if (!goal.at("deadline_s").is_null())
    chart.limits.push_back({goal.at("deadline_s").get<double>() / unit.seconds, "deadline"});
  if (!goal.at("budget_usd").is_null() && std::string_view(effort.key) == "cost_usd")
    chart.limits.push_back({goal.at("budget_usd").get<double>(), "budget", false});
}

ordered_json front_of(const ordered_json& document) {
  const ordered_json& plans = document.at("plans");
  if (plans.empty())
    return {};
  double longest = 0;
  for (const ordered_json& plan : plans)
    longest = std::max(longest, plan.at("time_to_train_s").get<double>());
  const TimeUnit unit = unit_for(longest);
  const Effort effort = effort_of(plans);
  ChartSeries front{.name = "on the front", .points = {}, .has_line = true};
  ChartSeries others{.name = "others", .points = {}, .hue = "hue-quiet", .is_hollow = true};
  for (std::size_t i = 0; i < plans.size(); ++i)
    (plans[i].at("is_on_front").get<bool>() ? front : others)
        .points.push_back(point_of(plans[i], i + 1, effort, unit));
  std::sort(front.points.begin(), front.points.end(),
            [](const ChartPoint& one, const ChartPoint& other) { return one.x < other.x; });
  for (ChartPoint& point : others.points) point.label = point.label.substr(0, point.label.find(':'));
  Chart chart{.caption = fmt::format("Time to train against {}, with what holds 80 %", effort.name),
              .x = {.name = fmt::format("time to train [{}]", unit.name)},
              .y = {.name = effort.name},
              .series = {others, front}};
  if (others.points.empty())
    chart.series.erase(chart.series.begin());
  add_goal_limits(document.at("goal"), effort, unit, chart);
  return to_json(chart);
}

// ---- tables of the plans ----

std::string plain_band(const ordered_json& low, const ordered_json& high, std::string (*text)(double)) {
  if (low.is_null() || high.is_null())
    return "not known";
  return fmt::format("{} to {}", text(low.get<double>()), text(high.get<double>()));
}

std::vector<PageCell> candidate_row(const ordered_json& plan, std::size_t rank, const std::string& unit) {
  return {std::to_string(rank),
          text_of(plan, "machine"),
          figure(plan.at("nodes"), count_text),
          figure(plan.at("gpus"), count_text),
          text_of(plan, "layout"),
          figure(plan.at("iteration_time_s"), duration_text),
          figure(plan.at("time_to_train_s"), time_text),
          plain_band(plan.at("time_to_train_low_s"), plan.at("time_to_train_high_s"), time_text),
          figure(plan.at("cost_usd"), usd_text),
          plain_band(plan.at("cost_low_usd"), plan.at("cost_high_usd"), usd_text),
          figure(plan.at("usd_per_million_" + unit), usd_text),
          figure(plan.at("energy_kwh"), energy_text),
          figure(plan.at("goodput"), share_text),
          figure(plan.at("mfu"), share_text),
          text_of(plan, "limited_by")};
}

ordered_json candidates_of(const ordered_json& document) {
  const std::string unit = unit_of(document);
  PageTable table("Best first; within: what holds 80 %", {{"rank"},
                                                          {"machine", Kind::words},
                                                          {"nodes"},
                                                          {"GPUs"},
                                                          {"layout", Kind::long_words},
                                                          {"iteration"},
                                                          {"time"},
                                                          {"time within"},
                                                          {"cost"},
                                                          {"cost within"},
                                                          {"$ per million " + unit},
                                                          {"energy"},
                                                          {"goodput"},
                                                          {"MFU"},
                                                          {"most of it goes into", Kind::words}});
  std::size_t rank = 0;
  for (const ordered_json& plan : document.at("plans"))
    table.add_row(candidate_row(plan, ++rank, unit), plan.at("is_on_front").get<bool>());
  return table.view();
}

ordered_json iterations_of(const ordered_json& plans) {
  PageTable table(
      "Parts of each plan's iteration",
      {{"rank"}, {"cluster", Kind::words}, {"iteration"}, {"parts", Kind::bar}, {"most", Kind::words}});
  std::vector<ordered_json> breakdowns;
  std::size_t rank = 0;
  for (const ordered_json& plan : plans) {
    const ordered_json& breakdown = breakdowns.emplace_back(plan.at("breakdown_s"));
    table.add_row({std::to_string(++rank), cluster_of(plan),
                   figure(plan.at("iteration_time_s"), duration_text),
                   breakdown_bar(breakdown, total_seconds(breakdown)), text_of(plan, "limited_by")});
  }
  ordered_json view = table.view();
  if (!view.is_null())
    view.update(breakdown_legend(breakdowns));
  return view;
}

ordered_json memory_of(const ordered_json& plans) {
  PageTable table(
      "At its most, of what the GPU has",
      {{"rank"}, {"cluster", Kind::words}, {"used"}, {"capacity"}, {"share", Kind::bar}, {"free"}});
  std::size_t rank = 0;
  for (const ordered_json& plan : plans) {
    const double used = plan.at("memory_bytes").get<double>();
    const double capacity = plan.at("memory_bytes_capacity").get<double>();
    table.add_row({std::to_string(++rank), cluster_of(plan), figure(plan.at("memory_bytes"), bytes_text),
                   figure(plan.at("memory_bytes_capacity"), bytes_text),
                   std::vector<BarPart>{
                       {.left = 0, .width = 100 * used / capacity, .title = share_text(used / capacity)}},
                   bytes_text(std::max(0.0, capacity - used))});
  }
  return table.view();
}

// ---- what would change the answer ----

// From the middle: to the left what is faster.
BarPart change_bar(double percent, double most) {
  const double width = most > 0 ? 50 * std::abs(percent) / most : 0;
  return {.left = percent < 0 ? 50 - width : 50,
          .width = width,
          .title = percent_text(percent),
          .hue = percent < 0 ? "hue-2" : "hue-1"};
}

ordered_json sensitivities_of(const ordered_json& outlook) {
  if (outlook.is_null())
    return {};
  std::vector<ordered_json> changes = outlook.at("sensitivities");
  const auto size_of = [](const ordered_json& change) {
    return std::abs(change.at("percent").get<double>());
  };
  std::stable_sort(changes.begin(), changes.end(), [&](const ordered_json& one, const ordered_json& other) {
    return size_of(one) > size_of(other);
  });
  PageTable table("Largest change first; a bar to the left is less time",
                  {{"change", Kind::words}, {"time"}, {"less or more", Kind::bar}, {"time to train"}});
  for (const ordered_json& change : changes)
    table.add_row(
        {text_of(change, "change"), figure(change.at("percent"), percent_text),
         std::vector<BarPart>{change_bar(change.at("percent").get<double>(), size_of(changes.front()))},
         figure(change.at("time_to_train_s"), time_text)});
  return table.view();
}

double rate_of(const ordered_json& point) {
  return point.at("work_per_iteration").get<double>() / point.at("iteration_time_s").get<double>();
}

ordered_json scaling_chart(const ordered_json& points, const std::string& unit) {
  if (points.size() < 2)
    return {};
  const double first_nodes = points.front().at("nodes").get<double>();
  const double first_rate = rate_of(points.front());
  ChartSeries found{.name = "predicted", .points = {}, .has_line = true};
  ChartSeries ideal{.name = "ideal: as many times the nodes, as many times the work",
                    .points = {},
                    .hue = "hue-quiet",
                    .has_line = true,
                    .has_dots = false,
                    .is_dashed = true};
  Chart chart{.caption = fmt::format("{} a second by number of nodes", unit),
              .x = {.name = "nodes", .is_logarithmic = true},
              .y = {.name = unit + " a second", .is_logarithmic = true},
              .series = {}};
  for (const ordered_json& point : points) {
    const double nodes = point.at("nodes").get<double>();
    const std::string efficiency = share_text(point.at("efficiency").get<double>());
    chart.x.ticks.push_back(nodes);
    ideal.points.push_back({.x = nodes, .y = first_rate * nodes / first_nodes});
    found.points.push_back({.x = nodes,
                            .y = rate_of(point),
                            .title = fmt::format("{} nodes: {} {}/s, {}", count_text(nodes),
                                                 rate_text(rate_of(point)), unit, efficiency),
                            .label = efficiency});
  }
  chart.series = {ideal, found};
  return to_json(chart);
}

ordered_json scaling_table(const ordered_json& points, const std::string& unit) {
  PageTable table(
      "Efficiency: of work a second and node, against the smallest number",
      {{"nodes"}, {"iteration"}, {unit + " a second"}, {"efficiency"}, {"", Kind::bar}, {"time"}, {"cost"}});
  for (const ordered_json& point : points) {
    const double efficiency = point.at("efficiency").get<double>();
    table.add_row(
        {figure(point.at("nodes"), count_text), figure(point.at("iteration_time_s"), duration_text),
         rate_text(rate_of(point)), figure(point.at("efficiency"), share_text),
         std::vector<BarPart>{
             {.left = 0, .width = 100 * std::min(efficiency, 1.0), .title = share_text(efficiency)}},
         figure(point.at("time_to_train_s"), time_text), figure(point.at("cost_usd"), usd_text)});
  }
  return table.view();
}

// ---- what it rests on ----

ordered_json prices_of(const ordered_json& plans) {
  PageTable table("A GPU for an hour, whatever is done in it",
                  {{"machine", Kind::words}, {"price"}, {"as of"}, {"source", Kind::long_words}});
  std::vector<std::pair<std::string, ordered_json>> told;
  for (const ordered_json& plan : plans) {
    const std::pair<std::string, ordered_json> entry{text_of(plan, "machine"), plan.at("price")};
    const ordered_json& price = entry.second;
    if (price.is_null() || std::find(told.begin(), told.end(), entry) != told.end())
      continue;
    told.push_back(entry);
    table.add_row({entry.first, figure(price.at("usd_per_gpu_hour"), usd_text),
                   price.at("date").is_null() ? "no date" : text_of(price, "date"),
                   text_of(price, "source")});
  }
  return table.view();
}

// One row for all numbers of nodes of a machine and a strategy that are rejected alike, with the reason of the last.
ordered_json rejected_of(const ordered_json& rejected) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::vector<Key> order;
  std::map<Key, std::vector<const ordered_json*>> groups;
  for (const ordered_json& entry : rejected) {
    Key key{text_of(entry, "machine"), text_of(entry, "strategy"), text_of(entry, "kind")};
    auto& group = groups[key];
    if (group.empty())
      order.push_back(std::move(key));
    group.push_back(&entry);
  }
  PageTable table("Why; the reason is that of the largest number of nodes", {{"machine", Kind::words},
                                                                             {"strategy", Kind::words},
                                                                             {"nodes"},
                                                                             {"", Kind::words},
                                                                             {"reason", Kind::long_words}});
  for (const Key& key : order) {
    const auto& group = groups[key];
    const auto& [machine, strategy, kind] = key;
    const std::string last = count_text(group.back()->at("nodes").get<double>());
    table.add_row(
        {machine, strategy.empty() ? "as stated" : strategy,
         group.size() == 1 ? last : count_text(group.front()->at("nodes").get<double>()) + " to " + last,
         words(kind), text_of(*group.back(), "reason")});
  }
  return table.view();
}

}  // namespace

std::string plan_page(const ordered_json& document) {
  const ordered_json& plans = document.at("plans");
  const ordered_json& outlook = document.at("outlook");
  const ordered_json points = outlook.is_null() ? ordered_json::array() : outlook.at("scaling");
  ordered_json view{{"title", document.at("name")},
                    {"kind", "Lockstep: capacity plan"},
                    {"subtitle", goal_of(document)},
                    {"chance", false},
                    {"price_rise", false},
                    {"front", front_of(document)},
                    {"candidates", candidates_of(document)},
                    {"iterations", iterations_of(plans)},
                    {"sensitivities", sensitivities_of(outlook)},
                    {"scaling_chart", scaling_chart(points, unit_of(document))},
                    {"scaling_table", scaling_table(points, unit_of(document))},
                    {"memory", memory_of(plans)},
                    {"rejected", rejected_of(document.at("rejected"))},
                    {"prices", prices_of(plans)}};
  view.update(answer_of(document));
  view.update(warnings_view(document.at("warnings")));
  add_outlook(outlook, view);
  return render_page("plan.html", view);
}

}  // namespace lockstep
