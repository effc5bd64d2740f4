#include "sim/load/import/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/median.h"
#include "sim/base/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t most_lines = 10;
constexpr std::size_t widest_name = 60;

double milliseconds(Nanoseconds time) {
  return static_cast<double>(time) / 1e6;
}

std::string shortened(const std::string& name) {
  return name.size() <= widest_name ? name : name.substr(0, widest_name - 3) + "...";
}

Nanoseconds quantile(std::vector<Nanoseconds> times, double share) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(std::llround(share * static_cast<double>(times.size() - 1)))];
}

std::vector<TracedStep> those_with(const TracedRun& run, bool has_collectives) {
  std::vector<TracedStep> steps;
  std::copy_if(run.steps.begin(), run.steps.end(), std::back_inserter(steps),
               [&](const TracedStep& step) { return step.collectives.empty() != has_collectives; });
  return steps;
}

std::string spread_text(const std::vector<TracedStep>& steps, const char* kind) {
  if (steps.empty())
    return {};
  std::vector<Nanoseconds> iterations;
  for (const TracedStep& step : steps) iterations.push_back(step.times.iteration);
  return fmt::format("  {:>10.3f} ms  {} steps {} collectives, 10th to 90th percentile {:.3f} to {:.3f} ms\n",
                     milliseconds(median_of(steps, &StepTimes::iteration)), steps.size(), kind,
                     milliseconds(quantile(iterations, 0.1)), milliseconds(quantile(iterations, 0.9)));
}

std::string steps_text(const TracedRun& run) {
  return fmt::format("steps by {}, on the clock of the {} (medians):\n",
                     run.has_step_marks ? "ProfilerStep#" : "Optimizer.step#",
                     run.is_of_gpu ? "GPU" : "CPU") +
         spread_text(those_with(run, true), "with") + spread_text(those_with(run, false), "without");
}

struct Part {
  const char* name;
  Nanoseconds StepTimes::*time;
};

std::string parts_text(const std::vector<TracedStep>& steps, std::initializer_list<Part> parts) {
  std::string text;
  for (const Part& part : parts)
    if (const Nanoseconds time = steps.empty() ? 0 : median_of(steps, part.time); time > 0)
      text += fmt::format("  {:>10.3f} ms  {}\n", milliseconds(time), part.name);
  return text;
}

// Computing is of the steps that computed alone, where there are such; waiting is of the others.
std::string all_parts_text(const TracedRun& run) {
  const std::vector<TracedStep> alone = those_with(run, false);
  const std::vector<TracedStep> others = those_with(run, true);
  return parts_text(alone.empty() ? others : alone,
                    {{"forward", &StepTimes::forward},
                     {"backward", &StepTimes::backward},
                     {"optimizer", &StepTimes::optimizer},
                     {"of these: the GPU waits for its host", &StepTimes::host},
                     {"waiting for input", &StepTimes::input}}) +
         parts_text(others, {{"waiting for collectives", &StepTimes::communication},
                             {"hooks on gradients and copies of buckets", &StepTimes::copies}});
}

std::string kernels_text(const TracedRun& run) {
  if (run.kernels.empty())
    return {};
  std::string text =
      fmt::format("kernels, of {} different ones by stream and operator:\n", run.kernels.size());
  const auto steps = static_cast<double>(run.steps.size());
  for (std::size_t i = 0; i < std::min(most_lines, run.kernels.size()); ++i) {
    const KernelUse& use = run.kernels[i];
    text +=
        fmt::format("  {:>10.3f} ms a step  {:>7.1f} calls  stream {:<4} {}  ({})\n",
                    milliseconds(use.time) / steps, static_cast<double>(use.calls) / steps, use.stream,
                    shortened(use.name), use.launched_by.empty() ? "operator not recorded" : use.launched_by);
  }
  return text;
}

// Collectives of the same kind and size stand in one line.
std::string collectives_text(const TraceFile& trace, const TracedRun& run) {
  std::map<std::tuple<std::string, std::int64_t, std::string>, std::vector<double>> alike;
  for (const TracedStep& step : run.steps)
    for (const TracedCollective& each : step.collectives) {
      const TensorFacts facts = each.facts == no_facts ? TensorFacts{} : trace.facts[each.facts];
      alike[{printable_name(trace.names[each.name]), facts.elements, trace.names[facts.type]}].push_back(
          milliseconds(each.duration));
    }
  if (alike.empty())
    return "no collectives\n";
  const auto steps = static_cast<double>(those_with(run, true).size());
  std::string text = "collectives (not part of computing):\n";
  for (const auto& [what, times] : alike) {
    const auto& [name, elements, type] = what;
    const std::string size = elements == 0 ? "size not recorded" : fmt::format("{} {}", elements, type);
    text += fmt::format("  {:>10.3f} ms  {:>7.1f} a step  {}  {}\n", median(times),
                        static_cast<double>(times.size()) / steps, size, shortened(name));
  }
  return text;
}

std::string late_text(const TracedRun& run) {
  if (run.late.empty())
    return {};
  std::string text = "the GPU had nothing to do until its host launched:\n";
  const auto steps = static_cast<double>(run.steps.size());
  for (std::size_t i = 0; i < std::min(most_lines, run.late.size()); ++i)
    text += fmt::format("  {:>10.3f} ms a step  {:>7.1f} gaps  {}\n", milliseconds(run.late[i].time) / steps,
                        static_cast<double>(run.late[i].gaps) / steps, shortened(run.late[i].name));
  return text;
}

}  // namespace

Nanoseconds median_of(const std::vector<TracedStep>& steps, Nanoseconds StepTimes::*time) {
  std::vector<double> values;
  for (const TracedStep& step : steps) values.push_back(static_cast<double>(step.times.*time));
  return std::llround(median(std::move(values)));
}

std::string microseconds(Nanoseconds time) {
  return fmt::format("{}.{:03} us", time / 1000, time % 1000);
}

std::string trace_report(const TraceFile& trace, const TracedRun& run) {
  std::string text = steps_text(run) + all_parts_text(run) + kernels_text(run) +
                     collectives_text(trace, run) + late_text(run);
  if (!trace.devices.empty())
    text += fmt::format("device: {}\n", trace.devices.front());
  return text;
}

}  // namespace lockstep
