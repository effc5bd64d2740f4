#include "sim/study/answers/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/report/text_table.h"
#include "sim/study/answers/layout_trials.h"
#include "sim/study/answers/outcome_bytes.h"
#include "sim/study/answers/shared_trials.h"

namespace lockstep {
namespace {

// Simulated before the next are chosen: large enough that no core waits long, small enough that the best is
// known early. A constant, so that what is cut does not depend on the cores.
constexpr std::size_t batch_size = 16;

// All candidates, in the order that makes most of them needless to simulate.
class LayoutSearch {
 public:
  explicit LayoutSearch(const LayoutQuestion& question)
      : question_(question), trials_(question.base, question.gpus) {
    if (question_.team != nullptr)
      fingerprint_ = fingerprint();
  }

  // The best, best first.
  std::vector<std::size_t> run() {
    bound_all();
    const std::vector<std::size_t> order = order_of_bounds();
    finished_ += trials_.size() - order.size();
    simulate_in_order(order);
    return best_;
  }
  const LayoutTrials& trials() const { return trials_; }

 private:
  std::string fingerprint() const {
    const nlohmann::ordered_json asked{trials_.base().given, trials_.size(), question_.top, question_.cuts};
    return fingerprint_of_question(asked, trials_.files_read());
  }

  // `try_one` for each candidate of `all`, by whoever has time for it.
  void share(const std::vector<std::size_t>& all, const std::function<void(std::size_t)>& try_one) {
    share_trials({question_.team, question_.jobs, fingerprint_}, trials_, all, try_one,
                 [this] { show_progress(); });
  }

  void bound_all() {
    std::vector<std::size_t> all(trials_.size());
    std::iota(all.begin(), all.end(), 0);
    share(all, [this](std::size_t index) { trials_.bound(index); });
    trials_.bound_twins();
  }

  std::vector<std::size_t> order_of_bounds() const {
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < trials_.size(); ++index)
      if (trials_[index].outcome == LayoutOutcome::bounded)
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
        if (!trials_.drop_if_needless(order[place]) && is_worth_simulating(order[place]))
          batch.push_back(order[place]);
      share(batch, [this](std::size_t index) { trials_.simulate(index); });
      for (const std::size_t index : batch)
        if (trials_[index].outcome == LayoutOutcome::simulated && !trials_.drop_if_needless(index))
          insert(index);
    }
  }

  bool is_worth_simulating(std::size_t index) const {
    return !question_.cuts || best_.size() < question_.top ||
           trials_[index].bound.iteration <= trials_[best_.back()].brief.iteration;
  }

  auto rank_of(std::size_t index) const { return std::tuple(trials_[index].brief.iteration, index); }

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
      question_.on_progress(finished_, 2 * trials_.size());
  }

  const LayoutQuestion& question_;
  LayoutTrials trials_;
  std::string fingerprint_;        // of what is asked, where there is a team
  std::vector<std::size_t> best_;  // candidates, best first
  std::mutex mutex_;               // guards what is below
  std::size_t finished_ = 0;
};

std::size_t& counter(LayoutAnswer& answer, LayoutOutcome outcome) {
  switch (outcome) {
    case LayoutOutcome::bounded:
      return answer.rejected.cut_by_bound;
    case LayoutOutcome::not_loadable:
      return answer.rejected.not_loadable;
    case LayoutOutcome::out_of_memory:
      return answer.rejected.out_of_memory;
    case LayoutOutcome::needless:
      return answer.rejected.needless_recomputation;
    case LayoutOutcome::too_large:
      return answer.rejected.too_large;
    case LayoutOutcome::simulated:
      break;
  }
  return answer.simulated;
}

void count_outcomes(const LayoutTrials& trials, LayoutAnswer& answer) {
  for (std::size_t index = 0; index < trials.size(); ++index) {
    ++counter(answer, trials[index].outcome);
    if (answer.first_problem.empty())
      answer.first_problem = trials[index].problem;
  }
}

// The first of those that tie.
template <class Key>
std::optional<std::size_t> least_oversized(const LayoutTrials& trials, const Key& key) {
  std::optional<std::size_t> least;
  for (std::size_t index = 0; index < trials.size(); ++index)
    if (trials[index].outcome == LayoutOutcome::out_of_memory &&
        (!least || key(trials[index]) < key(trials[*least])))
      least = index;
  return least;
}

OversizedLayout oversized(const LayoutTrials& trials, std::size_t index) {
  const LayoutBound& bound = trials[index].bound;
  return {.candidate = trials.candidate(index), .memory = bound.memory, .fastest = bound.iteration};
}

// More nodes are another question.
std::vector<MemoryRemedy> remedies_of(const LayoutTrials& trials, std::size_t index) {
  const auto changed = [&](const Overrides& more) { return trials.changed(index, more); };
  std::vector<MemoryRemedy> remedies = find_memory_remedies(changed({}), changed);
  std::erase_if(remedies, [](const MemoryRemedy& remedy) {
    return !remedy.fits || std::any_of(remedy.changes.begin(), remedy.changes.end(), [](const auto& change) {
      return change.first.starts_with("cluster.");
    });
  });
  return remedies;
}

void add_oversized(const LayoutTrials& trials, LayoutAnswer& answer) {
  const auto nearest = least_oversized(trials, [](const LayoutTrial& trial) { return trial.bound.memory; });
  if (!nearest)
    return;
  answer.nearest = oversized(trials, *nearest);
  if (answer.layouts.empty()) {
    answer.remedies = remedies_of(trials, *nearest);
    return;
  }
  const Duration best = answer.layouts.front().brief.iteration;
  const auto promising = least_oversized(trials, [best](const LayoutTrial& trial) {
    return std::tuple(trial.bound.iteration >= best, trial.bound.memory);
  });
  if (trials[*promising].bound.iteration < best)
    answer.promising = oversized(trials, *promising);
}

// Rows that begin between whole loads are slower to multiply (alignment.h): what pads some layouts' words and not
// others' is no virtue of the layouts.
void warn_of_padding(const LayoutTrials& trials, const std::vector<std::size_t>& told, LayoutAnswer& answer) {
  const auto& transformer = trials.base().model.model.transformer;
  if (!transformer || told.empty())
    return;
  std::set<std::int64_t> multiples;
  for (const std::size_t index : told)
    multiples.insert(trials.changed(index, {}).training.layout.degrees.vocabulary_multiple);
  const std::int64_t words = transformer->vocabulary;
  const std::int64_t most = *multiples.rbegin();
  if (multiples.contains(1) && words % most != 0)
    answer.warnings.push_back(
        fmt::format("training.vocabulary_multiple is not stated: {} words stay as they are in some of these "
                    "layouts and are padded to multiples of {} in others, which multiply faster; "
                    "--set training.vocabulary_multiple={} pads them in all",
                    grouped(words), most, most));
}

}  // namespace

LayoutAnswer search_layouts(const LayoutQuestion& question) {
  LayoutSearch search(question);
  const std::vector<std::size_t> best = search.run();
  const LayoutTrials& trials = search.trials();
  const LoadedScenario& base = trials.base();
  LayoutAnswer answer{.scenario = base.name,
                      .cluster = trials.cluster(),
                      .machine = base.cluster.machine.name,
                      .global_batch = find_throughput(base, Duration::zero()).samples_per_iteration,
                      .capacity = base.cluster.gpu.memory,
                      .given = question.base.overrides,
                      .is_anchored = trials.is_anchored(),
                      .candidates = trials.size()};
  for (const std::size_t index : best)
    answer.layouts.push_back({trials.candidate(index), trials[index].brief});
  count_outcomes(trials, answer);
  add_oversized(trials, answer);
  warn_of_padding(trials, best, answer);
  return answer;
}

}  // namespace lockstep
