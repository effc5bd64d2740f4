#include "sim/study/capacity/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/error.h"
#include "sim/study/answers/outcome_bytes.h"
#include "sim/study/answers/shared_trials.h"

namespace lockstep {
namespace {

void add_once(std::string line, std::vector<std::string>& lines) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end())
    lines.push_back(std::move(line));
}

// What to know before the first is taken for the best.
std::vector<std::string> warnings_about(const std::vector<CapacityPlan>& plans) {
  if (plans.empty())
    return {};
  std::vector<std::string> warnings = plans.front().warnings;
  const auto batch = [](const CapacityPlan& plan) { return plan.brief.throughput.samples_per_iteration; };
  const auto [least, most] =
      std::minmax_element(plans.begin(), plans.end(),
                          [&](const CapacityPlan& a, const CapacityPlan& b) { return batch(a) < batch(b); });
  if (batch(*least) < batch(*most))
    warnings.push_back(
        fmt::format("global batches differ, from {} to {} samples: each sample is taken to teach as "
                    "much in all of them; training.global_batch states one for all",
                    batch(*least), batch(*most)));
  for (const CapacityPlan& plan : plans)
    if (plan.price && plan.price->date.empty())
      add_once("the price of " + plan.machine + " has no date: state price_date", warnings);
  return warnings;
}

// What `predict` says of a plan beyond what its trial found.
struct Foreseen {
  std::optional<Duration> low;
  std::optional<Duration> high;
  std::vector<std::string> warnings;
};

std::optional<std::int64_t> picoseconds_of(const std::optional<Duration>& time) {
  return time ? std::optional(time->picoseconds()) : std::nullopt;
}

std::optional<Duration> duration_in(const nlohmann::ordered_json& record) {
  return record.is_null() ? std::nullopt : std::optional(Duration::picoseconds(record));
}

std::string bytes_of(const Foreseen& foreseen) {
  return pack(
      {record_of(picoseconds_of(foreseen.low)), record_of(picoseconds_of(foreseen.high)), foreseen.warnings});
}

Foreseen foreseen_in(std::string_view bytes) {
  const nlohmann::ordered_json record = unpack(bytes);
  return {duration_in(record[0]), duration_in(record[1]), record[2]};
}

// Simulated before the next are chosen. A constant, so that what is cut does not depend on the cores.
constexpr std::size_t batch_size = 16;

class PlanSearch {
 public:
  explicit PlanSearch(const PlanQuestion& question)
      : question_(question),
        trials_(question),
        fingerprint_(question.team == nullptr ? "" : trials_.fingerprint()) {}

  PlanAnswer run() {
    bound_all();
    refuse_if_none_loads();
    simulate_in_order(order_of_bounds());
    return answer();
  }

 private:
  void bound_all() {
    std::vector<std::size_t> all(trials_.size());
    std::iota(all.begin(), all.end(), 0);
    share(all, [this](std::size_t index) { trials_.bound(index); });
  }

  // `try_one` for each option of `all`, by whoever has time for it.
  void share(const std::vector<std::size_t>& all, const std::function<void(std::size_t)>& try_one) {
    share_trials({question_.team, question_.jobs, fingerprint_}, trials_, all, try_one,
                 [this] { show_progress(); });
  }

  void refuse_if_none_loads() const {
    for (std::size_t index = 0; index < trials_.size(); ++index)
      if (trials_[index].outcome != TrialOutcome::rejected ||
          trials_[index].rejection != Rejection::not_loadable)
        return;
    throw ConfigError(question_.request.file_name + ": " + trials_[0].reason);
  }

  // By the objective, then by the other figure, then as they come.
  std::tuple<double, double, std::size_t> rank_of(std::size_t index) const {
    const TrainingRun& run = trials_[index].least;
    const double usd = run.usd.value_or(0);
    return trials_.objective() == PlanObjective::cost ? std::tuple(usd, run.seconds, index)
                                                      : std::tuple(run.seconds, usd, index);
  }

  void sort_by_rank(std::vector<std::size_t>& options) const {
    std::sort(options.begin(), options.end(),
              [this](std::size_t a, std::size_t b) { return rank_of(a) < rank_of(b); });
  }

  std::vector<std::size_t> order_of_bounds() const {
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < trials_.size(); ++index)
      if (trials_[index].outcome == TrialOutcome::bounded)
        order.push_back(index);
    sort_by_rank(order);
    return order;
  }

  void simulate_in_order(const std::vector<std::size_t>& order) {
    for (std::size_t first = 0; first < order.size(); first += batch_size) {
      std::vector<std::size_t> batch;
      for (std::size_t place = first; place < std::min(first + batch_size, order.size()); ++place)
        if (!question_.cuts || may_be_told(order[place]))
          batch.push_back(order[place]);
      simulate_all(batch);
      for (const std::size_t index : batch)
        if (trials_[index].outcome == TrialOutcome::feasible)
          feasible_.push_back(index);
      sort_by_rank(feasible_);
    }
  }

  // Those that search layouts one by one, each of them on all cores.
  void simulate_all(const std::vector<std::size_t>& batch) {
    std::vector<std::size_t> given;
    for (const std::size_t index : batch)
      if (!trials_.candidate(index).searches_layouts)
        given.push_back(index);
    share(given, [this](std::size_t index) { trials_.simulate(index); });
    for (const std::size_t index : batch)
      if (trials_.candidate(index).searches_layouts)
        simulate(index);
  }

  void simulate(std::size_t index) {
    trials_.simulate(index);
    show_progress();
  }

  bool may_be_told(std::size_t index) const {
    const auto value = [this](std::size_t option) { return std::get<0>(rank_of(option)); };
    return feasible_.size() < question_.top || value(index) <= value(feasible_[question_.top - 1]) ||
           is_on_front(index);
  }

  bool knows_prices() const {
    return std::any_of(feasible_.begin(), feasible_.end(),
                       [this](std::size_t option) { return trials_[option].least.usd.has_value(); });
  }

  // Whether nothing that was simulated is as fast and as cheap; of what ties in both, the first is. Where some have a
  // price, what has none is on no front and keeps nothing off it.
  bool is_on_front(std::size_t index) const {
    const TrainingRun& run = trials_[index].least;
    if (!run.usd && knows_prices())
      return false;
    const double usd = run.usd.value_or(0);
    return std::none_of(feasible_.begin(), feasible_.end(), [&](std::size_t other) {
      const TrainingRun& rival = trials_[other].least;
      if (rival.usd.has_value() != run.usd.has_value())
        return false;
      const double rival_usd = rival.usd.value_or(0);
      const bool ties = rival.seconds == run.seconds && rival_usd == usd;
      return rival.seconds <= run.seconds && rival_usd <= usd && (!ties || other < index);
    });
  }

  PlanAnswer answer() {
    PlanAnswer answer{.name = question_.request.name,
                      .goal = question_.request.goal,
                      .objective = trials_.objective(),
                      .options = trials_.size()};
    std::vector<std::size_t> told;
    for (std::size_t place = 0; place < feasible_.size(); ++place)
      if (place < question_.top || is_on_front(feasible_[place]))
        told.push_back(feasible_[place]);
    answer.plans = describe_all(told);
    if (question_.team != nullptr && question_.team->rank() > 0)
      return answer;
    count_others(answer);
    answer.warnings = warnings_about(answer.plans);
    if (told.empty())
      answer.nearest = find_nearest();
    else
      answer.outlook = find_outlook(trials_, told.front(), answer.plans, question_);
    return answer;
  }

  // A worker describes for the manager alone.
  std::vector<CapacityPlan> describe_all(const std::vector<std::size_t>& told) const {
    std::vector<CapacityPlan> plans(told.size());
    run_shared(
        question_.team, question_.jobs,
        {.count = told.size(),
         .question = fingerprint_,
         .run = [&](std::size_t place) { plans[place] = describe(told[place], foresee(told[place])); },
         .tell = [&](std::size_t place) { return bytes_of(foresee(told[place])); },
         .take = [&](std::size_t place,
                     std::string_view bytes) { plans[place] = describe(told[place], foreseen_in(bytes)); },
         .is_for_all = false});
    return plans;
  }

  CapacityPlan describe(std::size_t index, const Foreseen& foreseen) const {
    const LoadedScenario scenario = trials_.load(index);
    const PlanTrial& trial = trials_[index];
    const PlanCandidate& candidate = trials_.candidate(index);
    return {.option = trials_.option(index),
            .machine = scenario.cluster.machine.name,
            .gpus = scenario.cluster.ranks(),
            .layout = layout_text(scenario, trials_.option(index).changes),
            .layout_changes = trial.layout,
            .scenario = scenario.given,
            .brief = trial.brief,
            .capacity = scenario.cluster.gpu.memory,
            .run = trial.least,
            .price = candidate.price ? candidate.price : scenario.cluster.machine.price,
            .low = foreseen.low,
            .high = foreseen.high,
            .is_on_front = is_on_front(index),
            .warnings = foreseen.warnings};
  }

  Foreseen foresee(std::size_t index) const {
    const Report report = trials_.predict(index).report;
    return {report.times.low, report.times.high, report.warnings};
  }

  // How many times the deadline or the budget it takes.
  double excess_of(std::size_t index) const {
    const PlanGoal& goal = question_.request.goal;
    const TrainingRun& run = trials_[index].least;
    double excess = goal.deadline ? run.seconds / static_cast<double>(goal.deadline->count()) : 0;
    if (goal.budget_usd && run.usd)
      excess = std::max(excess, *run.usd / *goal.budget_usd);
    return excess;
  }

  // Simulated in the order of their bounds, until the next can be no nearer.
  std::optional<NearestPlan> find_nearest() {
    const auto by_excess = [this](std::size_t a, std::size_t b) {
      return std::pair(excess_of(a), a) < std::pair(excess_of(b), b);
    };
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < trials_.size(); ++index)
      if (!trials_[index].is_hopeless())
        order.push_back(index);
    std::sort(order.begin(), order.end(), by_excess);
    std::optional<std::size_t> nearest;
    for (const std::size_t index : order) {
      if (nearest && excess_of(*nearest) < excess_of(index))
        break;
      if (!trials_[index].is_simulated)
        simulate(index);
      if (!trials_[index].is_hopeless() && (!nearest || by_excess(index, *nearest)))
        nearest = index;
    }
    if (!nearest)
      return std::nullopt;
    return NearestPlan{.plan = describe(*nearest, foresee(*nearest)), .lacking = trials_[*nearest].reason};
  }

  void count_others(PlanAnswer& answer) const {
    for (std::size_t index = 0; index < trials_.size(); ++index) {
      const PlanTrial& trial = trials_[index];
      answer.simulated += trial.is_simulated ? 1 : 0;
      answer.cut_by_bound += trial.outcome == TrialOutcome::bounded ? 1 : 0;
      if (trial.outcome == TrialOutcome::rejected)
        answer.rejected.push_back({.option = trials_.option(index),
                                   .machine = trials_.candidate(index).machine,
                                   .kind = trial.rejection,
                                   .reason = trial.reason});
    }
  }

  void show_progress() {
    const std::scoped_lock lock(mutex_);
    const std::size_t all = 2 * trials_.size();
    finished_ = std::min(finished_ + 1, all);
    if (question_.on_progress)
      question_.on_progress(finished_, all);
  }

  const PlanQuestion& question_;
  PlanTrials trials_;
  std::string fingerprint_;            // of what is asked, where there is a team
  std::vector<std::size_t> feasible_;  // options, best first
  std::mutex mutex_;                   // guards what is below
  std::size_t finished_ = 0;
};

}  // namespace

PlanAnswer search_plans(const PlanQuestion& question) {
  return PlanSearch(question).run();
}

std::vector<std::string> files_of_plan(const PlanQuestion& question) {
  const ScenarioVariants variants(
      base_of(question.request, question.data_directory, question.accepts_any_size));
  plan_options(question.request, variants);
  std::vector<std::string> files{question.request.file_name};
  for (const ReadFile& read : variants.files_read()) files.push_back(read.file);
  return files;
}

}  // namespace lockstep
