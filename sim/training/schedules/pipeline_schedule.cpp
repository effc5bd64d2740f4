#include "sim/training/schedules/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/check.h"

namespace lockstep {
namespace {

std::string chunks_wanted(const ChunkRange& range) {
  if (range.least < range.most)
    return fmt::format("{} or more parts", range.least);
  return range.most == 1 ? "exactly 1 part" : fmt::format("exactly {} parts", range.most);
}

// " (so many: ...)", the schedules whose ranks hold as many parts; nothing where there are none.
std::string others_with(std::int64_t chunks) {
  std::vector<std::string_view> names;
  for (const auto& [name, schedule] : Registry<PipelineSchedule>::all())
    if (schedule.chunks.holds(chunks))
      names.push_back(name);
  return names.empty() ? "" : fmt::format(" (so many: {})", fmt::join(names, ", "));
}

std::optional<ShapeProblem> too_few(std::string_view key, std::string_view what, std::int64_t stated) {
  if (stated >= 1)
    return std::nullopt;
  return ShapeProblem{key, fmt::format("a pipeline has 1 {} or more, not {}", what, stated)};
}

std::optional<ShapeProblem> problem_of_chunks(std::string_view name, const ChunkRange& range,
                                              std::int64_t stated) {
  if (range.holds(stated))
    return std::nullopt;
  return ShapeProblem{"virtual_stages", fmt::format("{} gives each rank {} of the model, not {}{}", name,
                                                    chunks_wanted(range), stated, others_with(stated))};
}

// The largest sum of the changes up to any pass.
template <class Change>
auto peak_of(std::span<const Pass> passes, Change change) {
  decltype(change(Pass{})) held{};
  auto most = held;
  for (const Pass& pass : passes) {
    held += change(pass);
    most = std::max(most, held);
  }
  return most;
}

std::int64_t change_in_flight(const Pass& pass) {
  switch (pass.kind) {
    case PassKind::forward:
      return 1;
    case PassKind::backward_input:
      return 0;
    case PassKind::backward:
    case PassKind::backward_weights:
      break;
  }
  return -1;
}

Bytes change_of_kept(const Pass& pass, const KeptActivations& kept) {
  switch (pass.kind) {
    case PassKind::forward:
      return kept.by_forward;
    case PassKind::backward:
      return Bytes{} - kept.by_forward;
    case PassKind::backward_input:
      return kept.for_weights - kept.by_forward;
    case PassKind::backward_weights:
      break;
  }
  return Bytes{} - kept.for_weights;
}

}  // namespace

std::int64_t part_in_turn(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) {
  return chunk * shape.stages + stage;
}

std::int64_t part_in_v(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) {
  return chunk == 0 ? stage : shape.parts() - 1 - stage;
}

std::size_t end_of_joined(std::span<const Pass> passes, std::size_t first) {
  while (passes[first].joins_next) ++first;
  return first + 1;
}

const PipelineSchedule& pipeline_schedule_named(std::string_view name) {
  const PipelineSchedule* schedule = Registry<PipelineSchedule>::find(name);
  LOCKSTEP_CHECK(schedule != nullptr, "load accepts only schedules that are registered");
  return *schedule;
}

std::vector<ShapeProblem> problems_of_shape(std::string_view name, const PipelineShape& shape) {
  const PipelineSchedule& schedule = pipeline_schedule_named(name);
  std::vector<ShapeProblem> problems;
  for (const auto& problem : {too_few("pipeline_parallel", "stage", shape.stages),
                              too_few("gradient_accumulation", "micro-batch", shape.micro_batches),
                              problem_of_chunks(name, schedule.chunks, shape.chunks)})
    if (problem.has_value())
      problems.push_back(*problem);
  if (problems.empty() && schedule.problems != nullptr)
    problems = schedule.problems(shape);
  return problems;
}

std::vector<PartPlace> places_of_parts(const PipelineSchedule& schedule, const PipelineShape& shape) {
  std::vector<PartPlace> places(static_cast<std::size_t>(shape.parts()));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage)
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk)
      places[static_cast<std::size_t>(schedule.part(shape, stage, chunk))] = {stage, chunk};
  return places;
}

bool completes_gradients(const Pass& pass) {
  return pass.kind == PassKind::backward || pass.kind == PassKind::backward_weights;
}

std::vector<std::int64_t> chunks_by_completion(std::span<const Pass> passes, std::int64_t chunks) {
  std::vector<std::size_t> last(static_cast<std::size_t>(chunks));
  for (std::size_t at = 0; at < passes.size(); ++at)
    if (completes_gradients(passes[at]))
      last[static_cast<std::size_t>(passes[at].chunk)] = at;
  std::vector<std::int64_t> order(last.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return last[static_cast<std::size_t>(a)] < last[static_cast<std::size_t>(b)];
  });
  return order;
}

std::int64_t most_in_flight(std::span<const Pass> passes) {
  return peak_of(passes, change_in_flight);
}

std::int64_t telling_micro_batches(const PipelineSchedule& schedule, const PipelineShape& shape) {
  PipelineShape shorter = shape;
  shorter.micro_batches = 2 * shape.parts();
  if (shorter.micro_batches >= shape.micro_batches)
    return shape.micro_batches;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage)
    if (most_in_flight(schedule.passes(shorter, stage)) != most_in_flight(schedule.passes(shape, stage)))
      return shape.micro_batches;
  return shorter.micro_batches;
}

Bytes most_kept(std::span<const Pass> passes, std::span<const KeptActivations> chunks) {
  return peak_of(passes, [&](const Pass& pass) {
    LOCKSTEP_CHECK(static_cast<std::size_t>(pass.chunk) < chunks.size(), "what every chunk keeps is told");
    return change_of_kept(pass, chunks[static_cast<std::size_t>(pass.chunk)]);
  });
}

}  // namespace lockstep
