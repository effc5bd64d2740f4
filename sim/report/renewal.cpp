#include "sim/report/renewal.h"

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"
#include "sim/base/series.h"

namespace lockstep {
namespace {

constexpr std::int64_t microseconds_per_second = 1'000'000;
constexpr std::int64_t billion = 1'000'000'000;

double as_double(Microseconds time) {
  return static_cast<double>(time.count());
}

Microseconds rounded(double microseconds) {
  return Microseconds{std::max<std::int64_t>(static_cast<std::int64_t>(microseconds + 0.5), 1)};
}

// e^x - 1 where x may be so small that the 1 would swallow it.
double exponential_less_one(double x) {
  if (x > 0.1)
    return exponential(x) - 1;
  constexpr int terms = 12;  // 0.1^12 / 13! < 2^-70
  double sum = 1;
  for (int term = terms; term > 1; --term) sum = 1 + sum * x / term;
  return sum * x;
}

// -ln u of a uniform u, in billionths: the time to the next failure in mean times between failures.
std::int64_t exponential_draw(std::uint64_t bits) {
  constexpr double cells = 9007199254740992.0;  // 2^53
  const double uniform = (static_cast<double>(bits >> 11U) + 0.5) / cells;
  return static_cast<std::int64_t>(-natural_logarithm(uniform) * billion);
}

Microseconds times(Microseconds whole, std::int64_t numerator, std::int64_t denominator) {
  return Microseconds{arithmetic::product_divided_up(whole.count(), numerator, denominator)};
}

// The time between two failures: restart, whole segments, and a part of one.
void live(History& history, const FailureModel& model, Microseconds interval, Microseconds lifetime,
          bool has_restart, bool ends_in_failure) {
  const Microseconds away = has_restart ? std::min(lifetime, model.restart) : Microseconds{0};
  const Microseconds up = lifetime - away;
  const Microseconds segment = interval + model.checkpoint;
  const std::int64_t whole = up.count() / segment.count();
  const Microseconds rest = up - segment * whole;
  const Microseconds unsaved = std::min(rest, interval);
  history.restart += away;
  history.useful += interval * whole;
  history.checkpoint += model.checkpoint * whole + (rest - unsaved);
  (ends_in_failure ? history.rework : history.useful) += unsaved;
}

}  // namespace

Microseconds in_microseconds(Duration duration) {
  return Microseconds{divided_up(duration.picoseconds(), Duration::microseconds(1).picoseconds())};
}

Microseconds in_microseconds(Horizon horizon) {
  return Microseconds{horizon.count()} * microseconds_per_second;
}

// In mean times between failures, t the interval, c the checkpoint, r the restart and s = t + c: a segment is
// begun e^s times before it ends once, which takes e^s - 1. Of that a begun segment spends min(x, t) on work
// when it fails at x: over all failures e^s - e^c - t. The checkpoints take e^c - 1, failed ones included.
// Each of the e^s - 1 failures costs a restart, which by the same argument takes e^r - 1. Daly's equation 20
// is the sum.
TimeShares expected_shares(const FailureModel& model, Microseconds interval) {
  const double mtbf = as_double(model.mtbf);
  const double work = as_double(interval) / mtbf;
  const double saving = exponential_less_one(as_double(model.checkpoint) / mtbf);
  const double failures = exponential_less_one(as_double(interval + model.checkpoint) / mtbf);
  const double restarting = failures * exponential_less_one(as_double(model.restart) / mtbf);
  const double all = failures + restarting;
  return {.useful = work / all,
          .checkpoint = saving / all,
          .rework = std::max(0.0, failures - saving - work) / all,
          .restart = restarting / all};
}

Microseconds young_interval(const FailureModel& model) {
  return rounded(std::sqrt(2 * as_double(model.checkpoint) * as_double(model.mtbf)));
}

// Daly's equation 37.
Microseconds daly_interval(const FailureModel& model) {
  const double checkpoint = as_double(model.checkpoint);
  const double mtbf = as_double(model.mtbf);
  if (checkpoint >= 2 * mtbf)
    return model.mtbf;
  const double half = checkpoint / (2 * mtbf);
  return rounded(std::sqrt(2 * checkpoint * mtbf) * (1 + std::sqrt(half) / 3 + half / 9) - checkpoint);
}

bool gets_nowhere(const FailureModel& model, Microseconds interval) {
  constexpr std::int64_t most = 16;  // e^16: a segment is begun nine million times before it ends once
  return interval + model.checkpoint > model.mtbf * most || model.restart > model.mtbf * most;
}

std::vector<Microseconds> draw_lifetimes(Microseconds mtbf, Microseconds horizon, std::uint64_t seed,
                                         std::uint64_t history) {
  std::vector<Microseconds> lifetimes;
  Microseconds left = horizon;
  while (left > Microseconds{0}) {
    const std::uint64_t bits = keyed_random(seed, history, lifetimes.size());
    const Microseconds drawn = times(mtbf, exponential_draw(bits), billion);
    lifetimes.push_back(std::min(drawn, left));
    left -= lifetimes.back();
  }
  return lifetimes;
}

History play(const FailureModel& model, Microseconds interval, const std::vector<Microseconds>& lifetimes) {
  History history;
  for (std::size_t life = 0; life < lifetimes.size(); ++life)
    live(history, model, interval, lifetimes[life], life > 0, life + 1 < lifetimes.size());
  return history;
}

}  // namespace lockstep
