#include "sim/run/rehearsal.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr int most_rehearsals = 6;

Time latest(const Run& run, const Communication& communication, OpId Participation::*op) {
  Time end;
  for (const Participation& part : communication.taking_part)
    end = std::max(end, run.timeline.end[(part.*op).index]);
  return end;
}

Duration latest_since(const Run& run, const std::vector<OpId>& start, const std::vector<OpId>& ops) {
  Duration longest;
  for (std::size_t i = 0; i < ops.size(); ++i)
    longest = std::max(longest, run.timeline.end[ops[i].index] - run.timeline.end[start[i].index]);
  return longest;
}

Rehearsal look_at(const Run& run, const IterationOps& iteration) {
  Rehearsal seen;
  for (const std::vector<OpId>& computed : iteration.watched.gradients)
    seen.ready.push_back(latest_since(run, iteration.watched.start, computed));
  for (const Communication& ops : iteration.communications)
    if (ops.payload == Payload::gradients)
      seen.reducing += latest(run, ops, &Participation::end) - latest(run, ops, &Participation::begin);
  return seen;
}

// Whether what is sent together came to stand still.
bool settle(Job& job, const Strategy& strategy, std::int64_t ranks, const RunBriefly& run_briefly) {
  bool keeps_groups = false;
  for (int round = 0; round < most_rehearsals; ++round) {
    const Run run = run_briefly(job);
    std::vector<FusedGroup> fused = strategy.fuse(job, look_at(run, run.iterations.back()), ranks);
    if (fused == job.fused)
      return true;
    keeps_groups = same_groups(fused, job.fused);
    job.fused = std::move(fused);
  }
  return keeps_groups;
}

std::vector<std::string> settle_noting(Job& job, const Strategy& strategy, std::int64_t ranks,
                                       const RunBriefly& run_briefly) {
  if (strategy.fuse == nullptr || settle(job, strategy, ranks, run_briefly))
    return {};
  return {"what " + job.training.strategy + " fuses still changed after " + std::to_string(most_rehearsals) +
          " rehearsals: the last answer is kept"};
}

}  // namespace

std::vector<std::string> rehearse(Job& job, std::int64_t ranks, const RunBriefly& run_briefly) {
  const Strategy& strategy = strategy_named(job.training.strategy);
  const std::vector<Trial> variants =
      strategy.variants != nullptr ? strategy.variants(job.training) : std::vector<Trial>{};
  if (variants.empty())
    return settle_noting(job, strategy, ranks, run_briefly);
  const Job stated = job;
  std::optional<Duration> fastest;
  std::vector<std::string> notes;
  for (const Trial& variant : variants) {
    Job tried = stated;
    tried.training = variant.training;
    std::vector<std::string> remarks = settle_noting(tried, strategy, ranks, run_briefly);
    const Duration time = run_briefly(tried).timeline.finish().since_start();
    if (fastest && *fastest <= time)
      continue;
    fastest = time;
    notes = std::move(remarks);
    notes.insert(notes.begin(), "autotune: of " + std::to_string(variants.size()) +
                                    " settings tried, the fastest is kept: " + variant.name);
    job = std::move(tried);
  }
  return notes;
}

}  // namespace lockstep
