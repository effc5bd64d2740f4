#include "sim/study/answers/layout_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double least_told = 0.1;  // percent of the best's iteration
constexpr std::size_t most_reasons = 2;
constexpr const char* about_anchor =
    "compute.anchor was solved once, for the layout of the scenario; predict solves it for the one it is "
    "given\n";

std::string schedule_of(const LayoutCandidate& candidate) {
  if (candidate.schedule.empty())
    return "-";
  return candidate.virtual_stages > 1 ? fmt::format("{} x{}", candidate.schedule, candidate.virtual_stages)
                                      : candidate.schedule;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string short_of(const LayoutCandidate& candidate) {
  std::string text = degrees_of(candidate);
  if (!candidate.schedule.empty())
    text += ", " + schedule_of(candidate);
  text += fmt::format(", micro-batch {}, recompute {}", candidate.micro_batch, candidate.recompute);
  return candidate.placement.empty() ? text : text + ", " + candidate.placement;
}

std::string rate_cell(std::optional<double> per_second) {
  return per_second ? grouped(static_cast<std::int64_t>(std::llround(*per_second))) : "-";
}

std::optional<double> tokens_per_second(const FoundLayout& layout) {
  const auto& tokens = layout.brief.throughput.tokens_per_iteration;
  return tokens ? per_second(*tokens, layout.brief.iteration) : std::nullopt;
}

std::optional<double> samples_per_second(const FoundLayout& layout) {
  return per_second(layout.brief.throughput.samples_per_iteration, layout.brief.iteration);
}

std::string part_of_iteration(Duration part, const FoundLayout& layout) {
  return percentage(part.in_seconds(), layout.brief.iteration.in_seconds());
}

bool counts_tokens(const LayoutAnswer& answer) {
  return answer.layouts.front().brief.throughput.tokens_per_iteration.has_value();
}

std::vector<std::string> cells_of(const LayoutAnswer& answer, std::size_t rank) {
  const FoundLayout& layout = answer.layouts[rank];
  const LayoutCandidate& candidate = layout.candidate;
  return {fmt::format("{}", rank + 1),
          degrees_of(candidate),
          or_dash(candidate.placement),
          schedule_of(candidate),
          fmt::format("{} x {}", candidate.micro_batch, candidate.micro_batches),
          std::string(candidate.recompute),
          format_duration(layout.brief.iteration),
          rate_cell(counts_tokens(answer) ? tokens_per_second(layout) : samples_per_second(layout)),
          layout.brief.throughput.mfu ? percentage(*layout.brief.throughput.mfu, 1) : "-",
          format_bytes(layout.brief.memory),
          part_of_iteration(layout.brief.breakdown.pipeline_bubble, layout),
          part_of_iteration(layout.brief.breakdown.exposed_communication, layout),
          rank == 0 ? "" : losses_against(answer.layouts.front(), layout)};
}

std::string table_of(const LayoutAnswer& answer) {
  constexpr Align l = Align::left;
  constexpr Align r = Align::right;
  TextTable table({r, l, l, l, r, l, r, r, r, r, r, r, l});
  table.add_row({"", "layout", "placement", "schedule", "micro-batch", "recompute", "iteration",
                 counts_tokens(answer) ? "tokens/s" : "samples/s", "MFU", "memory", "bubble", "exposed",
                 "against the best"});
  for (std::size_t rank = 0; rank < answer.layouts.size(); ++rank) table.add_row(cells_of(answer, rank));
  return table.text(0);
}

std::string counts_of(const LayoutAnswer& answer) {
  const RejectedLayouts& rejected = answer.rejected;
  std::string text =
      fmt::format("{} candidates: {} simulated, {} cut by their bound, {} out of memory", answer.candidates,
                  answer.simulated, rejected.cut_by_bound, rejected.out_of_memory);
  if (rejected.needless_recomputation > 0)
    text += fmt::format(", {} that fit with less recomputation", rejected.needless_recomputation);
  if (rejected.not_loadable > 0)
    text += fmt::format(", {} that do not load", rejected.not_loadable);
  if (rejected.too_large > 0)
    text += fmt::format(", {} too large to be simulated (--yes)", rejected.too_large);
  text += "\n";
  return answer.first_problem.empty() ? text : text + "  the first of those: " + answer.first_problem + "\n";
}

std::string lacking(const LayoutAnswer& answer, const OversizedLayout& layout) {
  return format_bytes(layout.memory - answer.capacity);
}

std::string promise_of(const LayoutAnswer& answer) {
  if (!answer.promising)
    return "";
  return fmt::format("Might be faster (no less than {}) with {} more on a GPU: {}\n",
                     format_duration(answer.promising->fastest), lacking(answer, *answer.promising),
                     short_of(answer.promising->candidate));
}

std::string warnings_of(const LayoutAnswer& answer) {
  std::string text;
  for (const std::string& warning : answer.warnings) text += "warning: " + warning + "\n";
  return text;
}

// Of the best, after those that the question came with; a later one takes an earlier one's place.
Overrides all_changes(const LayoutAnswer& answer) {
  const Overrides own = answer.layouts.front().candidate.overrides();
  Overrides changes = answer.given;
  std::erase_if(changes, [&](const auto& given) {
    return std::any_of(own.begin(), own.end(),
                       [&](const auto& change) { return change.first == given.first; });
  });
  changes.insert(changes.end(), own.begin(), own.end());
  return changes;
}

ordered_json or_null(std::optional<double> value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json set_of(const LayoutCandidate& candidate) {
  ordered_json set = ordered_json::object();
  for (const auto& [path, value] : candidate.set) set[path] = value;
  return set;
}

ordered_json to_json(const FoundLayout& layout, const FoundLayout& best) {
  ordered_json breakdown;
  for (const TimePart& part : time_parts)
    breakdown[std::string(part.key)] = (layout.brief.breakdown.*part.time).in_seconds();
  return {{"set", set_of(layout.candidate)},
          {"data_parallel", layout.candidate.data},
          {"gradient_accumulation", layout.candidate.micro_batches},
          {"iteration_time_s", layout.brief.iteration.in_seconds()},
          {"samples_per_s", or_null(samples_per_second(layout))},
          {"tokens_per_s", or_null(tokens_per_second(layout))},
          {"mfu", or_null(layout.brief.throughput.mfu)},
          {"memory_bytes", layout.brief.memory.count()},
          {"breakdown_s", std::move(breakdown)},
          {"against_best", losses_against(best, layout)}};
}

ordered_json to_json(const OversizedLayout& layout, Bytes capacity) {
  return {{"set", set_of(layout.candidate)},
          {"memory_bytes_at_least", layout.memory.count()},
          {"memory_bytes_lacking", (layout.memory - capacity).count()},
          {"iteration_time_s_at_least", layout.fastest.in_seconds()}};
}

}  // namespace

std::string losses_against(const FoundLayout& best, const FoundLayout& other) {
  std::vector<std::pair<double, std::string>> losses;
  for (const TimePart& part : time_parts) {
    const double lost = (other.brief.breakdown.*part.time - best.brief.breakdown.*part.time).in_seconds();
    const double percent = 100 * lost / best.brief.iteration.in_seconds();
    if (percent >= least_told)
      losses.emplace_back(percent, fmt::format("{} +{:.1f} %", words(part.key), percent));
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t index = 0; index < std::min(losses.size(), most_reasons); ++index)
    text += (index == 0 ? "" : ", ") + losses[index].second;
  return text;
}

std::string set_arguments(const Overrides& changes) {
  std::string text;
  for (const auto& [path, value] : changes)
    text += fmt::format("{}--set {}={}", text.empty() ? "" : " ", path, value);
  return text;
}

std::string describe_nothing_fits(const LayoutAnswer& answer) {
  const std::string all =
      fmt::format("none of {} layouts on {} GPUs can be trained", answer.candidates, answer.cluster.gpus());
  if (!answer.nearest)
    return all + (answer.first_problem.empty() ? "" : ": " + answer.first_problem);
  const std::string nearest =
      fmt::format("{}: the nearest needs at least {} of a GPU's {}, {} more than there is: {}", all,
                  format_bytes(answer.nearest->memory), format_bytes(answer.capacity),
                  lacking(answer, *answer.nearest), short_of(answer.nearest->candidate));
  if (answer.remedies.empty())
    return nearest + "; more GPUs may divide it further (--gpus)";
  return fmt::format("{}; it fits with --set {}", nearest, describe(answer.remedies.front()));
}

std::string to_text(const LayoutAnswer& answer) {
  std::string text =
      fmt::format("{}: {} GPUs ({} x {}), global batch {}\n\n", answer.scenario, answer.cluster.gpus(),
                  answer.cluster.nodes, answer.machine, grouped(answer.global_batch));
  if (answer.layouts.empty())
    return text + counts_of(answer);
  return text + table_of(answer) + "\n" + counts_of(answer) + promise_of(answer) +
         "The best again: predict " + set_arguments(all_changes(answer)) + "\n" +
         (answer.is_anchored ? about_anchor : "") + warnings_of(answer);
}

ordered_json to_json(const LayoutAnswer& answer) {
  const RejectedLayouts& rejected = answer.rejected;
  ordered_json document{{"schema", "lockstep.layouts/1"},
                        {"scenario", answer.scenario},
                        {"machine", answer.machine},
                        {"nodes", answer.cluster.nodes},
                        {"gpus", answer.cluster.gpus()},
                        {"global_batch", answer.global_batch},
                        {"memory_bytes_capacity", answer.capacity.count()},
                        {"is_anchored", answer.is_anchored},
                        {"candidates", answer.candidates},
                        {"simulated", answer.simulated},
                        {"rejected",
                         {{"not_loadable", rejected.not_loadable},
                          {"out_of_memory", rejected.out_of_memory},
                          {"cut_by_bound", rejected.cut_by_bound},
                          {"needless_recomputation", rejected.needless_recomputation},
                          {"too_large", rejected.too_large}}},
                        {"layouts", ordered_json::array()}};
  for (const FoundLayout& layout : answer.layouts)
    document["layouts"].push_back(to_json(layout, answer.layouts.front()));
  const auto oversized = [&](const std::optional<OversizedLayout>& layout) {
    return layout ? to_json(*layout, answer.capacity) : ordered_json();
  };
  document["nearest_that_does_not_fit"] = oversized(answer.nearest);
  document["might_be_faster_with_more_memory"] = oversized(answer.promising);
  document["warnings"] = answer.warnings;
  return document;
}

}  // namespace lockstep
