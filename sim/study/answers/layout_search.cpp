#include "sim/study/answers/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/error.h"
#include "sim/report/anchor.h"
#include "sim/report/memory_track.h"
#include "sim/report/prediction.h"
#include "sim/study/answers/layout_bound.h"
#include "sim/study/answers/outcome_bytes.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

// Simulated before the next are chosen: large enough that no core waits long, small enough that the best is
// known early. A constant, so that what is cut does not depend on the cores.
constexpr std::size_t batch_size = 16;

enum class Outcome : std::uint8_t { bounded, not_loadable, out_of_memory, needless, too_large, simulated };

struct Trial {
  Outcome outcome = Outcome::bounded;
  LayoutBound bound;
  FoundLayout found;    // of what was simulated
  std::string problem;  // of what does not load, or is too large
};

LayoutCluster cluster_of(const LoadedScenario& base, const std::optional<std::int64_t>& gpus) {
  LayoutCluster cluster{.nodes = base.cluster.nodes, .gpus_per_node = base.cluster.gpus_per_node};
  if (!gpus)
    return cluster;
  const std::int64_t a_node = cluster.gpus_per_node;
  if (*gpus % a_node != 0)
    throw ConfigError(
        fmt::format("--gpus: found {}, which is no multiple of the {} GPUs of a node; nearest: {}", *gpus,
                    a_node, std::max<std::int64_t>((*gpus + a_node / 2) / a_node, 1) * a_node));
  cluster.nodes = *gpus / a_node;
  cluster.is_stated = true;
  return cluster;
}

// A long pipeline with as many micro-batches as tell what it holds.
std::optional<Scenario> shortened(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  const std::int64_t all = scenario.training.gradient_accumulation;
  if (layout.pipeline == 1)
    return std::nullopt;
  const std::int64_t few =
      telling_micro_batches(pipeline_schedule_named(layout.schedule),
                            {.stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = all});
  if (all <= 2 * few)
    return std::nullopt;
  Scenario shorter = scenario;
  shorter.training.gradient_accumulation = few;
  shorter.simulation.iterations = 1;
  return shorter;
}

class LayoutSearch {
 public:
  explicit LayoutSearch(const LayoutQuestion& question)
      : question_(question),
        variants_(question.base),
        base_(variants_.load({.changes = {}, .file_name = "", .writes_resolved = false})),
        cluster_(cluster_of(base_, question.gpus)),
        candidates_(layout_candidates(base_, cluster_)),
        trials_(candidates_.size()) {
    if (base_.compute.anchor)
      anchored_ = solve_anchor(base_).compute;
    if (question_.team != nullptr)
      fingerprint_ = fingerprint();
  }

  LayoutAnswer run() {
    bound_all();
    const std::vector<std::size_t> order = order_of_bounds();
    finished_ += candidates_.size() - order.size();
    simulate_in_order(order);
    return answer();
  }

 private:
  LoadedScenario load(std::size_t index) const {
    LoadedScenario scenario = variants_.load(
        {.changes = candidates_[index].overrides(), .file_name = "", .writes_resolved = false});
    if (anchored_) {
      scenario.compute.anchor.reset();
      scenario.compute.is_anchored = true;
      scenario.compute.device_scale = anchored_->device_scale;
    }
    return scenario;
  }

  std::string fingerprint() const {
    const nlohmann::ordered_json asked{base_.given, candidates_.size(), question_.top, question_.cuts};
    return fingerprint_of_question(asked, variants_.files_read());
  }

  // `run` for each candidate of `all`, by whoever has time for it.
  void share(const std::vector<std::size_t>& all, const std::function<void(std::size_t)>& run) {
    run_shared(question_.team, question_.jobs,
               {.count = all.size(),
                .question = fingerprint_,
                .run = [&](std::size_t place) { run(all[place]); },
                .tell =
                    [&](std::size_t place) {
                      run(all[place]);
                      return outcome(all[place]);
                    },
                .take = [&](std::size_t place, std::string_view bytes) { take(all[place], bytes); }});
  }

  std::string outcome(std::size_t index) const {
    const Trial& trial = trials_[index];
    return pack({trial.outcome, trial.bound.iteration.picoseconds(), trial.bound.memory.count(),
                 record_of(trial.found.brief), trial.problem});
  }

  void take(std::size_t index, std::string_view bytes) {
    const nlohmann::ordered_json record = unpack(bytes);
    trials_[index] = {.outcome = record[0],
                      .bound = {.iteration = Duration::picoseconds(record[1]),
                                .memory = Bytes(record[2].get<std::int64_t>())},
                      .found = {.candidate = candidates_[index], .brief = brief_in(record[3])},
                      .problem = record[4]};
    show_progress();
  }

  // Twins compute the same and hold the same.
  void bound_all() {
    std::vector<std::size_t> all(candidates_.size());
    std::iota(all.begin(), all.end(), 0);
    share(all, [this](std::size_t index) {
      if (!candidates_[index].twin)
        bound(index);
      show_progress();
    });
    for (std::size_t index = 0; index < candidates_.size(); ++index)
      if (candidates_[index].twin)
        trials_[index] = trials_[*candidates_[index].twin];
  }

  void bound(std::size_t index) {
    Trial& trial = trials_[index];
    try {
      const LoadedScenario scenario = load(index);
      trial.bound = bound_layout(scenario);
      if (trial.bound.memory > base_.cluster.gpu.memory)
        trial.outcome = Outcome::out_of_memory;
    } catch (const ConfigError& error) {
      trial.outcome = Outcome::not_loadable;
      trial.problem = error.problems.front();
    }
  }

  std::vector<std::size_t> order_of_bounds() const {
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < trials_.size(); ++index)
      if (trials_[index].outcome == Outcome::bounded)
        order.push_back(index);
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return trials_[a].bound.iteration < trials_[b].bound.iteration;
    });
    return order;
  }

  // Batch after batch, until what is left cannot be among the best.
  void simulate_in_order(const std::vector<std::size_t>& order) {
    for (std::size_t first = 0; first < order.size(); first += batch_size) {
      const std::size_t last = std::min(first + batch_size, order.size());
      std::vector<std::size_t> batch;
      for (std::size_t place = first; place < last; ++place)
        if (!is_needless(order[place]) && is_worth_simulating(order[place]))
          batch.push_back(order[place]);
      share(batch, [this](std::size_t index) { simulate_one(index); });
      for (const std::size_t index : batch)
        if (trials_[index].outcome == Outcome::simulated && !is_needless(index))
          insert(index);
    }
  }

  // With less recomputation the same layout fits; its bound is no larger: it came before, or in this batch.
  bool is_needless(std::size_t index) {
    const std::optional<std::size_t> lighter = candidates_[index].lighter;
    const bool is_needless = lighter && (trials_[*lighter].outcome == Outcome::simulated ||
                                         trials_[*lighter].outcome == Outcome::needless);
    if (is_needless)
      trials_[index].outcome = Outcome::needless;
    return is_needless;
  }

  bool is_worth_simulating(std::size_t index) const {
    return !question_.cuts || best_.size() < question_.top ||
           trials_[index].bound.iteration <= trials_[best_.back()].found.brief.iteration;
  }

  void simulate_one(std::size_t index) {
    Trial& trial = trials_[index];
    try {
      const LoadedScenario scenario = load(index);
      const std::optional<Scenario> shorter = shortened(scenario);
      if (!shorter || fits(trial, *shorter))
        simulate_whole(trial, scenario);
    } catch (const ConfigError& error) {
      trial.outcome = Outcome::too_large;
      trial.problem = error.problems.front();
    }
    trial.found.candidate = candidates_[index];
    show_progress();
  }

  bool fits(Trial& trial, const Scenario& shorter) {
    const Simulation simulation = simulate(shorter, {.with_first = false, .clusters = &clusters_});
    const std::vector<MemoryUse> standing = standing_memory(shorter, simulation);
    trial.bound.memory = find_memory_peak(simulation.steady, standing).moment.use.total();
    if (trial.bound.memory > shorter.cluster.gpu.memory)
      trial.outcome = Outcome::out_of_memory;
    return trial.outcome == Outcome::bounded;
  }

  void simulate_whole(Trial& trial, const LoadedScenario& scenario) {
    trial.found.brief =
        summarise_briefly(scenario, simulate(scenario, {.with_first = false, .clusters = &clusters_}));
    trial.bound.memory = trial.found.brief.memory;
    trial.outcome =
        trial.found.brief.memory > scenario.cluster.gpu.memory ? Outcome::out_of_memory : Outcome::simulated;
  }

  auto rank_of(std::size_t index) const { return std::tuple(trials_[index].found.brief.iteration, index); }

  void insert(std::size_t index) {
    const auto place =
        std::upper_bound(best_.begin(), best_.end(), index,
                         [this](std::size_t a, std::size_t b) { return rank_of(a) < rank_of(b); });
    best_.insert(place, index);
    if (best_.size() > question_.top)
      best_.pop_back();
  }

  void show_progress() {
    const std::scoped_lock lock(mutex_);
    ++finished_;
    if (question_.on_progress)
      question_.on_progress(finished_, 2 * candidates_.size());
  }

  OversizedLayout oversized(std::size_t index) const {
    const LayoutBound& bound = trials_[index].bound;
    return {.candidate = candidates_[index], .memory = bound.memory, .fastest = bound.iteration};
  }

  LayoutAnswer answer() const {
    LayoutAnswer answer{.scenario = base_.name,
                        .cluster = cluster_,
                        .machine = base_.cluster.machine.name,
                        .global_batch = find_throughput(base_, Duration::zero()).samples_per_iteration,
                        .capacity = base_.cluster.gpu.memory,
                        .given = question_.base.overrides,
                        .is_anchored = anchored_.has_value(),
                        .candidates = candidates_.size()};
    for (const std::size_t index : best_) answer.layouts.push_back(trials_[index].found);
    for (std::size_t index = 0; index < trials_.size(); ++index) count(answer, index);
    add_oversized(answer);
    return answer;
  }

  static std::size_t& counter(LayoutAnswer& answer, Outcome outcome) {
    switch (outcome) {
      case Outcome::bounded:
        return answer.rejected.cut_by_bound;
      case Outcome::not_loadable:
        return answer.rejected.not_loadable;
      case Outcome::out_of_memory:
        return answer.rejected.out_of_memory;
      case Outcome::needless:
        return answer.rejected.needless_recomputation;
      case Outcome::too_large:
        return answer.rejected.too_large;
      case Outcome::simulated:
        break;
    }
    return answer.simulated;
  }

  void count(LayoutAnswer& answer, std::size_t index) const {
    const Trial& trial = trials_[index];
    ++counter(answer, trial.outcome);
    if (answer.first_problem.empty())
      answer.first_problem = trial.problem;
  }

  // The first of those that tie.
  template <class Key>
  std::optional<OversizedLayout> least_oversized(const Key& key) const {
    std::optional<std::size_t> least;
    for (std::size_t index = 0; index < trials_.size(); ++index)
      if (trials_[index].outcome == Outcome::out_of_memory &&
          (!least || key(trials_[index]) < key(trials_[*least])))
        least = index;
    return least ? std::optional(oversized(*least)) : std::nullopt;
  }

  // More nodes are another question.
  std::vector<MemoryRemedy> remedies_of(const LayoutCandidate& candidate) const {
    const auto changed = [&](const Overrides& more) {
      Overrides changes = candidate.overrides();
      changes.insert(changes.end(), more.begin(), more.end());
      return variants_.load({.changes = changes, .file_name = "", .writes_resolved = false});
    };
    std::vector<MemoryRemedy> remedies = find_memory_remedies(changed({}), changed);
    std::erase_if(remedies, [](const MemoryRemedy& remedy) {
      return !remedy.fits ||
             std::any_of(remedy.changes.begin(), remedy.changes.end(),
                         [](const auto& change) { return change.first.starts_with("cluster."); });
    });
    return remedies;
  }

  void add_oversized(LayoutAnswer& answer) const {
    answer.nearest = least_oversized([](const Trial& trial) { return trial.bound.memory; });
    if (answer.layouts.empty()) {
      if (answer.nearest)
        answer.remedies = remedies_of(answer.nearest->candidate);
      return;
    }
    const Duration best = answer.layouts.front().brief.iteration;
    answer.promising = least_oversized(
        [best](const Trial& trial) { return std::tuple(trial.bound.iteration >= best, trial.bound.memory); });
    if (answer.promising && answer.promising->fastest >= best)
      answer.promising.reset();
  }

  const LayoutQuestion& question_;
  ScenarioVariants variants_;
  LoadedScenario base_;
  LayoutCluster cluster_;
  std::optional<ComputeSpec> anchored_;
  std::string fingerprint_;  // of what is asked, where there is a team
  std::vector<LayoutCandidate> candidates_;
  std::vector<Trial> trials_;      // by candidate
  std::vector<std::size_t> best_;  // candidates, best first
  ClusterStore clusters_;
  std::mutex mutex_;  // guards what is below
  std::size_t finished_ = 0;
};

}  // namespace

LayoutAnswer search_layouts(const LayoutQuestion& question) {
  return LayoutSearch(question).run();
}

}  // namespace lockstep
