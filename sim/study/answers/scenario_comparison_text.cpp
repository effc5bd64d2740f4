#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/json_text.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/report/text_table.h"
#include "sim/study/answers/difference_text.h"
#include "sim/study/answers/scenario_comparison.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string percent_text(Duration before, Duration after) {
  return before > Duration::zero() && before != after
             ? fmt::format("{:+.1f} %", difference_percent(before, after))
             : "";
}

std::string band_text(const IterationTimes& times) {
  return times.low && times.high
             ? fmt::format("{} to {}", format_duration(*times.low), format_duration(*times.high))
             : "unknown";
}

std::string rate_of(std::int64_t per_iteration, Duration iteration) {
  const auto rate = per_second(per_iteration, iteration);
  return rate ? fmt::format("{:.1f}", *rate) : "unknown";
}

std::string signed_bytes(Bytes before, Bytes after) {
  if (before == after)
    return "-";
  return after > before ? "+" + format_bytes(after - before) : "-" + format_bytes(before - after);
}

void add_time_row(TextTable& table, std::string what, Duration a, Duration b) {
  table.add_row({std::move(what), time_cell(a), time_cell(b), signed_duration(b - a), percent_text(a, b)});
}

std::string times_text(const Report& a, const Report& b) {
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"", "A", "B", "B against A"});
  add_time_row(table, "iteration", a.iteration, b.iteration);
  table.add_row({"  measured within", band_text(a.times), band_text(b.times)});
  table.add_row({"samples/s", rate_of(a.throughput.samples_per_iteration, a.iteration),
                 rate_of(b.throughput.samples_per_iteration, b.iteration)});
  if (a.throughput.tokens_per_iteration && b.throughput.tokens_per_iteration)
    table.add_row({"tokens/s", rate_of(*a.throughput.tokens_per_iteration, a.iteration),
                   rate_of(*b.throughput.tokens_per_iteration, b.iteration)});
  for (const TimePart& part : time_parts) {
    const Duration of_a = a.breakdown.*part.time;
    const Duration of_b = b.breakdown.*part.time;
    if (of_a != Duration::zero() || of_b != Duration::zero())
      add_time_row(table, words(part.key), of_a, of_b);
  }
  return table.text(2);
}

std::string memory_text(const MemoryReport& a, const MemoryReport& b) {
  TextTable table({Align::left, Align::right, Align::right, Align::right});
  const auto add = [&](std::string what, Bytes of_a, Bytes of_b) {
    table.add_row({std::move(what), format_bytes(of_a), format_bytes(of_b), signed_bytes(of_a, of_b)});
  };
  for (const MemoryPart& part : memory_parts)
    if (const Bytes of_a = a.peak.*part.bytes, of_b = b.peak.*part.bytes; of_a + of_b > Bytes{0})
      add(words(part.key), of_a, of_b);
  add("total", a.peak.total(), b.peak.total());
  table.add_row({"of", format_bytes(a.capacity), format_bytes(b.capacity)});
  table.add_row({"", a.fits() ? "fits" : "DOES NOT FIT", b.fits() ? "fits" : "DOES NOT FIT"});
  return table.text(2);
}

// What is chosen by its name is told by it.
std::string value_text(const DifferingValue& value) {
  if (value.value.is_null())
    return "none";
  const bool is_named = value.value.is_object() && value.value.contains("name");
  const ordered_json& told = is_named ? value.value["name"] : value.value;
  const std::string text = abbreviated(told.is_string() ? told.get<std::string>() : told.dump());
  return value.is_stated() || value.origin.empty()
             ? text
             : fmt::format("{} ({})", text, value.origin.substr(0, value.origin.find_first_of(" :")));
}

std::string companions_text(const std::vector<std::string>& with, std::size_t differences) {
  if (with.empty())
    return "";
  const bool are_all = with.size() > 1 && with.size() + 1 == differences;
  return are_all ? "with all others" : fmt::format("with {}", fmt::join(with, ", "));
}

std::string cost_text(const ScenarioComparison& comparison) {
  TextTable table(
      {Align::left, Align::right, Align::left, Align::left, Align::right, Align::right, Align::left});
  for (const DifferenceCost& cost : comparison.costs) {
    const auto& [difference, with, before, iteration, problem] = cost;
    table.add_row({difference.path, value_text(difference.a), "->", value_text(difference.b),
                   iteration ? signed_duration(cost.cost()) : "?",
                   iteration ? percent_text(before, *iteration) : "",
                   iteration ? companions_text(with, comparison.costs.size()) : problem});
  }
  const Duration of_a = comparison.a.report.iteration;
  const Duration left = comparison.interaction();
  table.add_row({"together", "", "", "", signed_duration(comparison.together()),
                 percent_text(of_a, comparison.b.report.iteration)});
  if (comparison.costs.size() > 1)
    table.add_row({"of which they do to each other", "", "", "", signed_duration(left),
                   percent_text(of_a, of_a + left)});
  return table.text(2);
}

std::string sides_text(const ScenarioComparison& comparison) {
  std::string text;
  for (const auto& [letter, side] : {std::pair("A", &comparison.a), std::pair("B", &comparison.b)})
    text += fmt::format("{}  {}: {}\n", letter, side->scenario.name, summary_of(side->scenario));
  return text;
}

// What a result tells of it, apart from lists.
ordered_json side_json(const ComparedScenario& side) {
  const ordered_json whole = to_json(side.report, side.scenario);
  ordered_json json;
  for (const char* key :
       {"name", "iteration_time_s", "iteration_time_low_s", "iteration_time_high_s", "samples_per_s",
        "tokens_per_s", "scaling_efficiency", "mfu", "breakdown_s", "memory_bytes", "scenario"})
    json[key] = whole.at(key);
  json["communication"] = {{"bytes_per_gpu", side.report.communication.bytes_per_gpu.count()},
                           {"total_s", side.report.communication.total.in_seconds()},
                           {"overlapped_s", side.report.communication.overlapped.in_seconds()}};
  return json;
}

ordered_json value_json(const DifferingValue& value) {
  return {{"value", value.value}, {"origin", value.origin}};
}

ordered_json cost_json(const DifferenceCost& cost) {
  const auto& [difference, with, before, iteration, problem] = cost;
  ordered_json json{{"path", difference.path},
                    {"a", value_json(difference.a)},
                    {"b", value_json(difference.b)},
                    {"set", difference.path + "=" + difference.set},
                    {"with", with}};
  json["iteration_time_s"] = iteration ? ordered_json(iteration->in_seconds()) : ordered_json();
  json["difference_s"] = iteration ? ordered_json(cost.cost().in_seconds()) : ordered_json();
  json["difference_percent"] = iteration && before > Duration::zero()
                                   ? ordered_json(difference_percent(before, *iteration))
                                   : ordered_json();
  json["problem"] = problem.empty() ? ordered_json() : ordered_json(problem);
  return json;
}

}  // namespace

ordered_json to_json(const ScenarioComparison& comparison) {
  const Report& a = comparison.a.report;
  const Report& b = comparison.b.report;
  ordered_json differences = ordered_json::array();
  for (const DifferenceCost& cost : comparison.costs) differences.push_back(cost_json(cost));
  ordered_json breakdown;
  for (const TimePart& part : time_parts)
    breakdown[std::string(part.key)] = (b.breakdown.*part.time - a.breakdown.*part.time).in_seconds();
  return {{"schema", "lockstep.compare/1"},
          {"a", side_json(comparison.a)},
          {"b", side_json(comparison.b)},
          {"differences", differences},
          {"together",
           {{"iteration_time_s", b.iteration.in_seconds()},
            {"difference_s", comparison.together().in_seconds()},
            {"difference_percent", a.iteration > Duration::zero()
                                       ? ordered_json(difference_percent(a.iteration, b.iteration))
                                       : ordered_json()},
            {"interaction_s", comparison.interaction().in_seconds()},
            {"breakdown_s", breakdown},
            {"memory_bytes", (b.memory.peak.total() - a.memory.peak.total()).count()}}},
          {"warnings", comparison.warnings}};
}

std::string to_text(const ScenarioComparison& comparison) {
  std::string text = sides_text(comparison);
  if (comparison.costs.empty())
    text += "\nNothing differs.\n";
  text += "\nOne iteration\n" + times_text(comparison.a.report, comparison.b.report);
  text += "\nMemory of one GPU\n" + memory_text(comparison.a.report.memory, comparison.b.report.memory);
  if (!comparison.costs.empty())
    text += "\nWhat differs, and what each costs A alone\n" + cost_text(comparison);
  for (const std::string& warning : comparison.warnings) text += "\nwarning: " + warning + "\n";
  return text;
}

}  // namespace lockstep
