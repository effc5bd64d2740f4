#include "sim/run/run_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/base/error.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// What the program takes for one of each, on one core of a server of 2023, to one digit.
//
//   lockstep_benchmark --benchmark_filter='engine|ddp_26|build_cluster|find_symmetry|table_of'
//   lockstep predict SCENARIO --stats
constexpr double ns_per_event = 100;
constexpr double ns_per_event_and_tied_rank = 5;  // a search of all that share links, and their shares anew
constexpr double ns_per_op = 100;                 // to write, price and route
constexpr double ns_per_section = 800;            // to find its name among all
constexpr double ns_per_flow = 90;                // to find what it crosses
constexpr double ns_per_link = 300;               // to build, to colour, to share out
constexpr double ns_per_multiplication = 1;

// Beyond what stands in the plan (plan_size.h): when an op starts and ends, what it still waits for, events;
// who waits for a lane.
constexpr double run_bytes_per_op = 40;
constexpr double run_bytes_per_lane = 20;
constexpr double bytes_per_link = 150;
// As the scenario states them and as they are written back, with their work.
constexpr double bytes_per_layer = 3300;
constexpr double bytes_per_tensor = 190;
// A prediction has the simulation of its band at hand beside its own.
constexpr double simulations_at_once = 2;

// What a byte of a plan comes to when the plan is run.
constexpr double run_bytes_per_plan_byte = 4;

// At least two digits.
std::string rough(double value) {
  return value < 10 ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

std::string count_text(double count) {
  if (count < 1e6)
    return fmt::format("{:.0f}", count);
  return count < 1e9 ? rough(count / 1e6) + " million" : rough(count / 1e9) + " billion";
}

// One reason why a run is large.
struct Part {
  double bytes = 0;
  double seconds = 0;
  std::string what;
};

Part part_of_links(const RunSize& size) {
  return {size.links * bytes_per_link, size.links * ns_per_link / 1e9,
          fmt::format("{} links of {} nodes", count_text(size.links), count_text(size.nodes))};
}

Part part_of_flows(const RunSize& size) {
  const auto flows = static_cast<double>(size.plans.flows);
  return {flows * PlanSize::bytes_per_flow, flows * ns_per_flow / 1e9,
          fmt::format("{} messages between pairs of ranks", count_text(flows))};
}

Part part_of_lanes(const RunSize& size) {
  const auto lanes = static_cast<double>(size.plans.lanes);
  return {lanes * (PlanSize::bytes_per_lane + run_bytes_per_lane), 0,
          fmt::format("{} lanes and connections", count_text(lanes))};
}

Part part_of_ops(const RunSize& size) {
  const auto ops = static_cast<double>(size.plans.ops);
  const double ns = ns_per_event + ns_per_event_and_tied_rank * size.tied_ranks;
  const PlanSize plan{.ops = size.plans.ops,
                      .messages = size.plans.messages,
                      .relays = size.plans.relays,
                      .dependencies = size.plans.dependencies};
  return {static_cast<double>(plan.bytes()) + ops * run_bytes_per_op,
          (ops * ns_per_op + size.events * ns) / 1e9,
          fmt::format("{} events of {} ranks simulated one by one", count_text(size.events),
                      count_text(size.ranks))};
}

Part part_of_names(const RunSize& size) {
  const PlanSize plan{
      .kernels = size.plans.kernels, .sections = size.plans.sections, .names = size.plans.names};
  return {static_cast<double>(plan.bytes()), static_cast<double>(plan.sections) * ns_per_section / 1e9,
          fmt::format("{} kernels and copies with names of their own",
                      count_text(static_cast<double>(plan.names)))};
}

// Held once, whatever is simulated beside it.
Part part_of_model(const RunSize& size) {
  return {(size.layers * bytes_per_layer + size.tensors * bytes_per_tensor) / simulations_at_once, 0,
          fmt::format("{} layers and {} tensors", count_text(size.layers), count_text(size.tensors))};
}

Part part_of_learning(const RunSize& size) {
  return {0, size.multiplications * ns_per_multiplication / 1e9,
          fmt::format("{} multiplications of models that are trained", count_text(size.multiplications))};
}

std::vector<Part> parts_of(const RunSize& size) {
  return {part_of_links(size), part_of_flows(size), part_of_lanes(size), part_of_ops(size),
          part_of_names(size), part_of_model(size), part_of_learning(size)};
}

std::string leading_part(const RunSize& size) {
  const bool by_bytes = size.bytes() / most_bytes > size.seconds() / most_seconds;
  std::vector<Part> parts = parts_of(size);
  return std::max_element(parts.begin(), parts.end(),
                          [by_bytes](const Part& one, const Part& other) {
                            return by_bytes ? one.bytes < other.bytes : one.seconds < other.seconds;
                          })
      ->what;
}

bool has_alike_algorithm(const Scenario& scenario) {
  const Collective* asked = Registry<Collective>::find(scenario.communication.algorithm);
  return scenario.cluster.nodes == 1 || (asked != nullptr && asked->folds);
}

// What the user can do about it, as far as the scenario does it.
std::string remedies(const Scenario& scenario) {
  constexpr std::size_t many_tensors = 10'000;
  std::string list;
  const auto add = [&](bool applies, const std::string& remedy) {
    if (applies)
      list += remedy + ", ";
  };
  const bool is_step = scenario.simulation.fidelity == Fidelity::step;
  add(is_step, "fidelity \"flow\"");
  add(is_step && !has_alike_algorithm(scenario), "communication.algorithm \"ring\", which folds");
  add(!scenario.simulation.fold, "folding (no --no-fold)");
  add(scenario.comparison.has_value(), "fewer compare.rounds");
  add(scenario.simulation.iterations > 1, "fewer simulation.iterations");
  add(strategy_named(scenario.training.strategy).hosts != nullptr, "fewer training.servers");
  add(scenario.cluster.nodes > 1, "fewer cluster.nodes");
  add(scenario.training.gradient_accumulation > 1, "a smaller training.gradient_accumulation");
  add(scenario.model.model.parameters.size() > many_tensors, "a model of fewer tensors");
  return list + "or --yes to simulate it all the same";
}

}  // namespace

double RunSize::bytes() const {
  double sum = 0;
  for (const Part& part : parts_of(*this)) sum += part.bytes;
  return sum * simulations_at_once;
}

double RunSize::seconds() const {
  double sum = 0;
  for (const Part& part : parts_of(*this)) sum += part.seconds;
  return sum;
}

std::int64_t room_for_plan(const Scenario& scenario) {
  if (scenario.simulation.accepts_any_size)
    return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(most_bytes / run_bytes_per_plan_byte);
}

void refuse_if_large(const Scenario& scenario, const RunSize& size) {
  const bool is_small = size.bytes() <= most_bytes && size.seconds() <= most_seconds && !size.is_more;
  if (is_small || scenario.simulation.accepts_any_size)
    return;
  const std::string problem = fmt::format(
      "/simulation: found what would take {}{} of memory and {} a simulation, for it has {}; "
      "expected at most {} and {}; use {}",
      size.is_more ? "more than " : "about ", rough_bytes(size.bytes()), rough_seconds(size.seconds()),
      leading_part(size), rough_bytes(most_bytes), rough_seconds(most_seconds), remedies(scenario));
  throw TooLarge(in_file(scenario, problem));
}

std::string rough_seconds(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < 2 * minute)
    return rough(seconds) + " s";
  return seconds < 2 * hour ? fmt::format("{:.0f} min", seconds / minute)
                            : fmt::format("{:.0f} h", seconds / hour);
}

std::string rough_bytes(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6) : rough(bytes / 1e9) + " GB";
}

}  // namespace lockstep
