#include "sim/study/answers/strategy_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/report/report.h"
#include "sim/run/describe_job.h"
#include "sim/study/answers/sgd_replay.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr std::int64_t points_of_loss = 100;

// One strategy ready to be played.
struct Entry {
  UpdateSetup setup;
  Bytes sent_per_gpu;
  bool has_servers = false;
};

Scenario undisturbed(Scenario scenario) {
  scenario.cluster.stragglers.clear();
  scenario.cluster.jitter = {};
  return scenario;
}

// What a round takes beyond computing is what an undisturbed cluster shows of it: whoever is slow today makes
// the others wait, which the loop adds.
Entry with_collectives(const Scenario& scenario) {
  const Scenario calm = undisturbed(scenario);
  const Report report = summarise(calm, simulate(calm, {.with_first = false}));
  const bool is_local = strategy_named(scenario.training.strategy).sends.period != nullptr;
  const std::int64_t local_steps = period_of(scenario.training);
  const Duration computing = report.iteration - report.breakdown.exposed_communication;
  Entry entry{.setup = {}, .sent_per_gpu = report.communication.bytes_per_gpu};
  entry.setup.run.workers = scenario.cluster.ranks();
  entry.setup.input = {.rule = is_local ? UpdateRule::averaged : UpdateRule::reduced,
                       .slowdown = slowdown_by_rank(scenario),
                       .step = {.until_backward = computing},
                       .local_steps = local_steps,
                       .all_reduce = report.breakdown.exposed_communication * local_steps};
  return entry;
}

Entry with_servers(const Scenario& scenario) {
  Entry entry{.setup = describe_updates(scenario, describe_job(scenario), build_cluster(scenario)->topology),
              .sent_per_gpu = {},
              .has_servers = true};
  entry.sent_per_gpu = Bytes{entry.setup.run.pushed.count() / entry.setup.run.ranks_per_worker};
  return entry;
}

Entry describe(const Scenario& scenario, std::int64_t rounds) {
  const bool has_servers = strategy_named(scenario.training.strategy).servers != nullptr;
  Entry entry = has_servers ? with_servers(scenario) : with_collectives(scenario);
  const std::int64_t period = entry.setup.input.local_steps;
  entry.setup.input.rounds = divided_up(rounds, period) * period;
  entry.setup.input.warm_up = 0;
  return entry;
}

bool uses_gradient(LearningKind kind) {
  return kind == LearningKind::apply || kind == LearningKind::contribute || kind == LearningKind::local_step;
}

bool changes_weights(LearningKind kind) {
  return kind == LearningKind::apply || kind == LearningKind::step || kind == LearningKind::average;
}

// Plays the loop on a real model and writes down its loss now and then.
class LossCurve {
 public:
  LossCurve(const SgdOptions& options, const UpdateRun& run, std::int64_t rounds)
      : options_(of_worker(options, run.ranks_per_worker)),
        data_(options_),
        replay_(data_, options_, static_cast<std::uint32_t>(run.workers)),
        interval_(std::max<std::int64_t>(rounds * run.workers / points_of_loss, 1)) {
    note(Time{});
  }

  void play(const LearningEvent& event) {
    replay_.play(event);
    gradients_ += uses_gradient(event.kind) ? 1 : 0;
    last_ = event.time;
    if (changes_weights(event.kind) && gradients_ >= interval_)
      note(event.time);
  }

  std::vector<LossPoint> points() {
    if (gradients_ > 0)
      note(last_);
    return std::move(points_);
  }

 private:
  // A node's gradient is the mean of its GPUs'.
  static SgdOptions of_worker(SgdOptions options, std::int64_t ranks_per_worker) {
    options.batch *= ranks_per_worker;
    return options;
  }

  void note(Time time) {
    points_.push_back({time.since_start(), replay_.loss()});
    gradients_ = 0;
  }

  SgdOptions options_;
  TrainingData data_;
  SgdReplay replay_;
  std::int64_t interval_;
  std::int64_t gradients_ = 0;  // since the last point
  Time last_;
  std::vector<LossPoint> points_;
};

std::optional<Duration> time_to(double wanted, const std::vector<LossPoint>& points) {
  const auto reached = std::find_if(points.begin(), points.end(),
                                    [wanted](const LossPoint& point) { return point.loss <= wanted; });
  return reached == points.end() ? std::nullopt : std::optional(reached->time);
}

void add_shares(ComparedStrategy& compared, const UpdateTotals& totals) {
  for (const WorkerTime& time : totals.workers) {
    compared.computing += time.computing.in_seconds();
    compared.communicating += time.communicating.in_seconds();
    compared.waiting += time.waiting.in_seconds();
  }
  const double all = compared.computing + compared.communicating + compared.waiting;
  for (double* part : {&compared.computing, &compared.communicating, &compared.waiting})
    *part = all > 0 ? *part / all : 0;
}

ComparedStrategy play(const Scenario& scenario, const ComparisonSpec& comparison) {
  Entry entry = describe(scenario, comparison.rounds);
  const std::int64_t samples_per_update = scenario.model.batch_per_gpu *
                                          scenario.training.gradient_accumulation *
                                          entry.setup.run.ranks_per_worker;
  LossCurve curve(comparison.learning, entry.setup.run, entry.setup.input.rounds);
  const Jitter jitter = jitter_of(scenario);
  entry.setup.input.jitter = &jitter;
  UpdateLoop loop(std::move(entry.setup.input));
  LearningEvent event;
  while (loop.next(event)) curve.play(event);
  UpdateRun& run = entry.setup.run;
  run.totals = loop.totals();

  ComparedStrategy compared;
  compared.name = scenario.training.strategy;
  compared.sent_per_gpu = entry.sent_per_gpu;
  add_shares(compared, run.totals);
  if (run.totals.window > Duration::zero())
    compared.samples_per_s =
        static_cast<double>(run.totals.updates * samples_per_update) / run.totals.window.in_seconds();
  if (entry.has_servers) {
    const AsynchronyReport report = describe_asynchrony(run);
    compared.server_utilisation = 0;
    for (const AsynchronousServer& server : report.servers)
      compared.server_utilisation = std::max(*compared.server_utilisation, server.utilisation);
    compared.conflicts = report.conflicts;
    if (run.totals.staleness.total() > 0)
      compared.staleness = report.staleness;
  }
  compared.loss = curve.points();
  if (comparison.wanted_loss)
    compared.time_to_loss = time_to(*comparison.wanted_loss, compared.loss);
  return compared;
}

// "ps_async 2" is the second entry of that strategy.
void number_names(std::vector<ComparedStrategy>& comparison) {
  for (std::size_t index = comparison.size(); index-- > 0;) {
    const std::string name = comparison[index].name;
    const auto before =
        std::count_if(comparison.begin(), comparison.begin() + static_cast<std::ptrdiff_t>(index),
                      [&](const ComparedStrategy& other) { return other.name == name; });
    if (before > 0)
      comparison[index].name += fmt::format(" {}", before + 1);
  }
}

// Every strategy plays the same gradients, forward and backward, and is asked for its loss now and then.
RunSize size_of_comparison(const Scenario& scenario) {
  constexpr double passes = 2;
  constexpr double events_per_gradient = 5;
  const SgdOptions& learning = scenario.comparison->learning;
  const auto outputs =
      static_cast<double>(learning.problem == LearningProblem::softmax ? learning.classes : 1);
  const double weights = outputs * static_cast<double>(learning.features);
  const auto strategies = static_cast<double>(scenario.comparison->strategies.size());
  const auto ranks = static_cast<double>(scenario.cluster.ranks());
  const double gradients = strategies * ranks * static_cast<double>(scenario.comparison->rounds);
  const double losses = strategies * points_of_loss * static_cast<double>(learning.samples);
  return {.nodes = static_cast<double>(scenario.cluster.nodes),
          .ranks = ranks,
          .events = events_per_gradient * gradients,
          .multiplications = weights * (passes * gradients * static_cast<double>(learning.batch) + losses)};
}

}  // namespace

std::vector<ComparedStrategy> compare_strategies(const Scenario& scenario) {
  LOCKSTEP_CHECK(scenario.comparison.has_value(), "what is compared is asked for");
  refuse_if_large(scenario, size_of_comparison(scenario));
  std::vector<ComparedStrategy> comparison;
  for (std::size_t index = 0; index < scenario.comparison->strategies.size(); ++index) {
    comparison.push_back(play(scenario.comparison->strategies[index], *scenario.comparison));
    const nlohmann::ordered_json& given = scenario.comparison->training[index];
    comparison.back().name = given.value("name", comparison.back().name);
  }
  number_names(comparison);
  return comparison;
}

}  // namespace lockstep
