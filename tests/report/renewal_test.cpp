#include "sim/report/renewal.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lockstep::renewal_test {

constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;

Microseconds sum(const History& history) {
  return history.useful + history.checkpoint + history.rework + history.restart;
}

TEST_CASE("one life: whole segments are kept, what follows the last checkpoint is lost") {
  const FailureModel model{
      .mtbf = Microseconds{hour}, .checkpoint = Microseconds{minute}, .restart = Microseconds{5 * minute}};
  // Work 10, save 1: a life of 38 holds three segments of 11 and 5 of work that the failure destroys. The
  // next is away for 5, and the horizon ends it 12 later: a segment, and 1 of work that nothing destroys.
  const History history =
      play(model, Microseconds{10 * minute}, {Microseconds{38 * minute}, Microseconds{17 * minute}});
  CHECK(history.useful == Microseconds{(30 + 10 + 1) * minute});
  CHECK(history.checkpoint == Microseconds{(3 + 1) * minute});
  CHECK(history.rework == Microseconds{5 * minute});
  CHECK(history.restart == Microseconds{5 * minute});
}

TEST_CASE("a failure during a restart costs only what the restart had taken") {
  const FailureModel model{
      .mtbf = Microseconds{hour}, .checkpoint = Microseconds{minute}, .restart = Microseconds{5 * minute}};
  const History history =
      play(model, Microseconds{10 * minute},
           {Microseconds{11 * minute}, Microseconds{3 * minute}, Microseconds{5 * minute}});
  CHECK(history.useful == Microseconds{10 * minute});
  CHECK(history.restart == Microseconds{(3 + 5) * minute});
  CHECK(history.rework == Microseconds{0});
}

TEST_CASE("a failure while a checkpoint is written loses the checkpoint and its work") {
  const FailureModel model{
      .mtbf = Microseconds{hour}, .checkpoint = Microseconds{4 * minute}, .restart = Microseconds{0}};
  const History history =
      play(model, Microseconds{10 * minute}, {Microseconds{13 * minute}, Microseconds{1 * minute}});
  CHECK(history.rework == Microseconds{10 * minute});
  CHECK(history.checkpoint == Microseconds{3 * minute});
  CHECK(history.useful == Microseconds{minute});
}

TEST_CASE("the parts of a history add up to its horizon, and the expected shares to one") {
  const Microseconds horizon{1'000 * hour};
  for (const std::int64_t mtbf : {hour, 7 * hour, 5'000 * hour})
    for (const std::int64_t interval : {minute, hour, 3 * hour}) {
      const FailureModel model{.mtbf = Microseconds{mtbf},
                               .checkpoint = Microseconds{minute + 1},
                               .restart = Microseconds{5 * minute}};
      CHECK(sum(play(model, Microseconds{interval}, draw_lifetimes(model.mtbf, horizon, 3, 1))) == horizon);
      const TimeShares shares = expected_shares(model, Microseconds{interval});
      CHECK(std::abs(shares.useful + shares.checkpoint + shares.rework + shares.restart - 1) < 1e-12);
    }
}

TEST_CASE("lifetimes have their mean and their spread") {
  // 200,000 exponential draws: the mean is within 4 / sqrt(200,000) = 0.9 % of the mean time, and so is, with
  // twice that, the mean square of twice its square.
  const std::vector<Microseconds> lifetimes =
      draw_lifetimes(Microseconds{hour}, Microseconds{200'000 * hour}, 1, 0);
  double total = 0;
  double squares = 0;
  for (const Microseconds life : lifetimes) {
    const double hours = static_cast<double>(life.count()) / static_cast<double>(hour);
    total += hours;
    squares += hours * hours;
  }
  const auto count = static_cast<double>(lifetimes.size());
  CHECK(std::abs(total / count - 1) < 0.009);
  CHECK(std::abs(squares / count / 2 - 1) < 0.02);
}

// Without failures a segment takes its work and its checkpoint.
TEST_CASE("with failures far apart nothing is lost but the checkpoints") {
  const FailureModel model{.mtbf = Microseconds{1'000'000 * hour},
                           .checkpoint = Microseconds{minute},
                           .restart = Microseconds{minute}};
  const TimeShares shares = expected_shares(model, Microseconds{hour});
  CHECK(std::abs(shares.useful - 60.0 / 61) < 1e-6);
  CHECK(std::abs(shares.checkpoint - 1.0 / 61) < 1e-6);
}

TEST_CASE("every expected share is met by the mean of many histories, useful time within half a per cent") {
  const Microseconds horizon{2'000'000 * hour};
  for (const std::int64_t checkpoint : {10 * second, 5 * minute})
    for (const std::int64_t restart : {minute, 30 * minute})
      for (const std::int64_t interval : {5 * minute, hour, 4 * hour}) {
        const FailureModel model{.mtbf = Microseconds{5 * hour},
                                 .checkpoint = Microseconds{checkpoint},
                                 .restart = Microseconds{restart}};
        const History history =
            play(model, Microseconds{interval}, draw_lifetimes(model.mtbf, horizon, 7, 0));
        const TimeShares expected = expected_shares(model, Microseconds{interval});
        const auto share = [&](Microseconds part) {
          return static_cast<double>(part.count()) / static_cast<double>(horizon.count());
        };
        CAPTURE(checkpoint);
        CAPTURE(restart);
        CAPTURE(interval);
        CHECK(std::abs(share(history.useful) / expected.useful - 1) < 0.005);
        // 400,000 failures, each of which adds to the lost shares: four standard deviations are 1 %.
        CHECK(std::abs(share(history.checkpoint) / expected.checkpoint - 1) < 0.01);
        CHECK(std::abs(share(history.rework) / expected.rework - 1) < 0.01);
        CHECK(std::abs(share(history.restart) / expected.restart - 1) < 0.01);
      }
}

TEST_CASE(
    "Young's interval is the square root of twice the checkpoint times the mean time between failures") {
  // 2 x 1 min x 450 min = 900 min^2.
  const FailureModel model{
      .mtbf = Microseconds{450 * minute}, .checkpoint = Microseconds{minute}, .restart = {}};
  CHECK(young_interval(model) == Microseconds{30 * minute});
}

// Daly's third-order interval solves the closed form's own optimum: no neighbour on either side does better
// by more than a millionth of the time.
TEST_CASE("Daly's interval is the best of the closed form") {
  for (const std::int64_t checkpoint : {second, minute, 20 * minute}) {
    const FailureModel model{.mtbf = Microseconds{10 * hour},
                             .checkpoint = Microseconds{checkpoint},
                             .restart = Microseconds{minute}};
    const Microseconds best = daly_interval(model);
    for (std::int64_t percent = 50; percent <= 200; percent += 5) {
      const Microseconds other{best.count() * percent / 100};
      CHECK(expected_shares(model, other).useful <= expected_shares(model, best).useful + 1e-6);
    }
  }
}

TEST_CASE("where a checkpoint takes two mean times between failures, Daly saves once in each") {
  const FailureModel model{
      .mtbf = Microseconds{minute}, .checkpoint = Microseconds{2 * minute}, .restart = {}};
  CHECK(daly_interval(model) == Microseconds{minute});
}

}  // namespace lockstep::renewal_test
