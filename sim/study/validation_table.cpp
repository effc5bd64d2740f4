#include "sim/study/validation_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// What decided which errors apply, and what computing and communication by themselves make of the iteration,
// before the factor.
Json band_json(const BandParts& band) {
  const auto range = [](const LogRange& ends) {
    const auto ratio = [](double end) { return (to_ratio(end) - Ratio::one()).in_real(); };
    return Json{{"low", ratio(ends.low)}, {"high", ratio(ends.high)}};
  };
  return {{"is_measured", band.conditions.is_measured},
          {"kind", band.conditions.kind},
          {"doublings",
           {{"transferred", band.conditions.transferred},
            {"in_node", band.conditions.in_node},
            {"between_nodes", band.conditions.between_nodes}}},
          {"measured_again", range(band.again)},
          {"computing", range(band.computing_of_iteration)},
          {"host", range(band.host_of_iteration)},
          {"communication", range(band.communication_of_iteration)},
          {"factor", band.factor.in_real()}};
}

Json case_json(const ValidationCase& entry) {
  Json json{{"name", entry.name},
            {"group", entry.group},
            {"split", entry.split},
            {"machine", entry.machine.empty() ? Json() : Json(entry.machine)},
            {"measured", entry.measured_s},
            {"predicted", entry.predicted_s},
            {"error_percent", entry.error_percent()},
            {"low", optional_number(entry.low_s)},
            {"high", optional_number(entry.high_s)}};
  if (entry.band)
    json["band"] = band_json(*entry.band);
  if (entry.is_memory)
    json["quantity"] = "memory_bytes";
  if (entry.is_block)
    json["quantity"] = "block_time_s";
  if (entry.has_naive())
    json["naive"] = {{"no_communication", entry.naive.no_communication},
                     {"no_overlap", entry.naive.no_overlap},
                     {"perfect_overlap", entry.naive.perfect_overlap}};
  if (entry.figures)
    json["figures"] = {{"flops", entry.figures->flops},
                       {"bytes", entry.figures->bytes},
                       {"peak_flops_per_s", entry.figures->peak_flops_per_s},
                       {"peak_bytes_per_s", entry.figures->peak_bytes_per_s}};
  if (!entry.caution.empty())
    json["caution"] = entry.caution;
  if (entry.setting)
    json["setting"] = {{"run", entry.setting->run},
                       {"bucket_cap_mb", entry.setting->bucket_cap_mb},
                       {"variant", entry.setting->variant},
                       {"measured_p10", entry.setting->measured_p10_s},
                       {"measured_p90", entry.setting->measured_p90_s}};
  return json;
}

Json best_cap_json(const BestCap& best) {
  return {{"run", best.run},
          {"predicted_mb", best.predicted_mb},
          {"measured_mb", best.measured_mb},
          {"cost_percent", best.cost_percent},
          {"cost_error_percent", best.cost_error_percent}};
}

std::string best_caps_text(const std::vector<BestCap>& best_caps) {
  std::string text = fmt::format("\n{:<52} {:>12} {:>12} {:>8} {:>8}\n", "best bucket cap (MiB)", "predicted",
                                 "measured", "costs %", "known to");
  for (const BestCap& best : best_caps)
    text += fmt::format("{:<52} {:>12g} {:>12g} {:>+8.2f} {:>8.2f}\n", best.run, best.predicted_mb,
                        best.measured_mb, best.cost_percent, best.cost_error_percent);
  return text;
}

std::string best_caps_markdown(const std::vector<BestCap>& best_caps) {
  std::string text =
      "\n| run | predicted best cap | measured best cap | following the prediction costs | known to "
      "|\n|---|--:|--:|--:|--:|\n";
  for (const BestCap& best : best_caps)
    text += fmt::format("| {} | {:g} MiB | {:g} MiB | {:+.2f} % | {:.2f} % |\n", best.run, best.predicted_mb,
                        best.measured_mb, best.cost_percent, best.cost_error_percent);
  return text;
}

Json group_json(const GroupSummary& group) {
  Json json{{"group", group.group},
            {"split", group.split},
            {"n", group.ours.cases},
            {"mape_percent", group.ours.mean_absolute},
            {"median_percent", group.ours.median_absolute},
            {"p90_percent", group.ours.p90_absolute},
            {"bias_percent", group.ours.bias}};
  if (group.band.cases > 0)
    json["band"] = {{"n", group.band.cases},
                    {"held", group.band.held},
                    {"median_half_width_percent", group.band.median_half_width}};
  if (group.has_naive)
    json["naive_mape_percent"] = {{"no_communication", group.no_communication},
                                  {"no_overlap", group.no_overlap},
                                  {"perfect_overlap", group.perfect_overlap}};
  return json;
}

Json not_asked_json(const NotAsked& left_out) {
  return {{"table", left_out.table},
          {"gpu", left_out.gpu},
          {"rows", left_out.rows},
          {"reason", left_out.reason},
          {"names", Json(left_out.names)}};
}

std::string not_asked_text(const std::vector<NotAsked>& not_asked) {
  std::string text = "\nnot asked\n";
  for (const NotAsked& left_out : not_asked)
    text += fmt::format("  {}, {}: {} row{}, {}{}{}\n", left_out.table, left_out.gpu, left_out.rows,
                        left_out.rows == 1 ? "" : "s", left_out.reason, left_out.names.empty() ? "" : ": ",
                        fmt::join(left_out.names, ", "));
  return text;
}

std::string case_text(const ValidationCase& entry) {
  constexpr double per_second = 1e3;
  constexpr double per_byte = 1.0 / (1 << 20);
  const double unit = entry.is_memory ? per_byte : per_second;
  return fmt::format("{:<52} {:>8} {:>11.2f} {:>12.2f} {:>+8.2f}{}\n", entry.name, entry.split,
                     entry.measured_s * unit, entry.predicted_s * unit, entry.error_percent(),
                     entry.caution.empty() ? "" : "  outside the mean: " + entry.caution);
}

std::string listed_text(const std::vector<ValidationCase>& cases, bool of_memory, std::string_view unit) {
  std::string text;
  for (const ValidationCase& entry : cases)
    text += entry.is_kernel || entry.is_memory != of_memory ? "" : case_text(entry);
  return text.empty()
             ? ""
             : fmt::format("{:<52} {:>8} {:>11} {:>11} {:>8}\n", "case", "split",
                           fmt::format("measured {}", unit), fmt::format("predicted {}", unit), "error %") +
                   text;
}

std::string cases_text(const std::vector<ValidationCase>& cases) {
  const auto kernels =
      std::count_if(cases.begin(), cases.end(), [](const ValidationCase& entry) { return entry.is_kernel; });
  const std::string text = listed_text(cases, false, "ms") + listed_text(cases, true, "MiB");
  return kernels == 0 ? text
                      : text + fmt::format("{} kernels: in groups below, one by one with --json\n", kernels);
}

std::string held_text(const BandSummary& band) {
  return band.cases == 0 ? "-" : fmt::format("{}/{}", band.held, band.cases);
}

std::string half_width_text(const BandSummary& band) {
  return band.cases == 0 ? "-" : fmt::format("{:.1f} %", band.median_half_width);
}

std::string group_text(const GroupSummary& group) {
  const std::string text = fmt::format("{:<36} {:>8} {:>4} {:>7.2f} {:>7.2f} {:>7.2f} {:>+7.2f}", group.group,
                                       group.split, group.ours.cases, group.ours.mean_absolute,
                                       group.ours.median_absolute, group.ours.p90_absolute, group.ours.bias);
  return !group.has_naive
             ? text + "\n"
             : text + fmt::format("          {:>6.1f} {:>6.1f} {:>7.1f}  {:>8} {:>7}\n",
                                  group.no_communication, group.no_overlap, group.perfect_overlap,
                                  held_text(group.band), half_width_text(group.band));
}

std::string group_markdown(const GroupSummary& group) {
  const auto naive = [&](double error) {
    return !group.has_naive ? std::string("-") : fmt::format("{:.1f} %", error);
  };
  return fmt::format("| {} ({}) | {} | **{:.2f} %** | {:+.2f} % | {} | {} | {} | {} | {} |\n", group.group,
                     group.split == "fit" ? "fitted" : "held out", group.ours.cases, group.ours.mean_absolute,
                     group.ours.bias, naive(group.no_communication), naive(group.no_overlap),
                     naive(group.perfect_overlap), held_text(group.band), half_width_text(group.band));
}

}  // namespace

Json to_json(const Validation& validation) {
  Json json{{"schema", "lockstep.validation/1"}, {"cases", Json::array()}, {"groups", Json::array()}};
  for (const ValidationCase& entry : validation.cases) json["cases"].push_back(case_json(entry));
  for (const GroupSummary& group : validation.groups) json["groups"].push_back(group_json(group));
  for (const BestCap& best : validation.best_caps) json["best_caps"].push_back(best_cap_json(best));
  for (const NotAsked& left_out : validation.not_asked) json["not_asked"].push_back(not_asked_json(left_out));
  return json;
}

std::string to_text(const Validation& validation) {
  std::string text = cases_text(validation.cases);
  text += fmt::format(
      "\n{:<36} {:>8} {:>4} {:>7} {:>7} {:>7} {:>7}   naive: {:>6} {:>6} {:>7}  {:>8} {:>7}\n", "group",
      "split", "n", "MAPE %", "median", "p90", "bias", "none", "sum", "overlap", "in band", "half as wide");
  for (const GroupSummary& group : validation.groups) text += group_text(group);
  if (!validation.best_caps.empty())
    text += best_caps_text(validation.best_caps);
  if (!validation.not_asked.empty())
    text += not_asked_text(validation.not_asked);
  return text;
}

std::string to_markdown(const Validation& validation) {
  std::string text =
      "| group | cases | mean abs. error | bias | no communication | no overlap | perfect overlap | in 80 % "
      "band | half its width |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const GroupSummary& group : validation.groups) text += group_markdown(group);
  if (!validation.best_caps.empty())
    text += best_caps_markdown(validation.best_caps);
  return text;
}

}  // namespace lockstep
