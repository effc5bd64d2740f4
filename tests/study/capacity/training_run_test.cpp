// A whole training in days, dollars and energy, and the chance to be in time.

#include "sim/study/capacity/training_run.h"

#include <doctest/doctest.h>

#include "sim/study/capacity/plan_outlook.h"
#include "sim/study/capacity/plan_quantities.h"

namespace lockstep::training_run_test {

// 1,000 samples by 30 are 34 iterations of 2 s, half of the time lost: 136 s of 16 GPUs.
TEST_CASE("a run is its iterations over the share of time that is of use") {
  const PlanGoal goal{.unit = WorkUnit::samples, .amount = 1000};
  const TrainingRun run =
      train(goal, {.work_per_iteration = 30, .iteration = Duration::seconds(2), .goodput = 0.5},
            {.gpus = 16, .usd = 36.0, .kwh = 7.2});
  CHECK(run.iterations == 34);
  CHECK(run.seconds == doctest::Approx(136));
  CHECK(run.gpu_hours == doctest::Approx(16 * 136 / 3600.0));
  CHECK(*run.usd == doctest::Approx(1.36));
  CHECK(*run.kwh == doctest::Approx(0.272));
}

TEST_CASE("what is not known of an hour is not known of the run") {
  const TrainingRun run =
      train({.amount = 10}, {.work_per_iteration = 1, .iteration = Duration::seconds(1)}, {});
  CHECK_FALSE(run.usd.has_value());
  CHECK_FALSE(run.kwh.has_value());
}

// The band holds 80 %: its upper end is met with a chance of 90 %, its lower with one of 10 %.
TEST_CASE("the chance to be in time is that of the band") {
  const BandFacts band{.seconds = 1000,
                       .iteration = Duration::milliseconds(100),
                       .low = Duration::milliseconds(80),
                       .high = Duration::milliseconds(150)};
  CHECK(chance_within(band, Horizon{1000}) == doctest::Approx(0.5));
  CHECK(chance_within(band, Horizon{1500}) == doctest::Approx(0.9));
  CHECK(chance_within(band, Horizon{800}) == doctest::Approx(0.1));
  CHECK(chance_within(band, Horizon{100'000}) == doctest::Approx(1));
}

TEST_CASE("quantities have three digits") {
  CHECK(time_text(86'400 * 12.34) == "12.3 days");
  CHECK(time_text(5'400) == "1.50 h");
  CHECK(time_text(0.5) == "0.50 s");
  CHECK(usd_text(1'234'567.8) == "$1,234,568");
  CHECK(usd_text(1.5) == "$1.50");
  CHECK(energy_text(1'234'000) == "1.23 GWh");
}

}  // namespace lockstep::training_run_test
